"""What transformers computes for the same weights and records: losses, gradients, vision rows, weights after AdamW."""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path

import torch
from PIL import Image
from safetensors.torch import load_file
from transformers import AutoProcessor, Qwen2_5_VLForConditionalGeneration


@dataclass(frozen=True)
class Training:
    """Settings of a run, written into the job spec and obeyed by the reference.

    eps is far above its usual value on purpose. Adam divides by the gradient's own size, so with eps near zero an element whose
    gradient happens to be near zero moves by the full rate in a direction that rounding decides, and a missing clip factor
    cancels. With eps near the size of a clipped gradient, the update is a smooth function of the gradient and of the clip factor.
    """
    steps: int = 5
    batch: int = 4
    lr: float = 1e-3
    rates: tuple = ()            # ((component, rate), ...)
    frozen: tuple = ()           # components
    weight_decay: float = 5.0
    clip: float = 0.05
    eps: float = 2e-5
    betas: tuple = (0.9, 0.95)

    def rate(self, component):
        return dict(self.rates).get(component, self.lr)


@dataclass
class Reference:
    losses: list = field(default_factory=list)
    norms: list = field(default_factory=list)
    supervised: list = field(default_factory=list)
    vision_rows: list = field(default_factory=list)       # merged tokens a step
    sample_losses: list = field(default_factory=list)     # of step 1: (id, sum of token losses)
    gradients: dict = field(default_factory=dict)         # of step 1, by the name on disk
    rows: dict = field(default_factory=dict)              # of step 1: record id -> [T, H]
    before: dict = field(default_factory=dict)
    after: dict = field(default_factory=dict)


def disk_name(name):
    """In-memory name of transformers 5 -> the classic name on disk."""
    return re.sub(r"^model\.(language_model|visual)\.", lambda m: "model." if m[1] == "language_model" else "visual.", name)


def component(name):
    return "merger" if name.startswith("visual.merger.") else "vision" if name.startswith("visual.") else "text"


def labels_of(ids, processor, answers):
    """Answers and their end of turn are supervised, nothing else. `answers`: what the tokens of each answer count; 0: they are not supervised."""
    start = processor.tokenizer.encode("<|im_start|>assistant\n")
    end = processor.tokenizer.convert_tokens_to_ids("<|im_end|>")
    labels, weights, inside, answers = [], [], False, iter(answers)
    for i, token in enumerate(ids):
        if not inside and ids[max(0, i - len(start)):i] == start:
            inside, weight = True, next(answers)
        labels.append(token if inside and weight else -100)
        weights.append(float(weight) if inside else 0.0)
        inside = inside and token != end
    return labels, weights


def frames_of(video, images):
    return [Image.open(Path(images) / name).convert("RGB") for name in video]


def file_frames(path):
    """Frames of a file in RGB, upright, and what the packets say of its length and rate."""
    import av
    import numpy
    with av.open(str(path)) as file:
        stream = file.streams.video[0]
        shown = [p for p in file.demux(stream) if p.pts is not None and not p.is_discard]
        base = stream.time_base
        seconds = [float(pts) * base.numerator / base.denominator for pts in (min(p.pts for p in shown), max(p.pts + p.duration for p in shown))]
    with av.open(str(path)) as file:
        frames = sorted(file.decode(video=0), key=lambda f: f.pts)
        turns = frames[0].rotation // 90
        return numpy.stack([numpy.rot90(f.to_ndarray(format="rgb24"), turns) for f in frames]), len(shown) / (seconds[1] - seconds[0])


def file_inputs(record, images, video):
    read = [file_frames(Path(images) / name) for name in record["videos"]]
    facts = [{"total_num_frames": len(frames), "fps": fps} for frames, fps in read]
    return {"videos": [frames for frames, _ in read], "video_metadata": facts, "do_sample_frames": True,
            "fps": video.get("fps", 2), "min_frames": video.get("min_frames", 4), "max_frames": video.get("max_frames", 768)}


def video_inputs(record, images, video):
    """The videos of a record as the processor takes them: files, or lists of frames with how many a second where the record says so."""
    videos = record.get("videos", [])
    if not videos:
        return {}
    if isinstance(videos[0], str):
        return file_inputs(record, images, video)
    rates = record.get("fps")
    rates = rates if isinstance(rates, list) else [rates or video.get("fps")] * len(videos)
    facts = [{"total_num_frames": len(v), "fps": fps, "frames_indices": list(range(len(v)))} for v, fps in zip(videos, rates)]
    return {"videos": [frames_of(v, images) for v in videos], "video_metadata": facts}


