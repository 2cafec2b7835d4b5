"""The layouts that must agree with transformers, and the job spec of each."""

from dataclasses import dataclass, field

from model import ModelVariant
from reference import Training

TWO_RATES = Training(rates=(("vision", 2e-3), ("merger", 5e-4)))


@dataclass(frozen=True)
class Layout:
    name: str
    vision: tuple = (1, 1)             # dp, sp
    text: tuple = (1, 1)               # dp, tp
    placement: str = "colocated"
    zero: tuple = (1, 0)               # vision, text
    tp_sequence: bool = False
    microbatch: str = "{samples: 1}"
    pack_tokens: int = 0
    unit_images: int = 0
    model: ModelVariant = field(default_factory=ModelVariant)
    training: Training = field(default_factory=Training)
    schedule: str = "{}"
    bucket_bytes: int = 0              # 0: the default, more than a component of the test's model
    repeat: bool = False               # run twice, equal in every bit
    ways: tuple = ()                   # other schedules that give every bit the same


def variant(**settings):
    return ModelVariant(**settings)


# Slots are named by node; without a manifest this machine is node `local`.
OVERLAP_3 = '{vision: ["local:0-1"], text: ["local:1-2"]}'
WAYS = ("{credits: 1}", "{credits: 4}", "{credits: 0, memory_gib: 0.0001}", "{channel: tcp}", "{channel: shared_memory, credits: 1}")
OVERLAP_5 = '{vision: ["local:0-3"], text: ["local:3-4"]}'

LAYOUTS = [
    Layout("one-rank", zero=(0, 0), repeat=True),
    Layout("one-rank-units-of-two", microbatch="{samples: 2}"),
    Layout("sp2-tp2", (1, 2), (1, 2), repeat=True, ways=("{memory_gib: 0.0001}", "{channel: tcp}")),
    Layout("sp2-tp2-replicated-optimizer", (1, 2), (1, 2), zero=(0, 0), microbatch="{samples: 2}"),
    Layout("sp4-tp4-sequence", (1, 4), (1, 4), tp_sequence=True),
    Layout("sp3-tp3-odd-vocabulary-C06", (1, 3), (1, 3), microbatch="{samples: 4}"),
    Layout("dp2-dp2", (2, 1), (2, 1), zero=(1, 1)),
    Layout("dp2sp2-dp2tp2-sequence", (2, 2), (2, 2), zero=(1, 1), tp_sequence=True, repeat=True),
    Layout("dp2sp2-dp2tp2-packed", (2, 2), (2, 2), zero=(0, 1), pack_tokens=256),
    Layout("one-rank-packed", pack_tokens=160),
    Layout("sp2-tp3-packed-sequence", (1, 2), (1, 3), placement="disjoint", tp_sequence=True, pack_tokens=256),
    Layout("token-budget", (1, 2), (1, 2), microbatch="{tokens: 128}", unit_images=1),
    Layout("disjoint-4-to-1", (1, 4), (1, 1), placement="disjoint"),
    Layout("disjoint-1-to-4", (1, 1), (1, 4), placement="disjoint", unit_images=2),
    Layout("disjoint-3-to-2", (1, 3), (1, 2), placement="disjoint", unit_images=1, repeat=True, ways=WAYS),
    Layout("disjoint-2-to-3", (1, 2), (1, 3), placement="disjoint", tp_sequence=True),
    Layout("disjoint-dp2-to-dp2tp2", (2, 1), (2, 2), placement="disjoint", zero=(1, 1)),
    Layout("overlap-2-and-2", (1, 2), (1, 2), placement=OVERLAP_3),
    Layout("overlap-dp2sp2-and-tp2", (2, 2), (1, 2), placement=OVERLAP_5, tp_sequence=True, ways=("{channel: tcp}", "{credits: 1, channel: shared_memory}")),
    Layout("one-kv-head-C04", (1, 2), (1, 4), model=variant(kv_heads=1)),
    Layout("two-kv-heads-sequence", (1, 2), (1, 4), tp_sequence=True, model=variant(kv_heads=2)),
    Layout("twelve-kv-heads", (1, 2), (1, 3), model=variant(kv_heads=12)),
    Layout("tied-head", (1, 2), (1, 2), model=variant(tied=True, kv_heads=2)),
    Layout("tied-head-one-rank", model=variant(tied=True, kv_heads=2)),
    Layout("two-rates", (1, 2), (1, 2), training=TWO_RATES),
    Layout("two-rates-disjoint-sequence", (2, 1), (1, 3), placement="disjoint", tp_sequence=True, training=TWO_RATES),
    Layout("frozen-vision", (1, 2), (1, 2), training=Training(frozen=("vision",))),
    Layout("frozen-merger", (1, 2), (1, 2), training=Training(frozen=("merger",))),
    Layout("frozen-vision-and-merger", (1, 2), (1, 2), placement="disjoint", training=Training(frozen=("vision", "merger"))),
    Layout("frozen-text", (1, 3), (1, 2), placement="disjoint", training=Training(frozen=("text",))),
    Layout("small-buckets-sp2-tp2", (1, 2), (1, 2), zero=(1, 0), bucket_bytes=4096, repeat=True),
    Layout("small-buckets-dp2sp2-dp2tp2-sequence", (2, 2), (2, 2), zero=(1, 1), tp_sequence=True, bucket_bytes=4096),
    Layout("small-buckets-replicated-disjoint", (2, 1), (2, 1), placement="disjoint", zero=(0, 0), bucket_bytes=4096),
    Layout("small-buckets-frozen-vision", (1, 2), (2, 1), zero=(1, 1), bucket_bytes=4096, training=Training(frozen=("vision",))),
    Layout("no-clipping", (1, 2), (1, 2), training=Training(clip=0.0, eps=1e-3)),
]


