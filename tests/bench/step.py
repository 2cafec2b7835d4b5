"""`troupe bench step` beside transformers on one saved batch, in turns, in one run on one machine.

Usage: python3 step.py --troupe PATH [--model DIR] [--rounds 3] [--images 4 --grid 24x32 --text 256 --threads 2]
Prints a table and a JSON line with the ratio of the medians. Exit code 1 when the losses differ by more than 1e-5 or the ratio is below --at-least.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent


def options():
    p = argparse.ArgumentParser()
    p.add_argument("--troupe", required=True)
    p.add_argument("--model", help="Hugging Face folder (default: a random one of the bench shape)")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--images", default="4")
    p.add_argument("--grid", default="24x32")
    p.add_argument("--text", default="256")
    p.add_argument("--threads", default="2")
    p.add_argument("--at-least", type=float, default=1.3)
    p.add_argument("--timeout", type=float, default=600, help="seconds a program")
    return p.parse_args()


def answer_of(command, timeout):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=timeout)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0 or not lines:
        sys.exit(f"exit code {done.returncode}: {' '.join(command)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return json.loads(lines[-1])


def main():
    a = options()
    with tempfile.TemporaryDirectory(prefix="troupe-bench-") as scratch:
        model = a.model or f"{scratch}/model"
        batch = f"{scratch}/batch.safetensors"
        shape = ["--images", a.images, "--grid", a.grid, "--text", a.text, "--threads", a.threads]
        hf_command = [sys.executable, str(HERE / "hf_step.py"), "--model", model, "--make", *shape]
        answer_of(hf_command + ["--steps", "1", "--save-batch", batch], a.timeout)
        ours, theirs = [], []
        for _ in range(a.rounds):
            theirs.append(answer_of(hf_command + ["--batch", batch], a.timeout))
            ours.append(answer_of([a.troupe, "bench", "step", "--device", "cpu", "--model", model, *shape, "--batch", batch, "--json"], a.timeout))
    middle = lambda runs, key: statistics.median(run[key] for run in runs)
    print(f"{'':14s} {'step ms':>10s} {'peak MiB':>10s}   rounds")
    for name, runs in (("transformers", theirs), ("troupe", ours)):
        print(f"{name:14s} {middle(runs, 'step_ms'):10.1f} {middle(runs, 'peak_rss_mib'):10.0f}   {[run['step_ms'] for run in runs]}")
    ratio = middle(theirs, "step_ms") / middle(ours, "step_ms")
    losses = list(zip(theirs[0]["losses"], ours[0].get("losses", [])))
    apart = max((abs(x - y) / abs(x) for x, y in losses), default=float("inf"))
    print(json.dumps({"ratio": round(ratio, 3), "loss_deviation": apart, "steps_compared": len(losses),
                      "memory_ratio": round(middle(ours, "peak_rss_mib") / middle(theirs, "peak_rss_mib"), 3)}))
    sys.exit(0 if ratio >= a.at_least and apart <= 1e-5 else 1)


if __name__ == "__main__":
    main()
