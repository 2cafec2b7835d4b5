"""Writes the clips that the tests read. Their frames are of one grey each, so that a test knows them by a pixel: frame i is 16 + 8 * i.

Usage: python3 make_clips.py (needs PyAV)
"""

import struct
from fractions import Fraction
from pathlib import Path

import av
import numpy

FOLDER = Path(__file__).resolve().parent / "clips"
# Name, frames, frames a second, codec, frames between key frames, B-frames.
CLIPS = [("plain.mp4", 24, 10, "libx264", 8, 0), ("b.mkv", 24, 12, "libx264", 12, 2), ("vp9.webm", 16, 25, "libvpx-vp9", 8, 0), ("mpeg4.avi", 20, 10, "mpeg4", 10, 0),
         ("quick.mov", 12, 24, "mpeg4", 6, 2), ("front.mp4", 24, 10, "mpeg4", 8, 0), ("plain.avi", 20, 10, "libx264", 10, 0), ("b.avi", 20, 10, "mpeg4", 10, 2),
         ("b264.avi", 20, 10, "libx264", 10, 2), ("jpeg.mov", 4, 10, "mjpeg", 1, 0), ("huff.avi", 4, 10, "huffyuv", 1, 0), ("parts.mp4", 24, 10, "libx264", 8, 0)]
FORMATS = {"mjpeg": "yuvj420p", "huffyuv": "yuv422p"}
SIDES = (64, 48)


def write(name, count, rate, codec, gop, b_frames):
    flags = {"front.mp4": "+faststart", "jpeg.mov": "+faststart", "parts.mp4": "+frag_keyframe+empty_moov"}
    header_first = {"movflags": flags[name]} if name in flags else {}
    options = {"b_strategy": "0"} if b_frames else {}
    with av.open(str(FOLDER / name), "w", options=header_first) as file:
        stream = file.add_stream(codec, rate=Fraction(rate), options=options)
        stream.width, stream.height = SIDES
        stream.pix_fmt = FORMATS.get(codec, "yuv420p")
        stream.codec_context.gop_size, stream.codec_context.max_b_frames = gop, b_frames
        for i in range(count):
            frame = av.VideoFrame.from_ndarray(numpy.full((SIDES[1], SIDES[0], 3), 16 + 8 * i, numpy.uint8), format="rgb24")
            file.mux(stream.encode(frame))
        file.mux(stream.encode())


def write_halves(name):
    """The left half white, the right one black; turned clockwise by its display matrix, the white is above."""
    pixels = numpy.zeros((SIDES[1], SIDES[0], 3), numpy.uint8)
    pixels[:, :SIDES[0] // 2] = 255
    with av.open(str(FOLDER / name), "w") as file:
        stream = file.add_stream("mpeg4", rate=10)
        stream.width, stream.height, stream.pix_fmt = *SIDES, "yuv420p"
        for _ in range(4):
            file.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        file.mux(stream.encode())
    data = bytearray((FOLDER / name).read_bytes())
    at = data.index(b"tkhd") + 4 + 40
    data[at:at + 36] = struct.pack(">9i", *(int(v * (1 << 30 if k % 3 == 2 else 1 << 16)) for k, v in enumerate([0, 1, 0, -1, 0, 0, 0, 0, 1])))
    (FOLDER / name).write_bytes(data)


def write_sound(name):
    with av.open(str(FOLDER / name), "w") as file:
        stream = file.add_stream("aac", rate=8000)
        frame = av.AudioFrame.from_ndarray(numpy.zeros((1, 2048), numpy.float32), format="fltp", layout="mono")
        frame.sample_rate = 8000
        file.mux(stream.encode(frame))
        file.mux(stream.encode())


def write_cut(name, source, begin, end):
    """The source with an edit list that shows its seconds `begin` to `end`."""
    data = bytearray((FOLDER / source).read_bytes())
    scale = struct.unpack_from(">I", data, data.index(b"mdhd") + 16)[0]
    struct.pack_into(">Ii", data, data.index(b"elst") + 12, int((end - begin) * 1000), int(begin * scale))
    (FOLDER / name).write_bytes(data)


def write_endless(name, source, count):
    """Tables of `count` frames, none of which takes a byte to state."""
    data = bytearray((FOLDER / source).read_bytes())
    struct.pack_into(">II", data, data.index(b"stsz") + 8, 1, count)
    struct.pack_into(">I", data, data.index(b"stts") + 12, count)
    struct.pack_into(">I", data, data.index(b"stsc") + 16, count)
    struct.pack_into("4s", data, data.index(b"edts"), b"free")
    (FOLDER / name).write_bytes(data)


def write_hidden(name, hidden):
    """VP8 whose packets of these numbers give no frame, as its alternate references do."""
    with av.open(str(FOLDER / name), "w") as file:
        stream = file.add_stream("libvpx", rate=10)
        stream.width, stream.height, stream.pix_fmt = *SIDES, "yuv420p"
        packets = []
        for i in range(14):
            frame = av.VideoFrame.from_ndarray(numpy.full((SIDES[1], SIDES[0], 3), 16 + 8 * i, numpy.uint8), format="rgb24")
            packets += stream.encode(frame)
        for i, packet in enumerate(packets + stream.encode()):
            data = bytearray(bytes(packet))
            if i in hidden:
                data[0] &= ~0x10
            changed = av.Packet(bytes(data))
            changed.pts, changed.dts, changed.duration, changed.time_base = packet.pts, packet.dts, packet.duration, packet.time_base
            changed.is_keyframe, changed.stream = packet.is_keyframe, stream
            file.mux(changed)


def write_ranges(name):
    """Luma 235 in each frame: of full range in the first four, of limited range in the others."""
    frame = av.VideoFrame(*SIDES, "yuv420p")
    for plane, value in zip(frame.planes, (235, 128, 128)):
        plane.update(bytes([value]) * plane.buffer_size)
    with av.open(str(FOLDER / name), "w") as file:
        stream = file.add_stream("libx264", rate=10)
        for part, color_range in enumerate((2, 1)):
            codec = stream.codec_context if part == 0 else av.CodecContext.create("libx264", "w")
            codec.width, codec.height, codec.pix_fmt, codec.framerate, codec.time_base = *SIDES, "yuv420p", Fraction(10), Fraction(1, 10)
            codec.max_b_frames, codec.color_range, codec.options = 0, color_range, {"x264-params": "videoformat=pal"}  # so that the range is written
            packets = []
            for i in range(4):
                frame.pts = i
                packets += codec.encode(frame)
            for i, packet in enumerate(packets + codec.encode()):
                packet.pts = packet.dts = 4 * part + i
                packet.time_base, packet.stream = Fraction(1, 10), stream
                file.mux(packet)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for clip in CLIPS:
        write(*clip)
    write_halves("turned.mp4")
    write_sound("sound.mp4")
    write_cut("cut.mp4", "plain.mp4", 1, 2)
    write_endless("endless.mov", "jpeg.mov", 1 << 26)
    write_hidden("hidden.webm", (5, 9))
    write_ranges("ranges.avi")
