"""A red and a blue picture with the same question: each sample's loss must not depend on its place in the batch.

Usage: python3 places.py --troupe PATH [--work DIR]
A batch of both, the same batch turned round, and each alone, in three layouts; no weight moves. Row D07 of docs/data.md. Exit code 1 on any miss.
"""

import argparse
import json
import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from PIL import Image
from transformers.utils import logging

import compare
from layouts import Layout, job_spec
from model import ModelVariant, make_model
from reference import Training, run_reference
from run import TIMEOUT_S, finish, start_run

COLOURS = {"red": (255, 0, 0), "blue": (0, 0, 255)}
LAYOUTS = [Layout("one-rank"), Layout("sp2-tp2-sequence", (1, 2), (1, 2), tp_sequence=True), Layout("disjoint-2-to-1", (1, 2), placement="disjoint")]
TURNS = [{"from": "human", "value": "<image>\nsame question"}, {"from": "gpt", "value": "one answer"}]
BATCHES = {"both": (["red", "blue"], 2), "turned": (["blue", "red"], 2), "alone": (["red", "blue"], 1)}


def make_data(folder, order):
    (folder / "images").mkdir(parents=True)
    for colour in order:
        Image.new("RGB", (112, 84), COLOURS[colour]).save(folder / "images" / f"{colour}.png")
    rows = [{"id": colour, "image": f"{colour}.png", "conversations": TURNS} for colour in order]
    (folder / "records.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def losses_of(run, steps):
    """Loss of each sample by its id, over all steps."""
    samples = [x for step in range(1, steps + 1) for x in json.loads((run / "debug" / f"step-{step}.samples.json").read_text())]
    return {x["id"]: x["loss"] for x in samples}


def run_batches(a, work, model, layout):
    """Losses of each way to batch, or a complaint."""
    out = {}
    for name, (order, batch) in BATCHES.items():
        steps = len(order) // batch
        still = replace(layout, microbatch=f"{{samples: {batch}}}", training=Training(steps=steps, batch=batch, lr=0.0))
        spec, run = work / f"{layout.name}-{name}.yaml", work / f"{layout.name}-{name}"
        text = job_spec(still, model, work / name)
        dump = "debug: {dump: {steps: [1]"
        assert dump in text, f"the job spec of the parity runs has no '{dump}'"
        spec.write_text(text.replace(dump, f"debug: {{dump: {{steps: {list(range(1, steps + 1))}"))
        problem = start_run(a.troupe, spec, run, a.timeout)
        if problem:
            return out, [problem]
        out[name] = losses_of(run, steps)
    return out, []


def judge(losses, want):
    """`want`: transformers' loss of each sample alone."""
    near = lambda x, y: abs(x - y) <= compare.LOSS * abs(y)
    complaints = [f"{name}: {colour} has loss {got[colour]}, transformers {want[colour]}"
                  for name, got in losses.items() for colour in want if not near(got[colour], want[colour])]
    if near(want["red"], want["blue"]):
        complaints.append(f"the two samples have one loss, so that nothing is seen: {want}")
    return complaints


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--troupe", required=True)
    p.add_argument("--work", help="folder for models, runs and logs (default: a temporary one)")
    p.add_argument("--timeout", type=float, default=TIMEOUT_S, help="seconds a run")
    a = p.parse_args()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    torch.set_num_threads(1)
    work = Path(a.work or tempfile.mkdtemp(prefix="troupe-places-")).absolute()
    data = {name: make_data(work / name, order) for name, (order, _) in BATCHES.items()}
    make_model(ModelVariant(), work / "model")
    reference = run_reference(work / "model", data["both"] / "records.jsonl", data["both"] / "images", Training(steps=1, batch=2, lr=0.0))
    want, missed = dict(reference.sample_losses), 0
    for layout in LAYOUTS:
        losses, complaints = run_batches(a, work, work / "model", layout)
        complaints += judge(losses, want)
        missed += bool(complaints)
        print(f"{'ok  ' if not complaints else 'FAIL'} {layout.name:20s} {losses}", flush=True)
        for complaint in complaints:
            print(f"       {complaint}")
    finish(a, work, f"{len(LAYOUTS) - missed} of {len(LAYOUTS)} layouts give each sample its own loss in any place; transformers: {want}", missed)


if __name__ == "__main__":
    main()
