"""Trains the shapes example with transformers: what `quickstart.yaml` asks of Troupe, done by the library it is compared with.

Usage: python3 reference.py [--steps 600 ...]     needs torch, transformers, pillow
Prints the loss, then exact answers to held-out questions with their own pictures and with the pictures shuffled.
"""

import argparse
import json
import math
import time
from collections import defaultdict
from pathlib import Path

import torch
from PIL import Image
from transformers import AutoConfig, AutoProcessor, Qwen2_5_VLForConditionalGeneration

HERE = Path(__file__).parent


def options():
    p = argparse.ArgumentParser()
    p.add_argument("--model", default=str(HERE / "model"))
    p.add_argument("--steps", type=int, default=600)
    p.add_argument("--batch", type=int, default=16)
    p.add_argument("--lr", type=float, default=3e-3)
    p.add_argument("--vision-lr", type=float)
    p.add_argument("--warmup", type=int, default=50)
    p.add_argument("--min-ratio", type=float, default=0.05)
    p.add_argument("--decay", type=float, default=0.05)
    p.add_argument("--clip", type=float, default=1.0)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--eval-every", type=int, default=0)
    p.add_argument("--set", nargs="*", default=[], help="config overrides such as text.num_hidden_layers=2")
    return p.parse_args()


def read(name, processor):
    """Samples as tensors, each tokenized and scaled by transformers' own processor; only answers and their end of turn are supervised."""
    samples = []
    start = processor.tokenizer.encode("<|im_start|>assistant\n")
    end = processor.tokenizer.convert_tokens_to_ids("<|im_end|>")
    for line in open(HERE / name, encoding="utf-8"):
        record = json.loads(line)
        names = record.get("image", [])
        names = [names] if isinstance(names, str) else names
        messages = []
        for turn in record["conversations"]:
            parts = []
            for i, piece in enumerate(turn["value"].split("<image>")):
                parts += [{"type": "image"}] if i else []
                parts += [{"type": "text", "text": piece}] if piece else []
            messages.append({"role": {"human": "user", "gpt": "assistant"}[turn["from"]], "content": parts})
        text = processor.apply_chat_template(messages)
        images = [Image.open(HERE / "images" / n).convert("RGB") for n in names]
        x = processor(text=[text], images=images or None, return_tensors="pt")
        ids = x["input_ids"][0].tolist()
        labels, i = [-100] * len(ids), 0
        while i < len(ids):
            if ids[i:i + len(start)] == start:
                i += len(start)
                while True:
                    labels[i] = ids[i]
                    i += 1
                    if ids[i - 1] == end:
                        break
            else:
                i += 1
        samples.append({"id": record["id"], "ids": ids, "labels": labels, "pixels": x.get("pixel_values"), "grid": x.get("image_grid_thw")})
    return samples


def collate(samples, pad, image_token):
    width = max(len(s["ids"]) for s in samples)
    ids = torch.tensor([s["ids"] + [pad] * (width - len(s["ids"])) for s in samples])
    labels = torch.tensor([s["labels"] + [-100] * (width - len(s["labels"])) for s in samples])
    mask = torch.tensor([[1] * len(s["ids"]) + [0] * (width - len(s["ids"])) for s in samples])
    batch = {"input_ids": ids, "attention_mask": mask, "mm_token_type_ids": (ids == image_token).int()}
    pixels = [s["pixels"] for s in samples if s["pixels"] is not None]
    if pixels:
        batch["pixel_values"] = torch.cat(pixels)
        batch["image_grid_thw"] = torch.cat([s["grid"] for s in samples if s["grid"] is not None])
    return batch, labels


def loss_of(model, batch, labels):
    logits = model(**batch, use_cache=False).logits[:, :-1]
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100, reduction="sum"), logits


