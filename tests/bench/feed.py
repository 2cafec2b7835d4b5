#!/usr/bin/env python3
"""Times how fast pictures in files become patches, beside a torch DataLoader with transformers' processor and as many workers, in one run.

    .deps/python/bin/python tests/bench/feed.py --troupe BUILD/bin/troupe [--images 96] [--size 1024x768] [--threads 2] [--rounds 3]

JPEG files of a photograph's size and grain. `troupe bench feed` reads records, tokenizes, decodes and cuts patches in threads; the DataLoader's
workers, processes of one thread each, open, decode and process the same files with the image processor of the same folder (torchvision's path).
In turns; the best round of each counts. Exit code 1 when the processor gives another number of patches, or when we are not 1.5x as fast.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("HF_HUB_OFFLINE", "1")
import numpy
import torch
from PIL import Image
from transformers import AutoProcessor
from transformers.utils import logging

ROOT = pathlib.Path(__file__).resolve().parents[2]
LEAST_RATIO, BATCH = 1.5, 8
JOB = """name: feed
model: {{path: {model}, init: random, dtype: fp32}}
device: cpu
data: {{sources: [{{path: {folder}/records.jsonl}}], max_sample_tokens: 100000, min_pixels: 3136, max_pixels: 1003520}}
training: {{epochs: 1.0, global_batch: {batch}}}
checkpoint: {{export: never}}
"""


def photograph(rng, width, height):
    """Shapes at every scale and some grain, which is what makes a photograph's bytes."""
    out = numpy.zeros((height, width, 3))
    for cells, weight in ((4, 90), (16, 50), (64, 25), (256, 12)):
        small = Image.fromarray(rng.integers(0, 256, (cells * height // width + 1, cells, 3), dtype=numpy.uint8))
        out += (numpy.asarray(small.resize((width, height), Image.BICUBIC), dtype=float) - 128) / 128 * weight
    return Image.fromarray(numpy.clip(out + 128 + rng.normal(0, 4, out.shape), 0, 255).astype(numpy.uint8))


def make(options, folder):
    rng = numpy.random.default_rng(5)
    width, height = map(int, options.size.split("x"))
    with open(folder / "records.jsonl", "w") as out:
        for i in range(options.images):
            photograph(rng, width, height).save(folder / f"{i:04d}.jpg", quality=90)
            turns = [{"from": "human", "value": "<image>\nWhat is it?"}, {"from": "gpt", "value": "A shape."}]
            out.write(json.dumps({"image": f"{i:04d}.jpg", "conversations": turns}) + "\n")
    (folder / "job.yaml").write_text(JOB.format(model=options.model, folder=folder, batch=BATCH))


class Pictures(torch.utils.data.Dataset):
    def __init__(self, options, folder):
        self.paths = sorted(folder.glob("*.jpg"))
        self.processor = AutoProcessor.from_pretrained(options.model, min_pixels=3136, max_pixels=1003520).image_processor
        self.processor.size = {"shortest_edge": 3136, "longest_edge": 1003520}

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        return self.processor(images=[Image.open(self.paths[i]).convert("RGB")], return_tensors="pt")["pixel_values"]


def time_loader(options, folder):
    """Patches and seconds of an epoch, after one that starts the workers."""
    data = Pictures(options, folder)
    loader = torch.utils.data.DataLoader(data, batch_size=BATCH, num_workers=options.threads, collate_fn=torch.cat, persistent_workers=True)
    for _ in loader:
        pass
    begin = time.monotonic()
    patches = sum(batch.shape[0] for batch in loader)
    return patches, time.monotonic() - begin, type(data.processor).__name__


def time_troupe(options, folder):
    out = subprocess.run([options.troupe, "bench", "feed", str(folder / "job.yaml"), "--threads", str(options.threads), "--json"], capture_output=True, text=True, timeout=600)
    if out.returncode:
        sys.exit(f"troupe bench feed: exit code {out.returncode}: {out.stderr[-2000:]}")
    result = json.loads(out.stdout)
    return result["patches"], result["seconds"]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--troupe", required=True)
    p.add_argument("--model", default=str(ROOT / "examples" / "shapes" / "model"))
    p.add_argument("--images", type=int, default=96)
    p.add_argument("--size", default="1024x768")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--rounds", type=int, default=3)
    options = p.parse_args()
    logging.set_verbosity_error()
    with tempfile.TemporaryDirectory(prefix="troupe-feed-") as name:
        folder = pathlib.Path(name)
        make(options, folder)
        ours, theirs, patches = [], [], set()
        for _ in range(options.rounds):
            count, seconds = time_troupe(options, folder)
            patches.add(count)
            ours.append(seconds)
            count, seconds, processor = time_loader(options, folder)
            patches.add(count)
            theirs.append(seconds)
    result = {"images": options.images, "size": options.size, "threads": options.threads, "patches": sorted(patches), "troupe_images_per_s": round(options.images / min(ours), 1),
              "loader_images_per_s": round(options.images / min(theirs), 1), "processor": processor, "ratio": round(min(theirs) / min(ours), 3)}
    print(json.dumps(result))
    if len(patches) != 1:
        sys.exit("missed: the numbers of patches differ")
    if result["ratio"] < LEAST_RATIO:
        sys.exit(f"missed: {result['ratio']}x, less than {LEAST_RATIO}x")


if __name__ == "__main__":
    main()
