"""Videos as samples beside transformers' processor and get_rope_index: token ids, what is supervised, positions, grids and pixels.

Usage: python3 videos.py --samples PROGRAM [--files]
Lists of frames of many lengths, sizes and rates, alone and among pictures, with each form of the processor's files; files of each container and codec, which
the reference decodes with PyAV, with several samplings. Exit code 1 on any miss.
"""

import argparse
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
from fractions import Fraction
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy
import torch
from transformers import AutoProcessor, Qwen2_5_VLForConditionalGeneration
from transformers.models.qwen2_vl.video_processing_qwen2_vl import Qwen2VLVideoProcessor
from transformers.utils import logging

from model import ModelVariant, make_model, picture
from reference import read_samples

PIXEL = 1 / 255 / 0.26130258  # a step of a byte in the channel with the least deviation
ROUNDING = 1e-5

# The files of a processor and the spec's data.video.
PUBLISHED = {"min_pixels": 3136, "max_pixels": 50176, "patch_size": 14, "temporal_patch_size": 2, "merge_size": 2, "image_processor_type": "Qwen2VLImageProcessor",
             "processor_class": "Qwen2_5_VLProcessor"}
VIDEO = {"patch_size": 14, "temporal_patch_size": 2, "merge_size": 2, "video_processor_type": "Qwen2VLVideoProcessor"}
FOLDERS = {
    "the image processor's limits": {"preprocessor_config.json": PUBLISHED},
    "limits of its own": {"preprocessor_config.json": PUBLISHED, "video_preprocessor_config.json": VIDEO | {"size": {"shortest_edge": 56 * 56, "longest_edge": 84 * 84}}},
    "a share of all pixels": {"preprocessor_config.json": PUBLISHED, "video_preprocessor_config.json": VIDEO | {
        "size": {"shortest_edge": 28 * 56, "longest_edge": 50176}, "cap_pixels_per_frame": True, "max_video_tokens": 30}},
    "the default limits": {"preprocessor_config.json": PUBLISHED, "video_preprocessor_config.json": VIDEO | {"image_mean": [0.5, 0.4, 0.3], "image_std": [0.3, 0.27, 0.29]}},
}


SPECS = [{}, {"fps": 5, "max_frames": 16}, {"fps": 0.4, "min_frames": 6}, {"fps": 1000, "max_frames": 37}]


def make_frames(folder, rng, name, count, width, height, suffix=".png"):
    names = [f"{name}-{f}{suffix}" for f in range(count)]
    for frame in names:
        picture(rng, width, height).save(folder / frame, quality=95)
    return names


def record(name, question, **media):
    return {"id": name, "conversations": [{"from": "human", "value": question}, {"from": "gpt", "value": "two circles"}]} | media


def frame_records(folder):
    """Records whose videos are lists of frames."""
    rng, out = random.Random(3), []
    for i, (count, width, height, fps) in enumerate([(4, 84, 56, None), (1, 56, 56, None), (5, 60, 85, 2), (8, 140, 84, 1), (3, 28, 56, 0.37), (6, 300, 200, 29.97), (2, 17, 23, 12)]):
        out.append(record(f"frames-{i}", "<video>\nwhich colour", videos=[make_frames(folder, rng, f"v{i}", count, width, height)]) | ({"fps": fps} if fps else {}))
    a, b = make_frames(folder, rng, "a", 4, 70, 70), make_frames(folder, rng, "b", 7, 112, 56, ".jpg")
    for name in ("p.png", "q.png"):
        picture(rng, 90, 61).save(folder / name)
    out.append(record("mixed", "<image> then <video> and <image>, and <video>", image=["p.png", "q.png"], videos=[a, b], fps=[4, 1.5]))
    out.append(record("twice", "<video><video>", videos=[b, a]))
    out.append(record("none", "no video at all"))
    return out


def without_frames_that_are_not(sample_frames):
    """The published sampler names a frame behind the last one now and then, and then fails."""
    def sample(self, metadata, *rest, **settings):
        frames = sample_frames(self, metadata, *rest, **settings)
        return frames[frames < metadata.total_num_frames]
    return sample


