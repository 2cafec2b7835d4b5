"""Patches of picture files of every kind and size, beside those of transformers' image processor (torchvision's path), files given by path.

Usage: python3 pixels.py --patches PROGRAM [--files 500] [--seed 1] [--photographs FOLDER ...] [--keep FOLDER]
--photographs: folders that are searched for JPEG and PNG files (such as unpacked wheels of scikit-image and scikit-learn). What docs/data.md's table
says that we read in another way is held against what the table says, made by Pillow. Prints the largest and the mean difference of each
kind, in 255ths before normalisation; exit code 1 when one is over 1, a grid differs, or a file is refused.
"""

import argparse
import io
import math
import random
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

import numpy
from PIL import Image, ImageOps, PngImagePlugin
from transformers import AutoProcessor
from transformers.utils import logging

from model import EXAMPLE

LEAST, MOST = 56 * 56, 1280 * 28 * 28
LIMIT = 1.01  # of a 255th: one step, and what fp32 rounds
SIZES = [(1, 1), (1, 200), (200, 1), (2, 3), (27, 29), (28, 28), (4000, 3000), (3000, 4000), (4000, 20), (11, 2200), (640, 480), (1920, 1080)]


def random_size(rng):
    """(width, height): small and large ones alike, at most 200 to 1."""
    while True:
        sides = [round(math.exp(rng.uniform(0, math.log(2500)))) for _ in range(2)]
        if max(sides) <= 200 * min(sides) and sides[0] * sides[1] <= 4_000_000:
            return tuple(sides)


