"""One training step of transformers' Qwen2.5-VL on a GPU in bf16, timed: forward, backward, fused AdamW.

Usage: python3 hf_gpu_step.py --model DIR [--images 8] [--grid 32x32] [--text 512] [--steps 5] [--variant varlen|compile|sdpa]
DIR needs a config.json only: weights are random. Each sample is one picture of `grid` patches and `text` text tokens. `sdpa` is
transformers as it comes; `varlen` gives its vision encoder attention over variable lengths; `compile` also compiles each block.
Prints one JSON line: medians in ms and peak memory in MiB. Weights, gradients and optimizer state are all bf16, as that script's users train.
"""

import argparse
import json
import os
import statistics

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from transformers import AutoConfig, Qwen2_5_VLForConditionalGeneration
from transformers.models.qwen2_5_vl import modeling_qwen2_5_vl as modeling

WARM_UP = 3


def options():
    p = argparse.ArgumentParser()
    p.add_argument("--model", required=True)
    p.add_argument("--images", type=int, default=8)
    p.add_argument("--grid", default="32x32", help="patches, height x width")
    p.add_argument("--text", type=int, default=512)
    p.add_argument("--steps", type=int, default=5)
    p.add_argument("--variant", default="varlen", choices=("sdpa", "varlen", "compile"))
    return p.parse_args()


longest = {}  # by the shape of the bounds: reading it from the GPU each time would stall it


def attend_over_segments(self, hidden_states, cu_seqlens, *_, position_embeddings, **__):
    rows = hidden_states.shape[0]
    q, k, v = self.qkv(hidden_states).view(rows, 3, self.num_heads, -1).unbind(1)
    q, k = modeling.apply_rotary_pos_emb_vision(q, k, *position_embeddings)
    key = (len(cu_seqlens), rows)
    if key not in longest:
        longest[key] = int(cu_seqlens.diff().max())
    bounds = cu_seqlens.int()
    out = torch.ops.aten._flash_attention_forward(q.contiguous(), k.contiguous(), v.contiguous(), bounds, bounds, longest[key], longest[key], 0.0,
                                                  False, False)[0]
    return self.proj(out.view(rows, -1))


def random_model(folder):
    config = AutoConfig.from_pretrained(folder)
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        model = Qwen2_5_VLForConditionalGeneration._from_config(config, attn_implementation="sdpa")
    torch.set_default_dtype(before)
    return model.to("cuda", torch.bfloat16).train()


def new_batch(config, images, grid, text):
    height, width = (int(side) for side in grid.split("x"))
    vision = config.vision_config
    merged = height * width // vision.spatial_merge_size ** 2
    ids = torch.randint(5, min(1000, config.image_token_id), (images, text + merged + 2), device="cuda")
    ids[:, 8] = config.vision_start_token_id
    ids[:, 9:9 + merged] = config.image_token_id
    ids[:, 9 + merged] = config.vision_end_token_id
    labels = ids.clone()
    labels[:, :10 + merged] = -100
    pixels = torch.randn(images * height * width, 3 * vision.temporal_patch_size * vision.patch_size ** 2, device="cuda", dtype=torch.bfloat16)
    return {"input_ids": ids, "labels": labels, "pixel_values": pixels, "image_grid_thw": torch.tensor([[1, height, width]] * images, device="cuda"),
            "attention_mask": torch.ones_like(ids), "mm_token_type_ids": (ids == config.image_token_id).long(), "use_cache": False}


def main():
    a = options()
    torch.manual_seed(0)
    if a.variant != "sdpa":
        modeling.Qwen2_5_VLVisionAttention.forward = attend_over_segments
    model = random_model(a.model)
    if a.variant == "compile":
        for block in [*model.model.visual.blocks, *model.model.language_model.layers, model.model.visual.merger]:
            block.compile()
    batch = new_batch(model.config, a.images, a.grid, a.text)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, weight_decay=0.0, fused=True)
    milliseconds, losses = [], []
    for step in range(WARM_UP + a.steps):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        loss = model(**batch).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
        end.record()
        torch.cuda.synchronize()
        milliseconds.append(begin.elapsed_time(end))
        losses.append(loss.item())
    print(json.dumps({"variant": a.variant, "device": torch.cuda.get_device_name(), "step_ms": round(statistics.median(milliseconds[WARM_UP:]), 1),
                      "tokens": batch["input_ids"].numel(), "patches": batch["pixel_values"].shape[0],
                      "peak_memory_mib": torch.cuda.max_memory_allocated() >> 20, "losses": [round(x, 4) for x in losses]}))


if __name__ == "__main__":
    main()
