"""Reference losses and gradients of the Qwen2.5-VL text model from transformers, for the text decoder's tests.

Usage: text_reference.py FOLDER          one safetensors file a case
Every case has several samples. Each sample is run alone; losses and gradients are sums over the samples, times `scale`.
In a file: w.NAME and g.NAME (classic parameter names), the batch as the decoder takes it, and what it should answer.
"""
import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"
import torch
from safetensors.torch import save_file
from transformers.models.qwen2_5_vl.configuration_qwen2_5_vl import Qwen2_5_VLTextConfig
from transformers.models.qwen2_5_vl.modeling_qwen2_5_vl import Qwen2_5_VLTextModel

torch.set_num_threads(1)
LENGTHS = [7, 13, 4, 1, 22]
VISION = {0: (2, 3), 1: (4, 8), 4: (1, 10)}  # sample: first and end of its vision rows
VOCABULARY, HIDDEN, INTERMEDIATE, LAYERS, HEADS, SECTION = 131, 192, 90, 3, 12, [2, 3, 3]
IMAGE_TOKEN, SCALE = 130, 1 / 29


def make_model(kv_heads, tied):
    config = Qwen2_5_VLTextConfig(
        hidden_size=HIDDEN, num_hidden_layers=LAYERS, num_attention_heads=HEADS, num_key_value_heads=kv_heads,
        intermediate_size=INTERMEDIATE, vocab_size=VOCABULARY, max_position_embeddings=256, rms_norm_eps=1e-6,
        rope_parameters=dict(rope_type="default", rope_theta=1e4, mrope_section=SECTION), pad_token_id=None)
    config._attn_implementation = "eager"
    model = Qwen2_5_VLTextModel(config).float()
    head = model.embed_tokens.weight if tied else torch.nn.Parameter(torch.randn(VOCABULARY, HIDDEN) * 0.1)
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.copy_(1 + 0.2 * torch.randn_like(p) if name.endswith("norm.weight") else 0.1 * torch.randn_like(p))
    return model, head


def write_case(path, kv_heads, tied, with_vision, supervised=True):
    model, head = make_model(kv_heads, tied)
    out = dict(ids=[], positions=[], loss_rows=[], targets=[], loss_samples=[], vision_positions=[], sample_loss=[], predicted=[], next_tokens=[])
    count = sum(e - b for b, e in VISION.values()) if with_vision else 0
    vision = torch.randn(count, HIDDEN).requires_grad_()
    start = used = correct = 0
    total = torch.zeros(())
    for sample, length in enumerate(LENGTHS):
        ids = torch.randint(0, VOCABULARY - 1, (length,))
        positions = torch.sort(torch.randint(0, 40, (3, length)), 1).values
        embedded = model.embed_tokens(ids)
        if with_vision and sample in VISION:
            b, e = VISION[sample]
            ids[b:e] = IMAGE_TOKEN
            embedded = torch.cat([model.embed_tokens(ids[:b]), vision[used:used + e - b], model.embed_tokens(ids[e:])])
            out["vision_positions"] += range(start + b, start + e)
            used += e - b
        rows = [] if sample == 2 or not supervised else [i for i in range(length) if i % 3 != 1]
        targets = torch.randint(0, VOCABULARY, (len(rows),))
        hidden = model(inputs_embeds=embedded[None], position_ids=positions[:, None], use_cache=False).last_hidden_state[0]
        logits = hidden @ head.T
        best = logits.argmax(-1)
        if rows:
            targets[0] = best[rows[0]]  # at least one right answer a sample
        loss = torch.nn.functional.cross_entropy(logits[rows], targets, reduction="sum")
        total = total + loss
        correct += int((best[rows] == targets).sum())
        out["ids"] += ids.tolist()
        out["positions"].append(positions)
        out["loss_rows"] += [start + i for i in rows]
        out["targets"] += targets.tolist()
        out["loss_samples"] += [sample] * len(rows)
        out["sample_loss"].append(loss.item())
        out["predicted"] += best[rows].tolist()
        out["next_tokens"].append(int(best[-1]))
        start += length
    if supervised:
        (total * SCALE).backward()
    tensors = {k: torch.tensor(v, dtype=torch.float32 if k == "sample_loss" else torch.int64) for k, v in out.items() if k != "positions"}
    tensors["positions"] = torch.cat(out["positions"], 1)
    tensors["starts"] = torch.tensor([sum(LENGTHS[:i]) for i in range(len(LENGTHS) + 1)])
    tensors["vision_rows"], tensors["g.vision_rows"] = vision.detach(), vision.grad if vision.grad is not None else torch.zeros_like(vision)
    tensors["expected"] = torch.tensor([total.item(), correct], dtype=torch.float32)
    named = {"model." + n: p for n, p in model.named_parameters()}
    if not tied:
        named["lm_head.weight"] = head
    for name, p in named.items():
        tensors["w." + name] = p.detach()
        tensors["g." + name] = p.grad if p.grad is not None else torch.zeros_like(p)
    save_file({k: v.contiguous() for k, v in tensors.items()}, path)


folder = sys.argv[1]
os.makedirs(folder, exist_ok=True)
torch.manual_seed(7)
for heads in (1, 2, 3, 12):
    for tied in (False, True):
        write_case(f"{folder}/kv{heads}_{'tied' if tied else 'untied'}.safetensors", heads, tied, True)
write_case(f"{folder}/text_only.safetensors", 2, True, False)
write_case(f"{folder}/unsupervised.safetensors", 2, False, True, supervised=False)