def colours(rng, size, bands):
    """Smooth areas, edges and grain; uint8 [height, width, bands]."""
    width, height = size
    draw = numpy.random.default_rng(rng.randrange(1 << 32))
    y, x = numpy.mgrid[0:height, 0:width]
    planes = []
    for _ in range(bands):
        wave = 127.5 + 127.5 * numpy.sin(x / draw.uniform(2, 60) + y / draw.uniform(2, 60) + draw.uniform(0, 6))
        step = 90 * ((x // draw.integers(3, 90) + y // draw.integers(3, 90)) % 2)
        planes.append(wave * 0.7 + step + draw.normal(0, draw.uniform(0, 12), wave.shape))
    return numpy.clip(numpy.stack(planes, -1), 0, 255).astype(numpy.uint8)


def picture(rng, size, mode):
    bands = {"1": 1, "L": 1, "LA": 2, "P": 3, "RGB": 3, "RGBA": 4, "CMYK": 4, "I;16": 1}[mode]
    values = colours(rng, size, bands)
    if mode == "I;16":
        return Image.fromarray(values[..., 0].astype(numpy.uint16) * 256 + rng.randrange(256))
    if mode == "P":
        return Image.fromarray(values).quantize(rng.choice([2, 16, 200]))
    if mode == "1":
        return Image.fromarray(values[..., 0]).convert("1")
    return Image.fromarray(values[..., 0] if bands == 1 else values, mode)


def xmp(rng):
    return f'<x:xmpmeta><rdf:Description tiff:Orientation="{rng.randint(1, 8)}"/></x:xmpmeta>'


def turned(rng, suffix):
    """(options of Pillow's save, name): an orientation, where files of this type have it, or none."""
    exif = Image.Exif()
    exif[0x0112] = rng.randint(1, 8)
    if suffix == ".png":
        info, raw = PngImagePlugin.PngInfo(), rng.random() < 0.5
        if raw:
            info.add_text("Raw profile type exif", f"\nexif\n{len(exif.tobytes()):8}\n{exif.tobytes().hex()}\n", zip=True)
        else:
            info.add_itxt("XML:com.adobe.xmp", xmp(rng), zip=rng.random() < 0.5)
        return {"pnginfo": info}, " turned by a raw profile" if raw else " turned by XMP"
    if rng.random() < 0.5:
        return {"exif": exif}, " turned"
    return ({"tiffinfo": {700: xmp(rng).encode()}} if suffix == ".tif" else {"xmp": xmp(rng).encode()}), " turned by XMP"


def jpeg(rng):
    mode, options = rng.choice(["RGB", "RGB", "RGB", "L", "CMYK"]), {"quality": rng.choice([40, 75, 95]), "progressive": rng.random() < 0.4, "optimize": rng.random() < 0.5}
    if mode == "RGB":
        options["subsampling"] = rng.choice([0, 1, 2])
    more, name = turned(rng, ".jpg") if rng.random() < 0.5 else ({}, "")
    return ".jpg", mode, options | more, f"JPEG {mode}{name}"


def png(rng):
    mode = rng.choice(["RGB", "RGB", "L", "P", "1", "RGBA", "LA", "I;16"])
    more, name = turned(rng, ".png") if rng.random() < 0.3 else ({}, "")
    return ".png", mode, {"compress_level": rng.choice([1, 6])} | more, f"PNG {mode}{name}"


def webp(rng):
    mode, lossless = rng.choice(["RGB", "RGB", "RGBA"]), rng.random() < 0.5
    more, name = turned(rng, ".webp") if rng.random() < 0.3 else ({}, "")
    return ".webp", mode, {"lossless": lossless, "quality": 80, "exact": True} | more, f"WebP {mode}{' lossless' if lossless else ''}{name}"


def other(rng):
    suffix = rng.choice([".gif", ".bmp", ".tif"])
    mode = rng.choice({".gif": ["P", "L"], ".bmp": ["RGB", "L", "P", "1"], ".tif": ["RGB", "L", "P", "RGBA", "LA", "1"]}[suffix])
    options = {"compression": rng.choice([None, "tiff_lzw", "tiff_deflate"])} if suffix == ".tif" else {}
    more, name = turned(rng, ".tif") if suffix == ".tif" and rng.random() < 0.5 else ({}, "")
    return suffix, mode, options | more, f"{ {'.gif': 'GIF', '.bmp': 'BMP', '.tif': 'TIFF'}[suffix]} {mode}{name}"


def make(folder, count, seed):
    """[(path, kind)]"""
    rng, made = random.Random(seed), []
    for i in range(count):
        suffix, mode, options, kind = rng.choice([jpeg, jpeg, png, png, webp, other])(rng)
        path = folder / f"{i:04d}{suffix}"
        size = SIZES[i] if i < len(SIZES) else random_size(rng)
        picture(rng, size, mode).save(path, **{k: v for k, v in options.items() if v is not None})
        made.append((path, kind))
    return made


def as_documented(path):
    """What docs/data.md says of files that we read otherwise than the processor, or None for those that it reads the same."""
    # From memory: Pillow 13 maps an uncompressed TIFF by its turned sides, and its rows come out cut elsewhere.
    with Image.open(io.BytesIO(Path(path).read_bytes())) as stored:
        if stored.mode == "I;16" or stored.mode == "I":
            return Image.fromarray((numpy.asarray(ImageOps.exif_transpose(stored)).astype(numpy.uint32) >> 8).astype(numpy.uint8)).convert("RGB")
        if stored.mode in ("RGBA", "LA", "PA") or "transparency" in stored.info:
            values = numpy.asarray(ImageOps.exif_transpose(stored).convert("RGBA")).astype(numpy.uint32)
            alpha = values[..., 3:]
            return Image.fromarray(((values[..., :3] * alpha + 255 * (255 - alpha) + 127) // 255).astype(numpy.uint8))
        elsewhere = "xmp" in stored.info or "Raw profile type exif" in stored.info or (stored.format == "WEBP" and "exif" in stored.info)
        if elsewhere or stored.format in ("BMP", "TIFF", "GIF", "MPO") or (stored.format == "WEBP" and getattr(stored, "n_frames", 1) > 1):
            return ImageOps.exif_transpose(stored).convert("RGB")
    return None


class Ours:
    def __init__(self, program, out):
        self.out = out
        self.process = subprocess.Popen([program, str(LEAST), str(MOST), str(out)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def patches(self, path):
        """(grid, patches) or (None, why)."""
        self.process.stdin.write(f"{path}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline().strip()
        if line.startswith("error") or not line:
            return None, line or "the program ended"
        grid = [int(n) for n in line.split()]
        return grid, numpy.fromfile(self.out, dtype=numpy.float32).reshape(math.prod(grid), -1)


def difference(ours, theirs, deviations):
    """In 255ths of a channel before normalisation: the largest and the mean."""
    apart = numpy.abs(ours - theirs).reshape(len(ours), 3, -1) * 255 * numpy.asarray(deviations, dtype=numpy.float32).reshape(1, 3, 1)
    return float(apart.max()), float(apart.mean())


def compare(files, ours, processor):
    found, complaints = defaultdict(list), []
    for path, kind in files:
        documented = as_documented(path)
        out = processor(images=[str(path) if documented is None else documented], return_tensors="np")
        grid, patches = ours.patches(path)
        if grid is None or grid != out["image_grid_thw"][0].tolist():
            complaints.append(f"{path.name} ({kind}): {patches if grid is None else grid}, wanted {out['image_grid_thw'][0].tolist()}")
            continue
        most, mean = difference(patches, out["pixel_values"].astype(numpy.float32), processor.image_std)
        found[kind + ("" if documented is None else " *")].append((most, mean))
        if most > LIMIT:
            complaints.append(f"{path.name} ({kind}): differs by {most:.2f}/255")
    return found, complaints


def photographs(folders):
    files = [p for f in folders for p in sorted(Path(f).rglob("*")) if p.suffix.lower() in (".jpg", ".jpeg", ".png") and p.stat().st_size > 20000]
    return [(p, f"photograph {Image.open(p).format}") for p in files]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--patches", required=True)
    p.add_argument("--files", type=int, default=500)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--photographs", nargs="*", default=[])
    p.add_argument("--keep", help="makes the files here and leaves them")
    a = p.parse_args()
    logging.set_verbosity_error()
    processor = AutoProcessor.from_pretrained(EXAMPLE).image_processor
    processor.size = {"shortest_edge": LEAST, "longest_edge": MOST}
    with tempfile.TemporaryDirectory(prefix="troupe-pixels-") as scratch:
        folder = Path(a.keep or scratch)
        folder.mkdir(parents=True, exist_ok=True)
        files = make(folder, a.files, a.seed) + photographs(a.photographs)
        found, complaints = compare(files, Ours(a.patches, Path(scratch) / "patches"), processor)
    print(f"{'kind':36s} files  largest     mean   (255ths; * as docs/data.md says)")
    for kind, rows in sorted(found.items()):
        print(f"{kind:36s} {len(rows):5d}  {max(m for m, _ in rows):7.3f}  {sum(m for _, m in rows) / len(rows):.5f}")
    for complaint in complaints:
        print("missed:", complaint)
    print(f"{len(files) - len(complaints)} of {len(files)} files agree")
    return 1 if complaints or not files else 0


if __name__ == "__main__":
    sys.exit(main())
