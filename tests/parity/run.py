"""Runs `troupe run` in many layouts and holds each against transformers, run live on the same weights and records.

Usage: python3 run.py --troupe PATH [--work DIR] [--only REGEX] [--keep]
Prints one line a layout: the largest deviations in loss, gradient norm, gradients, vision rows and weight changes. Exit code 1 on any miss.
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from transformers.utils import logging

import compare
from layouts import LAYOUTS, job_spec
from model import PICTURES, make_model, make_records
from reference import run_reference

TIMEOUT_S = 120


def options():
    p = argparse.ArgumentParser()
    p.add_argument("--troupe", required=True)
    p.add_argument("--work", help="folder for models, runs and logs (default: a temporary one)")
    p.add_argument("--only", default="", help="regular expression on layout names")
    p.add_argument("--keep", action="store_true", help="keep the folders of runs that agree")
    p.add_argument("--timeout", type=float, default=TIMEOUT_S, help="seconds a run")
    return p.parse_args()


class Bench:
    """Model folders, records and references, each made once."""

    def __init__(self, folder, pictures=PICTURES, weights=()):
        self.folder, self.references = folder, {}
        make_records(folder / "data", pictures, weights)

    def model_folder(self, variant):
        folder = self.folder / f"model-kv{variant.kv_heads}{'-tied' if variant.tied else ''}"
        if not folder.exists():
            make_model(variant, folder)
        return folder

    def reference(self, layout):
        key = (layout.model, layout.training)
        if key not in self.references:
            data = self.folder / "data"
            self.references[key] = run_reference(self.model_folder(layout.model), data / "records.jsonl", data / "images", layout.training)
        return self.references[key]


def end_group(process):
    """Ends the run and all that it started: politely, then not."""
    for sign, patience in ((signal.SIGTERM, 5), (signal.SIGKILL, 5)):
        try:
            os.killpg(process.pid, sign)
        except ProcessLookupError:
            return
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            continue


def start_run(troupe, spec, run, timeout, more=()):
    """`more`: further arguments. Returns a complaint, or None when the run ended well."""
    shutil.rmtree(run, ignore_errors=True)
    log = Path(f"{run}.out")
    with open(log, "w") as out:
        process = subprocess.Popen([troupe, "run", str(spec), "--run-dir", str(run), *more], stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                   start_new_session=True)
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            end_group(process)
            return f"still running after {timeout:.0f} s; output in {log}"
        except BaseException:
            end_group(process)
            raise
    if code == 0:
        return None
    tail = log.read_text(errors="replace").strip().splitlines()[-6:]
    return f"exit code {code}: " + " | ".join(tail)


def try_layout(bench, layout, a):
    """Returns the verdict of one layout."""
    schedules = [layout.schedule] + [layout.schedule] * layout.repeat + list(layout.ways)
    runs = [bench.folder / "runs" / f"{layout.name}-{number}" for number in range(len(schedules))]
    verdict = compare.Verdict()
    for run, schedule in zip(runs, schedules):
        run.parent.mkdir(exist_ok=True)
        spec = Path(f"{run}.yaml")
        spec.write_text(job_spec(replace(layout, schedule=schedule), bench.model_folder(layout.model), bench.folder / "data"))
        problem = start_run(a.troupe, spec, run, a.timeout)
        if problem:
            verdict.complaints.append(f"schedule {schedule}: {problem}")
            return verdict
    try:
        verdict = compare.judge_run(runs[0], bench.reference(layout), layout.training)
        for run, schedule in zip(runs[1:], schedules[1:]):
            verdict.complaints += [f"schedule {schedule}: {c}" for c in compare.judge_repeat(runs[0], run).complaints]
    except (OSError, KeyError, json.JSONDecodeError) as error:
        verdict.complaints.append(f"the run folder is incomplete: {error!r}")
    if not verdict.complaints and not a.keep:
        for run in runs:
            shutil.rmtree(run)
    return verdict


def show(layout, verdict, seconds):
    sizes = f"{layout.vision[0]}x{layout.vision[1]} / {layout.text[0]}x{layout.text[1]}"
    figures = "  ".join(f"{verdict.worst[c]:.1e}" if c in verdict.worst else "      -" for c in ("loss", "norm", "gradient", "rows", "change"))
    print(f"{'ok  ' if not verdict.complaints else 'FAIL'} {layout.name:32s} {sizes:12s} {figures}  {seconds:5.1f} s", flush=True)
    for complaint in verdict.complaints[:6]:
        print(f"       {complaint}")
    if len(verdict.complaints) > 6:
        print(f"       and {len(verdict.complaints) - 6} more")


def finish(a, work, summary, missed):
    """Runs and logs stay where something is to be seen or a person named the folder."""
    print(summary)
    if not a.work and not missed:
        shutil.rmtree(work)
    elif missed:
        print(f"runs and logs are in {work}")
    sys.exit(1 if missed else 0)


def main():
    a = options()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    torch.set_num_threads(1)
    chosen = [layout for layout in LAYOUTS if re.search(a.only, layout.name)]
    if not chosen:
        sys.exit(f"no layout matches '{a.only}'; there are: " + ", ".join(layout.name for layout in LAYOUTS))
    work = Path(a.work or tempfile.mkdtemp(prefix="troupe-parity-")).absolute()
    work.mkdir(parents=True, exist_ok=True)
    bench, missed = Bench(work), 0
    print(f"{'':4s} {'layout':32s} {'vision/text':12s} {'loss':>7s}  {'norm':>7s}  {'gradient':>7s} {'rows':>7s}  {'change':>7s}")
    print(f"{'':4s} {'limit':32s} {'':12s} {compare.LOSS:.1e}  {compare.NORM:.1e}  {compare.GRADIENT:.1e}  {compare.ROWS:.1e}  {compare.CHANGE:.1e}")
    for layout in chosen:
        begin = time.monotonic()
        verdict = try_layout(bench, layout, a)
        missed += bool(verdict.complaints)
        show(layout, verdict, time.monotonic() - begin)
    finish(a, work, f"{len(chosen) - missed} of {len(chosen)} layouts agree with transformers", missed)


if __name__ == "__main__":
    main()
