"""Runs `troupe run` on a GPU and holds it against transformers' fp32 run of the same weights and records on the CPU.

Usage: python3 gpu.py --troupe PATH [--ranks 2]
In fp32 losses agree closely (other kernels, other order of sums); in bf16 within what eight bits of a mantissa leave. `--ranks 2` adds
layouts of two ranks in each group, which take two slots on the one GPU: only for an NCCL that allows that. Exit code 1 on any miss.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from safetensors.torch import load_file
from transformers.utils import logging

import compare
from layouts import Layout, job_spec
from reference import Training
from run import Bench, start_run

# Two nodes are the way to name one GPU twice: a slot each.
CLUSTER = """launch: local
network: {control: "127.0.0.1:7731"}
nodes:
  - {name: a, address: 127.0.0.1, devices: {cuda: 0}}
  - {name: b, address: 127.0.0.1, devices: {cuda: 0}}
"""


@dataclass(frozen=True)
class Limits:
    """Of the losses, relative; of the gradients, the norm of the difference over the norm, all tensors together."""
    loss: float
    gradients: float


LIMITS = {"fp32": Limits(1e-4, 1e-3), "bf16": Limits(2e-2, 6e-2)}
# The last digits decide little here: no large decay and no tiny rates, so that five steps in bf16 stay near those in fp32.
TRAINING = Training(lr=1e-4, weight_decay=0.1, clip=1.0, eps=1e-5)
ONE = [Layout("one-rank", training=TRAINING), Layout("one-rank-packed", pack_tokens=160, training=TRAINING)]
TWO = [Layout("sp2-tp2", (1, 2), (1, 2), training=TRAINING), Layout("sp2-tp2-sequence", (1, 2), (1, 2), tp_sequence=True, training=TRAINING),
       Layout("dp2-dp2", (2, 1), (2, 1), zero=(1, 1), training=TRAINING)]


def options():
    p = argparse.ArgumentParser()
    p.add_argument("--troupe", required=True)
    p.add_argument("--ranks", type=int, default=1, choices=(1, 2))
    p.add_argument("--dtypes", default="fp32,bf16")
    p.add_argument("--timeout", type=float, default=90)
    return p.parse_args()


def gpu_spec(layout, dtype, bench):
    text = job_spec(layout, bench.model_folder(layout.model), bench.folder / "data")
    for old, new in (("dtype: fp32", f"dtype: {dtype}"), ("device: cpu", "device: cuda"), ("checkpoint: {export: end}", "checkpoint: {export: never}")):
        assert old in text, f"the job spec of the parity runs has no '{old}'"
        text = text.replace(old, new)
    return text


def gradient_difference(got, want):
    """Over all tensors together; names must be the same."""
    if set(got) != set(want):
        return float("inf")
    apart = sum((got[n].double() - want[n].double()).square().sum().item() for n in want)
    return (apart / sum(w.double().square().sum().item() for w in want.values())) ** 0.5


def judge(run, reference, limits):
    lines = compare.training_lines(run)
    loss = max((compare.relative(line["loss"], want) for line, want in zip(lines, reference.losses)), default=float("inf"))
    loss = loss if len(lines) == len(reference.losses) else float("inf")
    gradients = gradient_difference(load_file(run / "debug" / "step-1.gradients.safetensors"), reference.gradients)
    line = lines[-1] if lines else {}
    memory = line.get("peak_memory_mib"), line.get("activation_peak_mib")
    return loss, gradients, loss <= limits.loss and gradients <= limits.gradients, memory


def main():
    a = options()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    missed = 0
    work = Path(tempfile.mkdtemp(prefix="troupe-gpu-parity-"))
    bench = Bench(work)
    (work / "two-slots.yaml").write_text(CLUSTER)
    (work / "runs").mkdir()
    for layout in ONE + (TWO if a.ranks > 1 else []):
        for dtype in a.dtypes.split(","):
            begin, name = time.monotonic(), f"{layout.name}-{dtype}"
            spec = work / f"{name}.yaml"
            spec.write_text(gpu_spec(layout, dtype, bench))
            cluster = ["--cluster", str(work / "two-slots.yaml")] if layout in TWO else []
            problem = start_run(a.troupe, spec, work / "runs" / name, a.timeout, cluster)
            if problem:
                missed += 1
                print(f"FAIL {name:28s} {problem}", flush=True)
                continue
            limits = LIMITS[dtype]
            loss, gradients, good, memory = judge(work / "runs" / name, bench.reference(layout), limits)
            missed += not good
            print(f"{'ok  ' if good else 'FAIL'} {name:28s} loss {loss:.1e} (limit {limits.loss:.0e})  gradients {gradients:.1e} "
                  f"(limit {limits.gradients:.0e})  {time.monotonic() - begin:5.1f} s  memory {json.dumps(memory)}", flush=True)
    print(f"runs and logs: {work}" if missed else "the GPU agrees with transformers")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
