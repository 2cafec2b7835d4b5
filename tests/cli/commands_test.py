"""What the real programs answer to requests that are refused before anything is started, and what their help lists.

Usage: commands_test.py --troupe BUILD/bin/troupe [-k WORD]
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHAPES = ROOT / "examples" / "shapes"
TROUPE = None


def safetensors(**tensors):
    """Name to (dtype, shape, bytes)."""
    header, data = {}, b""
    for name, (dtype, shape, values) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def integers(shape, values):
    return "I64", shape, struct.pack(f"<{len(values)}q", *values)


class Commands(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="troupe-commands-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def ask(self, *arguments, code=0):
        done = subprocess.run([TROUPE, *map(str, arguments)], cwd=self.folder, capture_output=True, text=True, timeout=60, start_new_session=True)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def listed(self, text):
        """The benches of a text with a line for each."""
        return re.findall(r"^  ([a-z]+) +[a-z].*$", text, re.M)

    def test_every_bench_is_listed_and_those_listed_are_there(self):
        benches = self.listed(self.ask("bench", code=2).stderr)
        self.assertEqual(len(set(benches)), 6, benches)
        self.assertEqual(self.listed(self.ask("bench", "--help").stdout.split("Benches:")[1].split("Examples:")[0]), benches)
        self.assertEqual(self.listed(self.ask("bench", "nope", code=2).stderr), benches)
        self.assertIn("did you mean 'step'", self.ask("bench", "stepp", code=2).stderr)
        for arguments in (["bench", "--json"], ["bench", "nope", "--json"]):
            self.assertEqual(json.loads(self.ask(*arguments, code=2).stdout)["error"]["exit_code"], 2)
        for name in benches:
            self.assertIn(f"troupe bench {name}", self.ask("bench", name, "--help").stdout)
        own = subprocess.run([pathlib.Path(TROUPE).with_name("troupe-actor"), "bench"], capture_output=True, text=True, timeout=60).stderr
        carried_out = own.split("valid here: ")[1].split(")")[0].split(", ")
        self.assertLessEqual(set(carried_out), set(benches))
        rows = re.findall(r"^\| `troupe bench (\w+)` \|", (ROOT / "docs" / "command-line.md").read_text(), re.M)
        self.assertEqual(sorted(rows), sorted(benches))

    def test_examples_of_every_help_can_be_typed_as_they_are(self):
        verbs = re.findall(r"^  ([a-z]+) +\S", self.ask("--help").stdout.split("Subcommands:")[1].split("Examples:")[0], re.M)
        self.assertGreater(len(verbs), 10)
        for verb in verbs:
            for line in self.ask(verb, "--help").stdout.split("Example")[-1].splitlines():
                if line.startswith("  troupe"):
                    self.assertNotRegex(re.sub(r"'[^']*'", "", line), r"[\[\]{}*?]", f"a shell would read more into it: {line}")

    def test_a_missing_loop_program_is_not_called_the_actor_program(self):
        job = ROOT / "examples" / "direct_calls" / "job.yaml"
        self.assertIn("the program of --loop /no-loop cannot be executed", self.ask("run", job, "--loop", "/no-loop", code=2).stderr)
        self.assertIn("the actor program /no-actor cannot be executed", self.ask("run", job, "--actor", "/no-actor", code=2).stderr)

    def test_eval_names_the_model_as_it_was_given(self):
        job = SHAPES / "quickstart.yaml"
        for model, why in (("nope", "does not exist"), (SHAPES / "model", "has no *.safetensors weights")):
            said = self.ask("eval", job, "--model", model, code=2).stderr
            self.assertTrue(said.startswith(f"troupe: --model {model}: key 'model.path': "), said)
            self.assertIn(why, said)
            self.assertNotIn("--set", said)

    def test_a_device_that_is_not_there_is_named_with_the_node_of_its_manifest(self):
        (self.folder / "c.yaml").write_text("nodes:\n  - {name: far, address: 127.0.0.1, devices: {cuda: 90-91}}\nlaunch: local\n"
                                            "network: {control: '127.0.0.1:0'}\nsecurity: token\n")
        said = self.ask("run", SHAPES / "quickstart.yaml", "--cluster", "c.yaml", "--set", "device=cuda", code=2).stderr
        self.assertIn("slot far:90 is device 'cuda:90'", said)

    def test_a_bench_of_a_job_names_the_job_s_own_file_and_needs_no_warm_up_within_its_steps(self):
        job = self.folder / "job.yaml"
        text = (SHAPES / "quickstart.yaml").read_text().replace("path: model,", f"path: {SHAPES}/model,").replace("train.jsonl, image_root: images", f"{SHAPES}/train.jsonl, image_root: {SHAPES}/images")
        text = re.sub(r"eval:\n.*\n.*\n", "", text)
        job.write_text(text + "profile: {steps: [10, 12]}\ndebug: {dump: {steps: [9]}}\n")
        self.assertIn("warmup_steps: 50", text)
        self.assertEqual(json.loads(self.ask("bench", "feed", job, "--steps", 3, "--json").stdout)["steps"], 3)
        job.write_text(text.replace("data:", "data: {synthetic: {images: 1}}\nunused:", 1).split("unused:")[0] + "training: {steps: 1}\n")
        said = self.ask("bench", "feed", job, code=2).stderr
        self.assertRegex(said, r"job\.yaml:\d+: key 'data\.synthetic'")

    def boundary_bench(self):
        """The running bench behind its first row, and the processes that measure."""
        bench = subprocess.Popen([TROUPE, "bench", "boundary", "--max-size", "64"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
        self.addCleanup(bench.kill)
        for _ in range(2):
            self.assertTrue(bench.stdout.readline())
        children = pathlib.Path(f"/proc/{bench.pid}/task/{bench.pid}/children").read_text().split()
        self.assertEqual(len(children), 2)
        return bench, [int(pid) for pid in children]

    def ends_at_once(self, bench, children, code):
        start = time.monotonic()
        said = bench.communicate(timeout=60)[1]
        self.assertLess(time.monotonic() - start, 5)
        self.assertEqual(bench.returncode, code, said)
        for pid in children:
            self.assertFalse(pathlib.Path(f"/proc/{pid}").exists())
        return said

    def test_the_boundary_bench_ends_at_once_when_a_process_of_it_is_killed(self):
        bench, children = self.boundary_bench()
        os.kill(children[1], signal.SIGKILL)
        said = self.ends_at_once(bench, children, 1)
        self.assertEqual(said, f"troupe bench boundary: the measuring process {children[1]} was killed by signal 9 (Killed)\n")

    def test_an_interrupted_boundary_bench_says_so_in_a_line_and_leaves_no_process(self):
        bench, children = self.boundary_bench()
        os.killpg(bench.pid, signal.SIGINT)
        self.assertEqual(self.ends_at_once(bench, children, 130), "troupe bench boundary: interrupted\n")

    def test_a_batch_that_cannot_be_used_is_refused(self):
        config = json.loads((SHAPES / "model" / "config.json").read_text())
        patch = config["vision_config"]["patch_size"] ** 2 * 3 * 2
        image = config["image_token_id"]
        ids, pixels = integers([1, 3], [5, 6, 7]), ("F32", [4, patch], bytes(4 * 4 * patch))
        batches = {
            "text": b"input_ids, labels",
            "empty": b"",
            "lacking": safetensors(input_ids=ids),
            "dtype": safetensors(input_ids=("F32", [1, 3], bytes(12)), labels=ids, pixel_values=pixels, image_grid_thw=integers([1, 3], [1, 2, 2])),
            "grid": safetensors(input_ids=ids, labels=ids, pixel_values=pixels, image_grid_thw=integers([1, 1], [4])),
            "negative": safetensors(input_ids=ids, labels=ids, pixel_values=pixels, image_grid_thw=integers([1, 3], [1, -2, -2])),
            "odd": safetensors(input_ids=ids, labels=ids, pixel_values=pixels, image_grid_thw=integers([1, 3], [1, 1, 4])),
            "images": safetensors(input_ids=ids, labels=ids, pixel_values=pixels, image_grid_thw=integers([1, 3], [1, 2, 2])),
            "tokens": safetensors(input_ids=integers([1, 3], [image, image, 7]), labels=ids, pixel_values=pixels, image_grid_thw=integers([1, 3], [1, 2, 2])),
            "ids": safetensors(input_ids=integers([1, 3], [5, 6, 1 << 40]), labels=ids, pixel_values=("F32", [0, patch], b""), image_grid_thw=integers([0, 3], [])),
        }
        for name, content in batches.items():
            with self.subTest(name):
                (self.folder / name).write_bytes(content)
                said = self.ask("bench", "step", "--batch", name, "--model", SHAPES / "model", "--random", "--steps", 1, "--json", code=2)
                self.assertIn(f"{name}: ", said.stderr)
                self.assertEqual(json.loads(said.stdout)["error"]["exit_code"], 2)
        self.ask("bench", "step", "--batch", self.folder, "--model", SHAPES / "model", "--random", code=2)


def main():
    global TROUPE
    parser = argparse.ArgumentParser()
    parser.add_argument("--troupe", required=True)
    known, rest = parser.parse_known_args()
    TROUPE = str(pathlib.Path(known.troupe).resolve())
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)


if __name__ == "__main__":
    main()