@torch.no_grad()
def evaluate(model, samples, pad, image_token, end):
    """Exact answers (end of turn not counted) by kind of question."""
    right, seen, loss, tokens = defaultdict(int), defaultdict(int), 0.0, 0
    for i in range(0, len(samples), 32):
        part = samples[i:i + 32]
        batch, labels = collate(part, pad, image_token)
        total, logits = loss_of(model, batch, labels)
        loss, tokens = loss + total.item(), tokens + (labels[:, 1:] >= 0).sum().item()
        target = labels[:, 1:]
        wrong = ((logits.argmax(-1) != target) & (target != -100) & (target != end)).any(1)
        for sample, bad in zip(part, wrong.tolist()):
            kind = sample["id"].rsplit("-", 1)[1]
            seen[kind] += 1
            right[kind] += not bad
    return sum(right.values()) / len(samples), loss / tokens, {k: round(right[k] / seen[k], 2) for k in sorted(seen)}


def new_model(a):
    config = AutoConfig.from_pretrained(a.model)
    for item in a.set:
        key, value = item.split("=")
        part, name = key.split(".")
        setattr({"text": config.text_config, "vision": config.vision_config}[part], name, json.loads(value))
    torch.manual_seed(a.seed)
    model = Qwen2_5_VLForConditionalGeneration._from_config(config, dtype=torch.float32, attn_implementation="sdpa")
    for name, p in model.named_parameters():
        with torch.no_grad():
            if p.ndim > 1:
                p.normal_(0, config.text_config.initializer_range)
            else:
                p.fill_(0.0 if name.endswith("bias") else 1.0)
    return model.train()


def main():
    a = options()
    torch.set_num_threads(a.threads)
    processor = AutoProcessor.from_pretrained(a.model)
    pad, end = processor.tokenizer.pad_token_id, processor.tokenizer.convert_tokens_to_ids("<|im_end|>")
    model = new_model(a)
    image_token = model.config.image_token_id
    train, held_out, shuffled = (read(f"{n}.jsonl", processor) for n in ("train", "eval", "eval-shuffled"))
    print(f"{sum(p.numel() for p in model.parameters())} parameters, {len(train)} samples of {sum(len(s['ids']) for s in train) / len(train):.0f} tokens")
    sight = [p for n, p in model.named_parameters() if "visual" in n]
    words = [p for n, p in model.named_parameters() if "visual" not in n]
    groups = [{"params": [p for p in part if (p.ndim > 1) == decayed], "weight_decay": a.decay * decayed, "peak": rate}
              for part, rate in ((sight, a.vision_lr or a.lr), (words, a.lr)) for decayed in (True, False)]
    optimizer = torch.optim.AdamW(groups, lr=a.lr, betas=(0.9, 0.95), eps=1e-8)
    order, begin, shown = [], time.time(), []
    generator = torch.Generator().manual_seed(a.seed)
    for step in range(1, a.steps + 1):
        if len(order) < a.batch:
            order += torch.randperm(len(train), generator=generator).tolist()
        part, order = [train[i] for i in order[:a.batch]], order[a.batch:]
        x = min(1.0, step / a.warmup) if step <= a.warmup else \
            a.min_ratio + (1 - a.min_ratio) * 0.5 * (1 + math.cos(math.pi * (step - a.warmup) / (a.steps - a.warmup)))
        for group in optimizer.param_groups:
            group["lr"] = group["peak"] * x
        batch, labels = collate(part, pad, image_token)
        loss = loss_of(model, batch, labels)[0] / (labels[:, 1:] >= 0).sum()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), a.clip)
        optimizer.step()
        optimizer.zero_grad()
        shown.append(loss.item())
        if step % 50 == 0 or step == 1:
            print(f"step {step} loss {sum(shown[-50:]) / len(shown[-50:]):.4f} seconds {time.time() - begin:.1f}", flush=True)
        if a.eval_every and step % a.eval_every == 0:
            print(evaluate(model, held_out, pad, image_token, end), flush=True)
    print("held out", evaluate(model, held_out, pad, image_token, end))
    print("shuffled", evaluate(model, shuffled, pad, image_token, end))


if __name__ == "__main__":
    main()
