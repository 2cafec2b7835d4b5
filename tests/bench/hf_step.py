"""One training step of transformers' Qwen2.5-VL on CPUs, timed: forward, backward, AdamW, all in fp32.

Usage: python3 hf_step.py --model DIR [--make] [--images 4] [--grid 24x32] [--text 256] [--threads 2] [--steps 5] [--save-batch FILE | --batch FILE]
`--make` first writes a random model of the bench shape into DIR. Each sample is one picture of `grid` patches and `text` text tokens.
Prints one JSON line: medians in ms, peak resident memory in MiB, the loss of every step (two of warm-up first; lr 1e-4, no decay, no clipping).
"""

import argparse
import json
import os
import resource
import statistics
import time
from pathlib import Path

WARM_UP = 2


def options():
    p = argparse.ArgumentParser()
    p.add_argument("--model", required=True)
    p.add_argument("--make", action="store_true")
    p.add_argument("--images", type=int, default=4)
    p.add_argument("--grid", default="24x32", help="patches, height x width")
    p.add_argument("--text", type=int, default=256)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--steps", type=int, default=5)
    p.add_argument("--save-batch", help="safetensors with input_ids, labels, pixel_values, image_grid_thw")
    p.add_argument("--batch", help="a saved batch to use instead")
    return p.parse_args()


def make_model(folder):
    import torch
    from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration
    text = dict(vocab_size=32000, hidden_size=512, intermediate_size=1408, num_hidden_layers=6, num_attention_heads=8, num_key_value_heads=2,
                rms_norm_eps=1e-6, max_position_embeddings=8192, bos_token_id=1, eos_token_id=2,
                rope_parameters={"rope_type": "default", "rope_theta": 1e6, "mrope_section": [8, 12, 12]})
    vision = dict(depth=8, hidden_size=320, intermediate_size=864, num_heads=4, out_hidden_size=512, patch_size=14, temporal_patch_size=2,
                  spatial_merge_size=2, window_size=112, fullatt_block_indexes=[3, 7])
    torch.manual_seed(0)
    config = Qwen2_5_VLConfig(text_config=text, vision_config=vision, image_token_id=31990, video_token_id=31991, vision_start_token_id=31992,
                              vision_end_token_id=31993, tie_word_embeddings=False)
    Qwen2_5_VLForConditionalGeneration(config).save_pretrained(folder)


def new_batch(config, images, grid, text):
    import torch
    torch.manual_seed(1)
    height, width = (int(side) for side in grid.split("x"))
    merged = height * width // config.vision_config.spatial_merge_size ** 2
    patch = 3 * config.vision_config.temporal_patch_size * config.vision_config.patch_size ** 2
    words = torch.randint(5, min(1000, config.image_token_id), (images, text))
    picture = torch.tensor([config.vision_start_token_id] + [config.image_token_id] * merged + [config.vision_end_token_id]).expand(images, -1)
    ids = torch.cat([words[:, :8], picture, words[:, 8:]], dim=1)
    labels = ids.clone()
    labels[:, :8 + picture.shape[1]] = -100
    return {"input_ids": ids, "labels": labels, "pixel_values": torch.randn(images * height * width, patch),
            "image_grid_thw": torch.tensor([[1, height, width]] * images)}


def timed_steps(model, inputs, steps):
    """Seconds of (forward, backward, update) of each step, and the losses."""
    import torch
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.0, fused=True)
    seconds, losses = [], []
    for _ in range(WARM_UP + steps):
        marks = [time.perf_counter()]
        loss = model(**inputs).loss
        marks.append(time.perf_counter())
        loss.backward()
        marks.append(time.perf_counter())
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        marks.append(time.perf_counter())
        seconds.append([b - a for a, b in zip(marks, marks[1:])])
        losses.append(loss.item())
    return seconds[WARM_UP:], losses


def main():
    a = options()
    os.environ["OMP_NUM_THREADS"] = str(a.threads)
    os.environ["HF_HUB_OFFLINE"] = "1"
    import torch
    from safetensors.torch import load_file, save_file
    from transformers import Qwen2_5_VLForConditionalGeneration
    from transformers.utils import logging
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    torch.set_num_threads(a.threads)
    if a.make and not (Path(a.model) / "config.json").exists():
        make_model(a.model)
    model = Qwen2_5_VLForConditionalGeneration.from_pretrained(a.model, dtype=torch.float32, attn_implementation="sdpa").train()
    batch = load_file(a.batch) if a.batch else new_batch(model.config, a.images, a.grid, a.text)
    if a.save_batch:
        save_file({name: tensor.contiguous() for name, tensor in batch.items()}, a.save_batch)
    ids = batch["input_ids"]
    inputs = {**batch, "attention_mask": torch.ones_like(ids), "mm_token_type_ids": (ids == model.config.image_token_id).long(), "use_cache": False}
    seconds, losses = timed_steps(model, inputs, a.steps)
    median = lambda values: round(1e3 * statistics.median(values), 2)
    forward, backward, update = zip(*seconds)
    print(json.dumps({"step_ms": median([sum(s) for s in seconds]), "forward_ms": median(forward), "backward_ms": median(backward),
                      "update_ms": median(update), "threads": a.threads, "tokens": ids.numel(), "patches": batch["pixel_values"].shape[0],
                      "peak_rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, "losses": losses}))


if __name__ == "__main__":
    main()
