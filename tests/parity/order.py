"""Runs three passes over the same records in four layouts, with a stop and a resume, and with data.balance off: the samples of every step must
be the same ones in the same order, and each must come once in a pass, packed or not.

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
LAYOUTS = [Layout("one-rank"), Layout("sp2-tp2", (1, 2), (1, 2)), Layout("dp2-dp2", (2, 1), (2, 1), zero=(1, 1)),
           Layout("dp2sp2-dp2-packed", (2, 2), (2, 1), zero=(1, 1), pack_tokens=256, placement="disjoint")]


def spec_of(bench, layout, balance=True, steps=STEPS):
    """Shuffled, with the ids of every step dumped."""
    layout = Layout(**{**vars(layout), "training": Training(steps=steps)})
    text = job_spec(layout, bench.model_folder(ModelVariant()), bench.folder / "data")
    dump = f"debug: {{dump: {{steps: {list(range(1, steps + 1))}, samples: true}}}}\ncheckpoint: {{export: never, every: 7}}"
    for old, new in (("  shuffle: false", f"  shuffle: true\n  balance: {'true' if balance else 'false'}"), ("checkpoint: {export: end}\n", ""),
                     ("debug: {dump: {steps: [1], gradients: true, vision_rows: true, samples: true}}", dump)):
        assert old in text, f"the job spec of the parity runs has no '{old}'"
        text = text.replace(old, new)
    return text


def ids_of(run):
    return [[x["id"] for x in json.loads((run / "debug" / f"step-{step}.samples.json").read_text())] for step in range(1, STEPS + 1)]


def run_to(a, bench, name, text, more=()):
    spec, run = bench.folder / f"{name}.yaml", bench.folder / name
    spec.write_text(text)
    problem = start_run(a.troupe, spec, run, a.timeout, more)
    if problem:
        raise SystemExit(f"FAIL {name}: {problem}")
    return run


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
    # The first seven steps end in the middle of the second pass; the rest goes on from their checkpoint.
    first = run_to(a, bench, "first", spec_of(bench, LAYOUTS[1], steps=7))
    second = run_to(a, bench, "second", spec_of(bench, LAYOUTS[1]), ("--resume", str(first)))
    begun = {f.name for f in (second / "debug").glob("step-*.samples.json")}
    if "step-7.samples.json" in begun or "step-8.samples.json" not in begun:
        raise SystemExit(f"FAIL the resumed run did not begin at step 8: {sorted(begun)}")
    for f in (first / "debug").glob("step-*.samples.json"):
        shutil.copy(f, second / "debug")
    lists["resumed"] = ids_of(second)
    want, missed = lists["one-rank"], 0
    for name, got in lists.items():
        flat = [i for step in got for i in step]
        passes = [flat[k * RECORDS:(k + 1) * RECORDS] for k in range(STEPS * BATCH // RECORDS)]
        good = got == want and all(len(set(x)) == RECORDS for x in passes) and passes[0] != passes[1]
        missed += not good
        print(f"{'ok  ' if good else 'FAIL'} {name}: {len(flat)} samples in {len(passes)} passes, first {flat[:4]}", flush=True)
    if not missed:
        shutil.rmtree(work)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
