"""Writes inputs, weights, outputs and gradients of a small random Qwen2.5-VL vision tower, computed by transformers, to a safetensors file.

Usage: vision_reference.py OUT.safetensors
Tensors: weight.NAME and grad.NAME (NAME without "visual."), pixels, grid [images, 3], rows (merged rows in reading order), grad_rows.
"""

import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
from safetensors.torch import save_file
from transformers.models.qwen2_5_vl.configuration_qwen2_5_vl import Qwen2_5_VLVisionConfig
from transformers.models.qwen2_5_vl.modeling_qwen2_5_vl import Qwen2_5_VisionTransformerPretrainedModel

torch.manual_seed(7)
torch.set_num_threads(1)
config = Qwen2_5_VLVisionConfig(
    depth=4, hidden_size=96, num_heads=12, intermediate_size=100, out_hidden_size=40, patch_size=4, spatial_merge_size=2,
    temporal_patch_size=2, window_size=32, fullatt_block_indexes=[1, 3], in_channels=3)
config._attn_implementation = "eager"
model = Qwen2_5_VisionTransformerPretrainedModel(config).float().train()
with torch.no_grad():
    for name, p in model.named_parameters():
        # Norm weights and biases away from their initial values, so that a missing one is seen.
        p.copy_(torch.randn_like(p) * (0.08 if p.dim() > 1 else 0.3) + (1.0 if "norm" in name or "ln_q" in name else 0.0))

# Merged grids: 3 x 5; two frames of 4 x 6; one single token; 9 x 5 (border windows on both sides).
grid = torch.tensor([[1, 6, 10], [2, 8, 12], [1, 2, 2], [1, 18, 10]])
pixels = torch.randn(int(grid.prod(1).sum()), 3 * 2 * 4 * 4)
rows = model(pixels, grid_thw=grid).pooler_output
grad_rows = torch.randn_like(rows)
rows.backward(grad_rows)

out = {"pixels": pixels, "grid": grid, "rows": rows.detach(), "grad_rows": grad_rows}
for name, p in model.named_parameters():
    out["weight." + name] = p.detach()
    out["grad." + name] = p.grad
save_file({k: v.contiguous() for k, v in out.items()}, sys.argv[1])