def write_clip(path, rng, count, width, height, rate, codec, **settings):
    """Soft colours that move. `settings`: of the codec, and `b_frames`, `gop`."""
    import av
    with av.open(str(path), "w") as file:
        stream = file.add_stream(codec, rate=Fraction(rate).limit_denominator(100_000))
        stream.width, stream.height, stream.pix_fmt = width, height, settings.pop("pix_fmt", "yuv420p")
        stream.codec_context.max_b_frames, stream.codec_context.gop_size = settings.pop("b_frames", 0), settings.pop("gop", 12)
        stream.codec_context.options = {k: str(v) for k, v in settings.items()}
        y, x = numpy.mgrid[0:height, 0:width]
        a, b, c = (rng.uniform(9, 30) for _ in range(3))
        for i in range(count):
            waves = [127 + 110 * numpy.sin(x / a + i * 0.31), 127 + 110 * numpy.sin(y / b - i * 0.17), 127 + 110 * numpy.sin((x + y) / c + i * 0.23)]
            frame = av.VideoFrame.from_ndarray(numpy.stack(waves, -1).astype(numpy.uint8), format="rgb24")
            file.mux(stream.encode(frame))
        file.mux(stream.encode())


def turn(path, matrix):
    """Puts a display matrix into an MP4's track header."""
    data = bytearray(path.read_bytes())
    at = data.index(b"tkhd") + 4 + 40
    data[at:at + 36] = struct.pack(">9i", *(int(v * (1 << 30 if k % 3 == 2 else 1 << 16)) for k, v in enumerate(matrix)))
    path.write_bytes(data)


CLIPS = [
    ("plain.mp4", 60, 96, 64, 30, "libx264", {}), ("b-frames.mp4", 75, 96, 64, 25, "libx264", {"b_frames": 3, "gop": 24}),
    ("ntsc.mkv", 100, 98, 66, "24000/1001", "libx264", {"b_frames": 2}), ("vp9.webm", 40, 112, 84, 25, "libvpx-vp9", {}), ("vp8.webm", 33, 96, 64, 12.5, "libvpx", {}),
    ("mpeg4.avi", 45, 96, 64, 15, "mpeg4", {}), ("mov.mov", 33, 64, 96, 29.97, "libx264", {"b_frames": 2}), ("hevc.mp4", 48, 96, 64, 24, "libx265", {"x265-params": "log-level=none"}),
    ("short.mp4", 3, 96, 64, 30, "libx264", {}), ("long.mp4", 400, 56, 56, 10, "libx264", {"gop": 250}), ("av1.mkv", 30, 96, 64, 10, "libsvtav1", {}),
    ("full.mp4", 30, 96, 64, 10, "mjpeg", {"pix_fmt": "yuvj420p"}), ("slow.mp4", 20, 96, 64, 0.5, "mpeg4", {}), ("turned.mp4", 40, 96, 64, 20, "libx264", {}),
]


def file_records(folder):
    rng, out = random.Random(5), []
    for name, count, width, height, rate, codec, settings in CLIPS:
        write_clip(folder / name, rng, count, width, height, rate, codec, **settings)
        out.append(record(f"file-{name}", "<video>\nwhich colour", videos=[name]))
    turn(folder / "turned.mp4", [0, 1, 0, -1, 0, 0, 0, 0, 1])
    picture(rng, 90, 61).save(folder / "between.png")
    out.append(record("file-mixed", "<video> then <image> and <video>", image=["between.png"], videos=["plain.mp4", "vp9.webm"]))
    return out


def write_folder(model, folder, files):
    folder.mkdir()
    for file in model.iterdir():
        if file.name not in ("preprocessor_config.json", "model.safetensors"):
            (folder / file.name).write_bytes(file.read_bytes())
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content))
    return folder


def samples_of(program, folder, records, out, video):
    out.mkdir()
    done = subprocess.run([program, folder, records, out, json.dumps(video)], capture_output=True, text=True, timeout=300)
    if done.returncode or done.stderr:
        sys.exit(f"{program}: {done.stderr}")
    return {line["id"]: line for line in map(json.loads, done.stdout.splitlines())}


def due_pixels(inputs, media):
    """Patches of pictures and videos in reading order."""
    at, parts = {"image": 0, "video": 0}, []
    for medium in media:
        kind = "video" if medium["video"] else "image"
        count = int(numpy.prod(medium["grid"]))
        parts.append(inputs["pixel_values_videos" if medium["video"] else "pixel_values"][at[kind]:at[kind] + count])
        at[kind] += count
    return numpy.concatenate(parts) if parts else numpy.zeros(0, dtype=numpy.float32)


