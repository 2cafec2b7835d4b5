"""Runs three passes over the same records in four layouts, with a stop and a resume, and with data.balance off: the samples of every step must
be the same ones in the same order, and each must come once in a pass, packed or not. Then the same with two sources that have weights: each record must
come as often as its source's weight says, the choice of those that come once more must differ by pass, and a resume with other weights must be refused.

Usage: python3 order.py --troupe PATH
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")

from layouts import Layout, job_spec
from model import ModelVariant
from reference import Training
from run import TIMEOUT_S, Bench, start_run

STEPS, BATCH, RECORDS = 15, 4, 20
# Of the first source half the records a pass, of the second each twice and a quarter once more: 6 + 16 + 2 samples, 6 steps.
FIRST, WEIGHTS, WEIGHTED_STEPS = 12, (0.5, 2.25), 18
LAYOUTS = [Layout("one-rank"), Layout("sp2-tp2", (1, 2), (1, 2)), Layout("dp2-dp2", (2, 1), (2, 1), zero=(1, 1)),
           Layout("dp2sp2-dp2-packed", (2, 2), (2, 1), zero=(1, 1), pack_tokens=256, placement="disjoint")]


def spec_of(bench, layout, balance=True, steps=STEPS, weights=None):
    """Shuffled, with the ids of every step dumped."""
    layout = Layout(**{**vars(layout), "training": Training(steps=steps)})
    text = job_spec(layout, bench.model_folder(ModelVariant()), bench.folder / "data")
    if weights:
        whole = f"[{{path: {bench.folder}/data/records.jsonl, image_root: {bench.folder}/data/images}}]"
        assert whole in text, f"the job spec of the parity runs has no '{whole}'"
        text = text.replace(whole, "[" + ", ".join(f"{{path: {bench.folder}/data/{name}.jsonl, image_root: {bench.folder}/data/images, weight: {w}}}"
                                                   for name, w in zip(("first", "second"), weights)) + "]")
    dump = f"debug: {{dump: {{steps: {list(range(1, steps + 1))}, samples: true}}}}\ncheckpoint: {{export: never, every: 7}}"
    for old, new in (("  shuffle: false", f"  shuffle: true\n  balance: {'true' if balance else 'false'}"), ("checkpoint: {export: end}\n", ""),
                     ("debug: {dump: {steps: [1], gradients: true, vision_rows: true, samples: true}}", dump)):
        assert old in text, f"the job spec of the parity runs has no '{old}'"
        text = text.replace(old, new)
    return text


def ids_of(run, steps=STEPS):
    """Of each step; a record that comes twice in one has a number behind its id."""
    return [[x["id"].split("#")[0] for x in json.loads((run / "debug" / f"step-{step}.samples.json").read_text())] for step in range(1, steps + 1)]


def run_to(a, bench, name, text, more=()):
    spec, run = bench.folder / f"{name}.yaml", bench.folder / name
    spec.write_text(text)
    problem = start_run(a.troupe, spec, run, a.timeout, more)
    if problem:
        raise SystemExit(f"FAIL {name}: {problem}")
    return run


def resumed(a, bench, name, spec, steps, at=7):
    """The ids of a run whose first steps end in the middle of a pass, and which goes on from their checkpoint. `spec`: of a number of steps."""
    first = run_to(a, bench, f"{name}first", spec(at))
    second = run_to(a, bench, f"{name}second", spec(steps), ("--resume", str(first)))
    begun = {f.name for f in (second / "debug").glob("step-*.samples.json")}
    if f"step-{at}.samples.json" in begun or f"step-{at + 1}.samples.json" not in begun:
        raise SystemExit(f"FAIL the resumed run did not begin at step {at + 1}: {sorted(begun)}")
    for f in (first / "debug").glob("step-*.samples.json"):
        shutil.copy(f, second / "debug")
    return ids_of(second, steps), first


def weighted(a, bench):
    """How many layouts of weighted sources go wrong."""
    lines = (bench.folder / "data" / "records.jsonl").read_text().splitlines(keepends=True)
    ids = [json.loads(line)["id"] for line in lines]
    for name, part in (("first", lines[:FIRST]), ("second", lines[FIRST:])):
        (bench.folder / "data" / f"{name}.jsonl").write_text("".join(part))
    lists = {layout.name: ids_of(run_to(a, bench, f"w-{layout.name}", spec_of(bench, layout, steps=WEIGHTED_STEPS, weights=WEIGHTS)), WEIGHTED_STEPS) for layout in LAYOUTS}
    lists["resumed"], stopped = resumed(a, bench, "w-", lambda steps: spec_of(bench, LAYOUTS[1], steps=steps, weights=WEIGHTS), WEIGHTED_STEPS)
    flat = [i for step in lists["one-rank"] for i in step]
    size, missed = len(flat) // 3, 0
    passes = [flat[k * size:(k + 1) * size] for k in range(3)]
    for p in passes:
        counts = [p.count(i) for i in ids]
        if sorted(counts[:FIRST]) != [0] * 6 + [1] * 6 or sorted(counts[FIRST:]) != [2] * 6 + [3] * 2:
            missed += 1
            print(f"FAIL weights: a pass has the records {counts} times")
    chosen = [frozenset(i for i in ids[:FIRST] if i in p) for p in passes]
    if chosen[0] == chosen[1]:
        missed += 1
        print("FAIL weights: two passes chose the same records")
    for name, got in lists.items():
        missed += got != lists["one-rank"]
        print(f"{'ok  ' if got == lists['one-rank'] else 'FAIL'} weighted {name}: {size} samples a pass, first {got[0]}", flush=True)
    other = bench.folder / "w-other.yaml"
    other.write_text(spec_of(bench, LAYOUTS[1], steps=WEIGHTED_STEPS, weights=(0.5, 2)))
    problem = start_run(a.troupe, other, bench.folder / "w-other", a.timeout, ("--resume", str(stopped)))
    refused = bool(problem) and "data.sources.weight [0.5, 2.25] (this job: [0.5, 2])" in problem
    print(f"{'ok  ' if refused else 'FAIL'} a resume with other weights: {problem}", flush=True)
    return missed + (not refused)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--troupe", required=True)
    p.add_argument("--timeout", type=float, default=TIMEOUT_S)
    a = p.parse_args()
    work = Path(tempfile.mkdtemp(prefix="troupe-order-"))
    bench, lists = Bench(work), {}
    for layout in LAYOUTS:
        lists[layout.name] = ids_of(run_to(a, bench, layout.name, spec_of(bench, layout)))
    lists["balance off"] = ids_of(run_to(a, bench, "balance-off", spec_of(bench, LAYOUTS[2], balance=False)))
    lists["resumed"], _ = resumed(a, bench, "", lambda steps: spec_of(bench, LAYOUTS[1], steps=steps), STEPS)
    want, missed = lists["one-rank"], 0
    for name, got in lists.items():
        flat = [i for step in got for i in step]
        passes = [flat[k * RECORDS:(k + 1) * RECORDS] for k in range(STEPS * BATCH // RECORDS)]
        good = got == want and all(len(set(x)) == RECORDS for x in passes) and passes[0] != passes[1]
        missed += not good
        print(f"{'ok  ' if good else 'FAIL'} {name}: {len(flat)} samples in {len(passes)} passes, first {flat[:4]}", flush=True)
    missed += weighted(a, bench)
    if not missed:
        shutil.rmtree(work)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
