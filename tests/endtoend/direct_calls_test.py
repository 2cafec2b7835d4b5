"""Loops of one's own, on the real programs: the shipped example against the recorded loop, refusals, leaks, ends.

Usage: direct_calls_test.py --troupe BUILD/bin/troupe --loop PROGRAM --refusals PROGRAM
"""
import argparse
import json
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHAPES = ROOT / "examples" / "shapes"
PROGRAMS = None
BATCH, STEPS = 8, 6

SPEC = """name: direct
model: {{path: {shapes}/model, init: random, dtype: fp32}}
groups:
  vision: {{components: [vision, merger], mesh: {{sp: 2}}, zero: 1}}
  text: {{components: [text], mesh: {{tp: 2}}}}
placement: {placement}
device: cpu
data:
  sources: [{sources}]
  shuffle: false
training:
  steps: {steps}
  global_batch: {batch}
  microbatch: {{samples: 4}}
  optimizer: {{lr: 1.0e-3, clip: 1.0}}
  schedule: {{type: constant}}
checkpoint: {{export: {export}}}
"""


class DirectCalls(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="troupe-calls-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        records = (SHAPES / "train.jsonl").read_text().splitlines(keepends=True)[:2 * 3 * BATCH]
        blocks = [records[i:i + BATCH] for i in range(0, len(records), BATCH)]
        self.file("merged.jsonl", sum(blocks, []))
        self.file("first.jsonl", sum(blocks[0::2], []))
        self.file("second.jsonl", sum(blocks[1::2], []))

    def file(self, name, lines):
        (self.folder / name).write_text("".join(lines))

    def job(self, name, *sources, placement="disjoint", export="never", more=""):
        path = self.folder / f"{name}.yaml"
        listed = ", ".join(f"{{path: {self.folder}/{s}, image_root: {SHAPES}/images}}" for s in sources)
        path.write_text(SPEC.format(shapes=SHAPES, placement=placement, sources=listed, steps=STEPS, batch=BATCH, export=export) + more)
        return path

    def run_troupe(self, job, *arguments, code=0):
        run = self.folder / f"run-{job.stem}"
        done = subprocess.run([PROGRAMS.troupe, "run", job, "--run-dir", run, *map(str, arguments)], capture_output=True, text=True,
                              timeout=300, start_new_session=True)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return run, done

    def loop(self, job, *arguments, code=0):
        run, done = self.run_troupe(job, "--loop", PROGRAMS.loop, *[f"--loop-arg={a}" for a in arguments], code=code)
        return run, done, [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]

    def events(self, run):
        return [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]

    def test_a_loop_over_two_sources_trains_as_the_recorded_loop_does(self):
        run, _ = self.run_troupe(self.job("recorded", "merged.jsonl"))
        recorded = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        self.assertEqual(len(recorded), STEPS)
        for placement in ("disjoint", "colocated"):
            job = self.job(placement, "first.jsonl", "second.jsonl", placement=placement)
            run, _, steps = self.loop(job, f"--steps={STEPS}", f"--batch={BATCH}", "--save")
            self.assertEqual([pathlib.Path(s["source"]).name for s in steps], ["first.jsonl", "second.jsonl"] * 3)
            for ours, theirs in zip(steps, recorded, strict=True):
                for key in ("loss", "grad_norm"):
                    self.assertLess(abs(ours[key] - theirs[key]), 1e-6 * abs(theirs[key]), f"{key} of step {theirs['step']}")
            self.assertTrue((run / "checkpoints" / f"step-{STEPS:08d}" / "manifest.json").exists())
            result = json.loads((run / "result.json").read_text())
            self.assertEqual((result["outcome"], result["results"]["steps"]), ("done", STEPS))
            self.assertEqual([e for e in self.events(run) if e["kind"] == "handle_leaked"], [])

    def test_the_shipped_example_runs_as_its_page_says(self):
        run, done, steps = self.loop(ROOT / "examples" / "direct_calls" / "job.yaml", "--steps=4")
        self.assertEqual([pathlib.Path(s["source"]).name for s in steps], ["train.jsonl", "eval.jsonl"] * 2)
        self.assertTrue(all(s["updated"] and s["loss"] > 0 for s in steps), steps)
        result = json.loads((run / "result.json").read_text())
        self.assertEqual((result["results"]["steps"], result["steps_done"]), (4, 4))
        self.assertIn("job done after 4 steps\n", done.stdout)
        status = subprocess.run([PROGRAMS.troupe, "status", run], capture_output=True, text=True, timeout=60).stdout
        self.assertRegex(status, r"ended \(done\)  step 4  ")

    def test_the_bench_measures_calls_beside_plain_grpc(self):
        done = subprocess.run([PROGRAMS.troupe, "bench", "calls", "--calls", "80", "--json"], capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(done.stdout)
        for kind in ("execute", "execute_all"):
            times = [result[kind][name]["p50_us"] for name in ("troupe", "raw_unary", "raw_stream")]
            self.assertGreater(min(times), 0)
            self.assertAlmostEqual(result[kind]["of_unary"], times[0] / times[1], places=2)
            self.assertAlmostEqual(result[kind]["of_stream"], times[0] / times[2], places=2)

    def test_refusals_leases_and_leaks(self):
        job = self.job("refusals", "first.jsonl")
        run, _ = self.run_troupe(job, "--loop", PROGRAMS.refusals)
        leaked = [e for e in self.events(run) if e["kind"] == "handle_leaked"]
        self.assertEqual(len(leaked), 2, leaked)
        self.assertIn("batch 9, unit 0, rows", leaked[0]["handle"])
        results = json.loads((run / "result.json").read_text())["results"]
        self.assertEqual(sum(results["handles_leaked"].values()), 2)
        self.assertEqual(sum(results["handles_expired"].values()), 2)

    def test_a_loop_that_ends_early_fails_the_job_by_name(self):
        _, done, _ = self.loop(self.job("early", "first.jsonl"), "--steps=none", code=1)
        self.assertIn("without having finished the job", done.stdout + done.stderr)
        cause = json.loads((self.folder / "run-early" / "result.json").read_text())["cause"]
        self.assertEqual(cause["kind"], "loop_failed")

    def script(self, name, text):
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    def test_a_loop_that_fails_behind_its_finished_job_is_named(self):
        loop = self.script("fails.sh", f'#!/bin/sh\n"{PROGRAMS.loop}" "$@"\nexit 3\n')
        run, done = self.run_troupe(self.job("late", "first.jsonl"), "--loop", loop, "--loop-arg=--steps=1", f"--loop-arg=--batch={BATCH}", code=1)
        self.assertIn("fails.sh exited with status 3 after it had finished the job", done.stdout)
        self.assertEqual(json.loads((run / "result.json").read_text())["outcome"], "done")

    def test_a_signal_is_the_loop_s_business_and_its_end_says_what_it_did(self):
        for name, status, code, outcome in (("saved", 75, 75, "stopped"), ("stopped", 0, 130, "cancelled"), ("failed", 4, 1, "failed")):
            with self.subTest(name):
                loop = self.script(f"{name}.py", f"""#!{sys.executable}
import os, signal
signal.signal(signal.SIGTERM, lambda *_: os._exit({status}))
print("the loop is at work", flush=True)
while True:
    signal.pause()
""")
                run = self.folder / f"run-{name}"
                with subprocess.Popen([PROGRAMS.troupe, "run", self.job(name, "first.jsonl"), "--run-dir", run, "--loop", loop],
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True) as troupe:
                    said, awaited = [], {"running\n", "the loop is at work\n"}
                    for line in troupe.stdout:
                        said.append(line)
                        if line in awaited and awaited <= set(said):
                            troupe.send_signal(signal.SIGTERM)
                    self.assertEqual(troupe.wait(timeout=60), code, "".join(said))
                self.assertEqual(json.loads((run / "result.json").read_text())["outcome"], outcome)

    def test_what_belongs_to_the_recorded_loop_is_refused(self):
        job = self.job("evaluated", "first.jsonl", more="eval: {split: 0.1, every: 2}\n")
        _, done, _ = self.loop(job, code=2)
        self.assertIn("key 'eval.every': belongs to the recorded loop", done.stderr)
        _, done = self.run_troupe(self.job("none", "first.jsonl"), "--loop-arg=x", code=2)
        self.assertIn("there is no --loop", done.stderr)
        _, done = self.run_troupe(self.job("gone", "first.jsonl"), "--loop", self.folder / "gone", code=2)
        self.assertIn("gone", done.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    for name in ("--troupe", "--loop", "--refusals"):
        parser.add_argument(name, required=True)
    PROGRAMS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
