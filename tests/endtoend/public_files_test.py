"""Files as three other projects document them, untouched, through `troupe check` and five steps.

Usage: public_files_test.py --troupe BUILD/bin/troupe [-k WORD]
The same conversations in the spelling of LLaVA (one JSON array), ms-swift (JSONL, messages, a system turn, several pictures, and its older query and
response) and LLaMA-Factory (dataset_info.json beside sharegpt and alpaca files): all three train the same and give one loss.
"""
import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHAPES = ROOT / "examples" / "shapes"
TROUPE = None
STEPS, BATCH = 5, 4

SPEC = """name: {name}
model: {{path: {shapes}/model, init: random, dtype: fp32}}
groups:
  vision: {{mesh: {{sp: 2}}}}
  text: {{mesh: {{tp: 2}}}}
device: cpu
data: {{sources: [{source}], shuffle: false}}
training:
  steps: {steps}
  global_batch: {batch}
  optimizer: {{lr: 1.0e-3}}
checkpoint: {{export: never}}
"""


def conversations():
    """Turns as (role, text), pictures: one picture, two pictures in two turns, a system turn, none, several turns."""
    pictures = sorted(f"train/{p.name}" for p in (SHAPES / "images" / "train").iterdir())
    chats = [
        ([("user", "<image>\nWhat is shown?"), ("assistant", "a shape.")], 1),
        ([("user", "<image>\nWhat is it?"), ("assistant", "one."), ("user", "<image>\nAnd this?"), ("assistant", "another.")], 2),
        ([("system", "Answer in one word."), ("user", "What colour has grass?"), ("assistant", "green")], 0),
        ([("user", "<image>Is it red?"), ("assistant", "yes"), ("user", "Sure?"), ("assistant", "no")], 1),
    ]
    taken = 0
    for number in range(STEPS * BATCH):
        turns, count = chats[number % len(chats)]
        yield turns, pictures[taken:taken + count]
        taken += count


def llava(folder):
    names = {"user": "human", "assistant": "gpt", "system": "system"}
    records = []
    for number, (turns, pictures) in enumerate(conversations()):
        record = {"id": f"{number:09d}", "conversations": [{"from": names[role], "value": text} for role, text in turns]}
        if pictures:
            record = {"id": record["id"], "image": pictures[0] if len(pictures) == 1 else pictures, "conversations": record["conversations"]}
        records.append(record)
    (folder / "llava_instruct.json").write_text(json.dumps(records, indent=2))
    return f"{{path: {folder}/llava_instruct.json, image_root: {SHAPES}/images}}"


def swift(folder):
    lines = []
    for turns, pictures in conversations():
        pictures = [str(SHAPES / "images" / name) for name in pictures]
        if len(turns) == 2:  # as older versions document it
            lines.append({"query": turns[0][1], "response": turns[1][1], "images": pictures})
        else:
            lines.append({"messages": [{"role": role, "content": text} for role, text in turns], **({"images": pictures} if pictures else {})})
    (folder / "swift.jsonl").write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
    return f"{{path: {folder}/swift.jsonl}}"


def factory(folder):
    records = []
    for turns, pictures in conversations():
        records.append({"messages": [{"content": text, "role": role} for role, text in turns], "images": [f"images/{name}" for name in pictures]})
    (folder / "mllm_demo.json").write_text(json.dumps(records, indent=2))
    (folder / "dataset_info.json").write_text(json.dumps({
        "mllm_demo": {"file_name": "mllm_demo.json", "formatting": "sharegpt", "columns": {"messages": "messages", "images": "images"},
                      "tags": {"role_tag": "role", "content_tag": "content", "user_tag": "user", "assistant_tag": "assistant", "system_tag": "system"}},
        "alpaca_en_demo": {"file_name": "alpaca_en_demo.json"}}, indent=2))
    (folder / "images").symlink_to(SHAPES / "images")
    return f"{{path: {folder}/dataset_info.json, datasets: mllm_demo}}"


class PublicFiles(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="troupe-public-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def troupe(self, *arguments):
        done = subprocess.run([TROUPE, *map(str, arguments)], capture_output=True, text=True, timeout=240)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def train(self, name, source):
        job, run = self.folder / f"{name}.yaml", self.folder / f"run-{name}"
        job.write_text(SPEC.format(name=name, shapes=SHAPES, source=source, steps=STEPS, batch=BATCH))
        report = json.loads(self.troupe("check", job, "--json"))
        self.assertEqual((report["bad"], report["records"]), (0, STEPS * BATCH), report)
        self.troupe("run", job, "--run-dir", run)
        return [json.loads(line)["loss"] for line in (run / "metrics.jsonl").read_text().splitlines()]

    def test_three_public_spellings_of_the_same_records_train_the_same(self):
        losses = {}
        for make in (llava, swift, factory):
            folder = self.folder / make.__name__
            folder.mkdir()
            losses[make.__name__] = self.train(make.__name__, make(folder))
        self.assertEqual(len(losses["llava"]), STEPS)
        self.assertEqual(losses["llava"], losses["swift"])
        self.assertEqual(losses["llava"], losses["factory"])

    def test_an_alpaca_file_of_a_dataset_list_trains(self):
        records = [{"instruction": f"Say {n}.", "input": "", "output": f"{n}", "system": "Be short.", "history": [["One?", "1"]]} for n in range(STEPS * BATCH)]
        (self.folder / "alpaca_en_demo.json").write_text(json.dumps(records))
        (self.folder / "dataset_info.json").write_text(json.dumps({"alpaca_en_demo": {
            "file_name": "alpaca_en_demo.json",
            "columns": {"prompt": "instruction", "query": "input", "response": "output", "system": "system", "history": "history"}}}))
        losses = self.train("alpaca", f"{{path: {self.folder}/dataset_info.json, datasets: [alpaca_en_demo]}}")
        self.assertEqual(len(losses), STEPS)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--troupe", required=True)
    options, rest = parser.parse_known_args()
    TROUPE = options.troupe
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
