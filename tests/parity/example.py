"""Checks the shipped shapes example with transformers: both forms of the config are one model, records are whole, answers need the pictures.

Usage: python3 example.py
"""

import json
import sys
from collections import Counter, defaultdict
from pathlib import Path

from PIL import Image
from transformers import AutoConfig, AutoProcessor

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "shapes"


def same_configs(complaints):
    flat, nested = (AutoConfig.from_pretrained(EXAMPLE / name) for name in ("model", "model-nested"))
    for part in ("text_config", "vision_config"):
        a, b = (getattr(config, part).to_dict() for config in (flat, nested))
        (a.get("rope_parameters") or {}).pop("type", None)
        for key in sorted(set(a) | set(b)):
            if a.get(key) != b.get(key) and key not in ("_name_or_path", "dtype", "in_chans", "spatial_patch_size", "model_type", "architectures"):
                complaints.append(f"{part}.{key}: {a.get(key)} in model, {b.get(key)} in model-nested")


def whole_records(complaints):
    processor = AutoProcessor.from_pretrained(EXAMPLE / "model")
    sizes, formats = set(), set()
    for name in ("train", "eval", "eval-shuffled"):
        pictures = Counter()
        for line in open(EXAMPLE / f"{name}.jsonl", encoding="utf-8"):
            record = json.loads(line)
            images = record.get("image", [])
            images = [images] if isinstance(images, str) else images
            pictures[len(images)] += 1
            if "".join(turn["value"] for turn in record["conversations"]).count("<image>") != len(images):
                complaints.append(f"{name}: {record['id']} has {len(images)} images and another number of placeholders")
            for turn in record["conversations"]:
                ids = processor.tokenizer.encode(turn["value"])
                if processor.tokenizer.decode(ids) != turn["value"]:
                    complaints.append(f"{name}: {record['id']} does not survive the tokenizer")
            for image in images:
                with Image.open(EXAMPLE / "images" / image) as picture:
                    sizes.add(picture.size)
                    formats.add(picture.format)
        if not all(pictures[k] for k in (0, 1, 2)):
            complaints.append(f"{name}: records with 0, 1 and 2 pictures: {dict(pictures)}")
    if formats != {"JPEG", "PNG"} or len(sizes) < 8:
        complaints.append(f"pictures of {len(sizes)} sizes in {formats}")


def answers_need_pictures(complaints):
    """The best guess without a picture: the commonest answer of each question."""
    answers, shuffled = defaultdict(Counter), 0
    own = {}
    for line in open(EXAMPLE / "eval.jsonl", encoding="utf-8"):
        record = json.loads(line)
        own[record["id"]] = record.get("image")
        answers[record["conversations"][0]["value"]][record["conversations"][1]["value"]] += 1
    guessed = sum(max(counter.values()) for counter in answers.values()) / sum(map(lambda c: sum(c.values()), answers.values()))
    if guessed > 0.3:
        complaints.append(f"eval: guessing from the words alone answers {guessed:.2f}")
    for line in open(EXAMPLE / "eval-shuffled.jsonl", encoding="utf-8"):
        record = json.loads(line)
        shuffled += record.get("image") is not None and record["image"] == own[record["id"]]
    if shuffled:
        complaints.append(f"eval-shuffled: {shuffled} records keep their pictures")


def main():
    complaints = []
    for check in (same_configs, whole_records, answers_need_pictures):
        check(complaints)
    print("\n".join(complaints[:20]) or "the shapes example is whole")
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
