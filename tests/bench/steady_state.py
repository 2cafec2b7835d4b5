"""Trains the shipped example for many steps and holds it to a steady state: memory of every process flat, nothing left behind.

Usage: steady_state.py --troupe PATH [--steps 2000] [--limit 1024] [--placement disjoint]

Samples the resident memory and the open files of each actor host and of the driver while the run goes on. The slope of memory over steps is a
median of slopes between samples of the second half (Theil-Sen), so that one sweep of an allocator does not count. Then starts a second run,
kills it outright, and looks for processes, shared segments and sockets that stayed. Exit code 1 when anything grows or stays.
"""
import argparse
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHAPES = ROOT / "examples" / "shapes"
SPEC = """name: steady
model: {{path: {shapes}/model, init: random, dtype: fp32}}
groups:
  vision: {{components: [vision, merger], mesh: {{sp: 2}}}}
  text: {{components: [text], mesh: {{tp: 2}}}}
placement: {placement}
device: cpu
threads: 1
data: {{sources: [{{path: {shapes}/train.jsonl, image_root: {shapes}/images, take: 32}}]}}
training: {{steps: {steps}, global_batch: 2, microbatch: {{samples: 1}}, schedule: {{type: constant}}}}
checkpoint: {{export: never}}
"""


def shared_segments():
    return {name for name in os.listdir("/dev/shm")} | {line.split()[1] for line in open("/proc/sysvipc/shm").readlines()[1:]}


def processes_of(run):
    """Pid of the driver and of every host by name, as the run's events tell."""
    hosts = {}
    events = run / "events.jsonl"
    if events.exists():
        for line in events.read_text().splitlines():
            event = json.loads(line)
            if event["kind"] == "spawned":
                for host in event.get("hosts", event.get("actors", [event])):
                    hosts[f"slot {host.get('slot')}"] = host.get("pid")
    return {name: pid for name, pid in hosts.items() if pid}


def resident_kib(pid):
    # smaps_rollup counts pages; statm is rounded by the kernel's per-thread batches.
    for line in open(f"/proc/{pid}/smaps_rollup"):
        if line.startswith("Rss:"):
            return int(line.split()[1])
    return 0


def steps_done(run):
    path = run / "metrics.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def slope(points):
    """Bytes a step: the median of the slopes between samples that lie at least a third of the range apart."""
    least = (points[-1][0] - points[0][0]) / 3
    slopes = [1024 * (b[1] - a[1]) / (b[0] - a[0]) for i, a in enumerate(points) for b in points[i + 1:] if b[0] - a[0] >= least > 0]
    return statistics.median(slopes) if slopes else 0.0


class Run:
    def __init__(self, troupe, folder, name, placement, steps):
        spec = folder / f"{name}.yaml"
        spec.write_text(SPEC.format(shapes=SHAPES, placement=placement, steps=steps))
        self.folder = folder / name
        self.out = open(folder / f"{name}.out", "w")
        self.process = subprocess.Popen([troupe, "run", spec, "--run-dir", self.folder], stdout=self.out, stderr=subprocess.STDOUT,
                                        stdin=subprocess.DEVNULL, start_new_session=True)

    def wait_for_steps(self, steps, seconds):
        end = time.monotonic() + seconds
        while steps_done(self.folder) < steps:
            if self.process.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"no {steps} steps: see {self.out.name}\n" + pathlib.Path(self.out.name).read_text()[-2000:])
            time.sleep(0.2)  # a poll of another process, bounded by the deadline

    def end(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(20)
        self.out.close()


def watch(run, steps, limit_s):
    """Samples until the run has ended: {process: [(step, KiB, files)]}."""
    samples, end = {}, time.monotonic() + limit_s
    while run.process.poll() is None and time.monotonic() < end:
        done = steps_done(run.folder)
        for name, pid in {"driver": run.process.pid, **processes_of(run.folder)}.items():
            try:
                samples.setdefault(name, []).append((done, resident_kib(pid), len(os.listdir(f"/proc/{pid}/fd"))))
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                pass
        time.sleep(0.5)
    if run.process.poll() is None:
        raise SystemExit(f"still running after {limit_s} s at step {steps_done(run.folder)} of {steps}")
    return samples


def alive(pids):
    """Those of them that still run (a zombie does not)."""
    found = []
    for pid in pids:
        try:
            state = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if state != "Z":
            found.append(pid)
    return found


def leftovers(pids, before, seconds=15):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        still, segments = alive(pids), shared_segments() - before
        if not still and not segments:
            return []
        time.sleep(0.2)
    return [f"process {pid} is still there" for pid in still] + [f"shared segment {name} is still there" for name in sorted(segments)]


def judge(samples, steps, limit):
    complaints = []
    for name, points in sorted(samples.items()):
        half = [p for p in points if steps / 2 <= p[0] < steps]
        if len(half) < 10:
            complaints.append(f"{name}: only {len(half)} samples in the second half of the run")
            continue
        grows, files = slope([(s, kib) for s, kib, _ in half]), [f for _, _, f in half]
        print(f"{name:10s} {half[0][1] / 1024:8.1f} MiB at step {half[0][0]}, {half[-1][1] / 1024:8.1f} MiB at step {half[-1][0]}, {grows:8.1f} bytes a step, "
              f"{files[0]} to {files[-1]} open files", flush=True)
        if grows > limit:
            complaints.append(f"{name}: resident memory grows by {grows:.0f} bytes a step, more than {limit}")
        if files[-1] > files[0]:
            complaints.append(f"{name}: open files went from {files[0]} to {files[-1]}")
    return complaints


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--troupe", required=True)
    p.add_argument("--steps", type=int, default=2000)
    p.add_argument("--limit", type=float, default=1024, help="bytes a step")
    p.add_argument("--placement", default="disjoint")
    p.add_argument("--timeout", type=float, default=1500)
    a = p.parse_args()
    assert abs(slope([(s, 100 + 2 * s) for s in range(100)]) - 2048) < 1
    folder, before = pathlib.Path(tempfile.mkdtemp(prefix="troupe-steady-")), shared_segments()
    runs = []
    try:
        runs.append(Run(a.troupe, folder, "whole", a.placement, a.steps))
        samples = watch(runs[-1], a.steps, a.timeout)
        if runs[-1].process.returncode != 0:
            raise SystemExit(f"the run ended with {runs[-1].process.returncode}\n" + pathlib.Path(runs[-1].out.name).read_text()[-2000:])
        complaints = judge(samples, a.steps, a.limit)
        if len(samples) < 3:
            complaints.append(f"only {sorted(samples)} were seen; are hosts reported in another way now?")
        complaints += leftovers(processes_of(runs[-1].folder).values(), before)
        runs.append(Run(a.troupe, folder, "killed", a.placement, 100000))
        runs[-1].wait_for_steps(20, 120)
        pids = [runs[-1].process.pid, *processes_of(runs[-1].folder).values()]
        os.kill(runs[-1].process.pid, signal.SIGKILL)
        runs[-1].process.wait(20)
        complaints += [f"after a kill: {text}" for text in leftovers(pids, before)]
    finally:
        for run in runs:
            run.end()
        shutil.rmtree(folder, ignore_errors=True)
    print("\n".join(complaints) or "steady: nothing grows, nothing is left")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
