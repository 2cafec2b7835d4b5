#!/usr/bin/env python3
"""Writes pictures of many sizes and what the published image processor makes of them: FOLDER/manifest.json names, for each picture, its file,
grid and patches (raw fp32).

    python patches_reference.py FOLDER
"""
import json
import pathlib
import sys

import numpy
from PIL import Image
from transformers import Qwen2VLImageProcessor

SIZES = [(300, 400), (56, 56), (17, 23), (1, 1), (640, 480), (100, 1000), (28, 28), (84, 140), (901, 37), (600, 601)]


def picture(height, width, seed):
    rng = numpy.random.default_rng(seed)
    y, x = numpy.mgrid[0:height, 0:width]
    waves = [127.5 + 127.5 * numpy.sin(x / rng.uniform(2, 40) + y / rng.uniform(2, 40) + rng.uniform(0, 6)) for _ in range(3)]
    noise = rng.integers(-20, 20, (height, width, 3))
    return Image.fromarray(numpy.clip(numpy.stack(waves, -1) + noise, 0, 255).astype(numpy.uint8))


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    processor = Qwen2VLImageProcessor(min_pixels=56 * 56, max_pixels=256 * 28 * 28)
    entries = []
    for number, (height, width) in enumerate(SIZES):
        image = picture(height, width, number)
        for suffix, options in ((".png", {}), (".jpg", {"quality": 90}), (".webp", {"lossless": True})):
            name = f"{number}{suffix}"
            image.save(folder / name, **options)
            with Image.open(folder / name) as stored:
                out = processor(images=[stored.convert("RGB")], return_tensors="np")
            out["pixel_values"].astype("<f4").tofile(folder / (name + ".f32"))
            entries.append({"file": name, "grid": out["image_grid_thw"][0].tolist()})
    (folder / "manifest.json").write_text(json.dumps({"min_pixels": 56 * 56, "max_pixels": 256 * 28 * 28, "pictures": entries}))


if __name__ == "__main__":
    main()