def job_spec(layout, model_folder, data_folder):
    """The YAML of one run. File order, so that every layout sees the batches of the reference."""
    t = layout.training
    lines = [f"name: {layout.name}", f"model: {{path: {model_folder}, init: pretrained, dtype: fp32}}"]
    lines += ["components:"] + [f"  {c}: {{train: {'false' if c in t.frozen else 'true'}, lr: {t.rate(c):.6f}}}" for c in ("vision", "merger", "text")]
    unit = f", unit: {{images: {layout.unit_images}}}" if layout.unit_images else ""
    lines += ["groups:",
              f"  vision: {{components: [vision, merger], mesh: {{dp: {layout.vision[0]}, sp: {layout.vision[1]}}}, zero: {layout.zero[0]}{unit}}}",
              f"  text: {{components: [text], mesh: {{dp: {layout.text[0]}, tp: {layout.text[1]}}}, zero: {layout.zero[1]}, "
              f"tp_sequence: {'true' if layout.tp_sequence else 'false'}}}",
              f"placement: {layout.placement}", f"schedule: {layout.schedule}", "device: cpu", "threads: 1",
              "data:", f"  sources: [{{path: {data_folder}/records.jsonl, image_root: {data_folder}/images}}]",
              "  shuffle: false", f"  pack_tokens: {layout.pack_tokens}", "  max_sample_tokens: 512" if not layout.pack_tokens else
              f"  max_sample_tokens: {layout.pack_tokens}",
              "training:", f"  steps: {t.steps}", f"  global_batch: {t.batch}"]
    if layout.bucket_bytes:
        lines.append(f"  bucket_bytes: {layout.bucket_bytes}")
    if not layout.pack_tokens:
        lines.append(f"  microbatch: {layout.microbatch}")
    lines += [f"  optimizer: {{lr: {t.lr:.6f}, betas: [{t.betas[0]}, {t.betas[1]}], eps: {t.eps:.6f}, weight_decay: {t.weight_decay}, clip: {t.clip}}}",
              "  schedule: {type: constant, warmup_steps: 0}",
              "checkpoint: {export: end}",
              "debug: {dump: {steps: [1], gradients: true, vision_rows: true, samples: true}}"]
    return "\n".join(lines) + "\n"
