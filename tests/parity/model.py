"""Model folders and records for the parity runs: random fp32 weights saved by transformers, pictures of awkward sizes."""

import json
import random
import shutil
from dataclasses import dataclass
from pathlib import Path

import torch
from PIL import Image
from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "shapes" / "model"
PROCESSOR_FILES = ["tokenizer.json", "tokenizer_config.json", "preprocessor_config.json", "generation_config.json", "chat_template.json"]


@dataclass(frozen=True)
class ModelVariant:
    """`vocabulary` is odd on purpose: no tp but 1 divides it."""
    kv_heads: int = 3
    tied: bool = False
    vocabulary: int = 397


def make_config(variant):
    control = json.loads((EXAMPLE / "config.json").read_text())
    text = dict(hidden_size=96, num_hidden_layers=2, num_attention_heads=12, num_key_value_heads=variant.kv_heads, intermediate_size=132,
                vocab_size=variant.vocabulary, max_position_embeddings=2048, rms_norm_eps=1e-6, bos_token_id=0, eos_token_id=control["eos_token_id"],
                tie_word_embeddings=variant.tied, rope_parameters=dict(rope_type="default", rope_theta=200.0, mrope_section=[2, 1, 1]))
    vision = dict(depth=3, hidden_size=96, num_heads=12, intermediate_size=132, out_hidden_size=96, patch_size=14, spatial_merge_size=2,
                  temporal_patch_size=2, tokens_per_second=2, window_size=112, fullatt_block_indexes=[1])
    tokens = {k: control[k] for k in ("image_token_id", "video_token_id", "vision_start_token_id", "vision_end_token_id")}
    return Qwen2_5_VLConfig(text_config=text, vision_config=vision, tie_word_embeddings=variant.tied, **tokens)


def make_model(variant, folder):
    """Weights large enough that every parameter matters: matrices 0.08, norms round 1, biases round 0."""
    torch.manual_seed(7)
    model = Qwen2_5_VLForConditionalGeneration._from_config(make_config(variant), dtype=torch.float32)
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.normal_(0, 0.08 if p.ndim > 1 else 0.1)
            if p.ndim == 1 and not name.endswith("bias"):
                p.add_(1)
    model.save_pretrained(folder)
    for name in PROCESSOR_FILES:
        shutil.copy(EXAMPLE / name, folder / name)


def picture(rng, width, height):
    """Soft noise: every patch differs from its neighbours."""
    small = Image.new("RGB", (max(2, width // 7), max(2, height // 7)))
    small.putdata([tuple(rng.randrange(256) for _ in range(3)) for _ in range(small.width * small.height)])
    return small.resize((width, height), Image.BICUBIC)


def make_video(rng, folder, name, size):
    """What a record says of it: names of frames, or of a file."""
    width, height, count, *rest = size
    pictures = [picture(rng, width, height) for _ in range(count)]
    if len(rest) < 2:
        names = [f"{name}-{f}.png" for f in range(count)]
        for frame, drawn in zip(names, pictures):
            drawn.save(folder / frame)
        return names
    import av
    with av.open(str(folder / f"{name}.{rest[1]}"), "w") as file:
        stream = file.add_stream("mpeg4", rate=rest[0])
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        for drawn in pictures:
            file.mux(stream.encode(av.VideoFrame.from_image(drawn)))
        file.mux(stream.encode())
    return f"{name}.{rest[1]}"


WORDS = "how many shapes are there what colour is the circle square digit plus picture first second shown which".split()

# The pictures of each record, by size; steps of four records. Step 1 mixes everything, step 3 has no picture at all, step 4 has a
# record alone with pictures. 28 x 56 is two merged tokens: fewer than the ranks that share it.
PICTURES = [
    [(112, 140)], [], [(84, 56), (140, 196)], [(28, 56)],
    [], [(130, 75)], [], [(56, 56), (28, 56)],
    [], [], [], [],
    [(168, 168)], [], [], [],
    [(196, 84)], [(75, 90)], [(28, 84)], [(112, 112), (252, 70)],
]


def make_records(folder, pictures=PICTURES, weights=()):
    """`pictures`: sizes of each record's pictures; a record whose list is given as a tuple asks nothing but its pictures. A size with a third number is a
    video of so many frames, with a fourth that many of them a second, with a name behind it a file of that type. `weights`: what the answers count in turn; with them some second questions are a
    tool's words."""
    rng, answers = random.Random(11), 0
    (folder / "images").mkdir(parents=True, exist_ok=True)
    with open(folder / "records.jsonl", "w", encoding="utf-8") as out:
        for i, sizes in enumerate(pictures):
            media = [f"{i:02d}-{k}" for k in range(len(sizes))]
            names = [f"{name}.png" for name, size in zip(media, sizes) if len(size) == 2]
            for name, (width, height) in ((n, s) for n, s in zip(names, (s for s in sizes if len(s) == 2))):
                picture(rng, width, height).save(folder / "images" / name)
            videos = [make_video(rng, folder / "images", name, size) for name, size in zip(media, sizes) if len(size) > 2]
            say = lambda low, high: " ".join(rng.choice(WORDS) for _ in range(rng.randint(low, high)))
            marks = ["<image>" if len(size) == 2 else "<video>" for size in sizes]
            turns = [{"from": "human", "value": "".join(marks) if isinstance(sizes, tuple) else "".join(m + "\n" for m in marks) + say(2, 9)}, {"from": "gpt", "value": say(1, 6)}]
            if i % 5 == 2:
                turns += [{"from": "human", "value": say(2, 4)}, {"from": "gpt", "value": say(1, 3)}]
                if weights and i % 10 == 2:
                    turns[-2]["from"] = "tool"
            for turn in turns if weights else []:
                if turn["from"] == "gpt":
                    turn["weight"] = weights[answers % len(weights)]
                    answers += 1
            record = {"id": f"record-{i:02d}", "conversations": turns}
            if names:
                record["image"] = names[0] if len(names) == 1 else names
            if videos:
                record["videos"] = videos
                rates = [size[3] for size in sizes if len(size) == 4]
                if rates:
                    record["fps"] = rates[0] if len(rates) == 1 else rates
            out.write(json.dumps(record) + "\n")