def complaints_about(sample, got, model, pixels):
    inputs, out = sample["inputs"], []
    if got["ids"] != inputs["input_ids"][0].tolist():
        out.append(f"ids: {len(got['ids'])} and {inputs['input_ids'].shape[1]} of them, or others")
        return out, 0.0
    if got["supervised"] != [int(x >= 0) for x in sample["labels"][0].tolist()]:
        out.append("other positions are supervised")
    facts = {k: inputs.get(k) for k in ("image_grid_thw", "video_grid_thw", "second_per_grid_ts", "attention_mask")}
    due, _ = model.model.get_rope_index(inputs["input_ids"], mm_token_type_ids=inputs["mm_token_type_ids"], **facts)
    if torch.tensor(got["positions"]).T.tolist() != due[:, 0].tolist():
        out.append("positions differ")
    grids = {kind: inputs.get(f"{kind}_grid_thw", torch.zeros(0, 3)).tolist() for kind in ("image", "video")}
    for kind, of_kind in grids.items():
        mine = [m["grid"] for m in got["media"] if m["video"] == (kind == "video")]
        if mine != of_kind:
            out.append(f"{kind} grids {mine}, transformers {of_kind}")
    if out:
        return out, 0.0
    want = due_pixels(inputs, got["media"]).reshape(-1)
    if pixels.shape != want.shape:
        return [f"{pixels.shape} values, transformers {want.shape}"], 0.0
    return out, float(numpy.abs(pixels - want).max()) if len(want) else 0.0


def compare(a, model, folder, records, images, video, name, exact):
    """Complaints, samples compared, the largest difference of a value. `exact`: samples whose pixels must agree to rounding."""
    out = folder.parent / f"out-{name}"
    got = samples_of(a.samples, folder, records, out, video)
    due = {s["id"]: s for s in read_samples(records, images, AutoProcessor.from_pretrained(folder), video)}
    complaints, worst, values = [], 0.0, 0
    if got.keys() != due.keys():
        complaints.append(f"{sorted(due.keys() ^ got.keys())} are in one of the two only")
    for name in sorted(due.keys() & got.keys()):
        pixels = numpy.fromfile(out / f"{name}.f32", dtype="<f4")
        found, most = complaints_about(due[name], got[name], model, pixels)
        if most > (ROUNDING if exact(name) else 1.01 * PIXEL):
            found.append(f"a value differs by {most}")
        complaints += [f"{name}: {c}" for c in found]
        worst, values = max(worst, most), values + pixels.size
    return complaints, f"{len(due)} samples, {values} values within {worst:.1e}"


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--samples", required=True)
    p.add_argument("--files", action="store_true", help="files of video too: the program was built with FFmpeg")
    a = p.parse_args()
    Qwen2VLVideoProcessor.sample_frames = without_frames_that_are_not(Qwen2VLVideoProcessor.sample_frames)
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    torch.set_num_threads(1)
    missed = 0
    with tempfile.TemporaryDirectory(prefix="troupe-videos-") as scratch:
        work = Path(scratch)
        make_model(ModelVariant(), work / "weights")
        model = Qwen2_5_VLForConditionalGeneration.from_pretrained(work / "weights", dtype=torch.float32)
        data = work / "data"
        data.mkdir()
        (data / "frames.jsonl").write_text("".join(json.dumps(r) + "\n" for r in frame_records(data)))
        for number, (name, files) in enumerate(FOLDERS.items()):
            folder = write_folder(work / "weights", work / f"model-{number}", files)
            complaints, compared = compare(a, model, folder, data / "frames.jsonl", data, {}, f"frames-{number}", lambda id: id not in ("mixed", "twice"))
            missed += bool(complaints)
            print(f"{'ok  ' if not complaints else 'FAIL'} frames, {name}: {compared}")
            print("".join(f"       {c}\n" for c in complaints[:8]), end="")
        if not a.files:
            sys.exit(1 if missed else 0)
        (data / "files.jsonl").write_text("".join(json.dumps(r) + "\n" for r in file_records(data)))
        folder = write_folder(work / "weights", work / "model-files", FOLDERS["the image processor's limits"])
        for number, video in enumerate(SPECS):
            complaints, compared = compare(a, model, folder, data / "files.jsonl", data, video, f"files-{number}", lambda id: False)
            missed += bool(complaints)
            print(f"{'ok  ' if not complaints else 'FAIL'} files, data.video {video}: {compared}")
            print("".join(f"       {c}\n" for c in complaints[:20]), end="")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