def read_samples(records, images, processor, video=None):
    """`video`: the spec's data.video."""
    samples = []
    for line in open(records, encoding="utf-8"):
        record = json.loads(line)
        names = record.get("image", [])
        names = [names] if isinstance(names, str) else names
        messages = []
        for turn in record["conversations"]:
            parts = []
            for piece in re.split("(<image>|<video>)", turn["value"]):
                medium = re.fullmatch("<(image|video)>", piece)
                parts += [{"type": medium[1]}] if medium else [{"type": "text", "text": piece}] if piece else []
            messages.append({"role": {"human": "user", "gpt": "assistant"}.get(turn["from"], turn["from"]), "content": parts})
        pictures = [Image.open(Path(images) / n).convert("RGB") for n in names]
        x = dict(processor(text=[processor.apply_chat_template(messages)], images=pictures or None, return_tensors="pt", **video_inputs(record, images, video or {})))
        answers = [turn.get("weight", 1) for turn in record["conversations"] if turn["from"] == "gpt"]
        labels, weights = (torch.tensor([row]) for row in labels_of(x["input_ids"][0].tolist(), processor, answers))
        samples.append({"id": record["id"], "inputs": x, "labels": labels, "weights": weights, "supervised": int((labels[:, 1:] >= 0).sum())})
    return samples


def sample_loss(model, sample):
    """Weighted sum of the token losses of one sample, alone in its sequence."""
    logits = model(**sample["inputs"], use_cache=False).logits[0, :-1]
    losses = torch.nn.functional.cross_entropy(logits, sample["labels"][0, 1:], ignore_index=-100, reduction="none")
    return (losses * sample["weights"][0, 1:]).sum()


def pads(model, sample, kind):
    return sample["inputs"]["input_ids"][0] == getattr(model.config, f"{kind}_token_id")


def vision_rows(model, sample):
    """Merged rows of pictures and videos in the order of the sequence."""
    x = sample["inputs"]
    where = {kind: pads(model, sample, kind) for kind in ("image", "video")}
    out = torch.zeros(len(x["input_ids"][0]), model.config.text_config.hidden_size)
    for kind, pixels in (("image", "pixel_values"), ("video", "pixel_values_videos")):
        if pixels in x:
            with torch.no_grad():
                rows = model.model.visual(x[pixels].to(model.dtype), grid_thw=x[f"{kind}_grid_thw"])
            out[where[kind]] = (rows if torch.is_tensor(rows) else rows.pooler_output).clone().to(out.dtype)
    return out[where["image"] | where["video"]]


def optimizer_of(parameters, training):
    groups = [{"params": [p], "lr": training.rate(component(name)), "weight_decay": training.weight_decay if p.ndim > 1 else 0.0}
              for name, p in parameters.items() if p.requires_grad]
    return torch.optim.AdamW(groups, betas=training.betas, eps=training.eps)


def run_reference(model_folder, records, images, training, dtype=torch.float32):
    processor = AutoProcessor.from_pretrained(model_folder)
    model = Qwen2_5_VLForConditionalGeneration.from_pretrained(model_folder, dtype=dtype, attn_implementation="sdpa").train()
    samples = read_samples(records, images, processor)
    for sample in samples:
        for pixels in ("pixel_values", "pixel_values_videos"):
            if pixels in sample["inputs"]:
                sample["inputs"][pixels] = sample["inputs"][pixels].to(dtype)
    parameters = {disk_name(name): p for name, p in model.named_parameters()}
    for name, p in parameters.items():
        p.requires_grad_(component(name) not in training.frozen)
    trained = [p for p in parameters.values() if p.requires_grad]
    optimizer, out = optimizer_of(parameters, training), Reference()
    out.before = {name: p.detach().clone() for name, p in parameters.items()}
    for step in range(training.steps):
        batch = [samples[(step * training.batch + i) % len(samples)] for i in range(training.batch)]
        supervised, total = sum(s["supervised"] for s in batch), 0.0
        if step == 0:
            out.rows = {s["id"]: vision_rows(model, s) for s in batch}
        for sample in batch:
            loss = sample_loss(model, sample)
            if loss.requires_grad:  # not so for a sample without pictures when the text part is frozen
                (loss / max(supervised, 1)).backward()
            total += loss.item()
            if step == 0:
                out.sample_losses.append((sample["id"], loss.item()))
        for p in trained:  # a weight without gradient is updated as with gradient zero
            if p.grad is None:
                p.grad = torch.zeros_like(p)
        if step == 0:
            out.gradients = {name: p.grad.clone() for name, p in parameters.items() if p.requires_grad}
        out.losses.append(total / max(supervised, 1))
        out.supervised.append(supervised)
        out.vision_rows.append(sum(int(pads(model, s, kind).sum()) for s in batch for kind in ("image", "video")))
        norm = torch.nn.utils.clip_grad_norm_(trained, training.clip if training.clip > 0 else float("inf"))
        out.norms.append(norm.item())
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    out.after = {name: p.detach().clone() for name, p in parameters.items()}
    return out


def names_on_disk(model_folder):
    return set(load_file(Path(model_folder) / "model.safetensors"))
