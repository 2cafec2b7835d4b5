"""Videos as samples beside transformers' processor and get_rope_index: token ids, what is supervised, positions, grids and pixels.

Usage: python3 videos.py --samples PROGRAM
Lists of frames of many lengths, sizes and rates, alone and among pictures, with each form of the processor's files. Exit code 1 on any miss.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy
import torch
from transformers import AutoProcessor, Qwen2_5_VLForConditionalGeneration
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


def compare(a, model, folder, records, images, video, exact):
    """Complaints, samples compared, the largest difference of a value. `exact`: samples whose pixels must agree to rounding."""
    out = Path(f"{folder}-out")
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
    a = p.parse_args()
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
            complaints, compared = compare(a, model, folder, data / "frames.jsonl", data, {}, lambda id: id not in ("mixed", "twice"))
            missed += bool(complaints)
            print(f"{'ok  ' if not complaints else 'FAIL'} frames, {name}: {compared}")
            print("".join(f"       {c}\n" for c in complaints[:8]), end="")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
