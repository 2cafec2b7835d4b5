"""Parquet files as pyarrow writes them, and as the Hugging Face `datasets` library keeps pictures, through `troupe check` and five steps.

Usage: parquet_test.py --troupe BUILD/bin/troupe [-k WORD]
Exit code 77 where the program was built without Parquet or there is no pyarrow.
"""
import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError:
    print("skipped: there is no pyarrow (deploy/bootstrap.sh --tests)")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHAPES = ROOT / "examples" / "shapes"
TROUPE = None
STEPS, BATCH, SKIPPED = 5, 4, 77
WITHOUT = "built without Parquet"

SPEC = """name: {name}
model: {{path: {shapes}/model, init: random, dtype: fp32}}
groups:
  vision: {{mesh: {{{vision}}}}}
  text: {{mesh: {{{text}}}}}
device: cpu
data: {{sources: [{source}], shuffle: {shuffle}}}
training:
  steps: {steps}
  global_batch: {batch}
  optimizer: {{lr: 1.0e-3}}
checkpoint: {{export: never}}
"""
LAYOUTS = ({"vision": "sp: 2", "text": "tp: 2"}, {"vision": "dp: 2", "text": "dp: 2"})

PICTURE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
TURN = pa.struct([("from", pa.string()), ("value", pa.string())])
# What `datasets` writes beside the columns; its readers make pictures of them by it.
FEATURES = {b"huggingface": json.dumps({"info": {"features": {
    "images": {"feature": {"_type": "Image"}, "_type": "List"},
    "conversations": {"feature": {"from": {"dtype": "string", "_type": "Value"}, "value": {"dtype": "string", "_type": "Value"}}, "_type": "List"}}}}).encode()}


def records():
    """One picture, two of them, none; one turn and several."""
    names = sorted(f"train/{p.name}" for p in (SHAPES / "images" / "train").iterdir())
    taken = 0
    for number in range(STEPS * BATCH):
        count = (1, 2, 0, 1)[number % 4]
        turns = [("human", "<image>" * count + f"\nWhat is it, {number}?"), ("gpt", f"a shape, ü{number}.")]
        if number % 4 == 3:
            turns += [("human", "Sure?"), ("gpt", "yes")]
        yield {"id": f"r{number}", "images": names[taken:taken + count], "conversations": [{"from": who, "value": text} for who, text in turns]}
        taken += count


def with_bytes(names):
    return [{"bytes": (SHAPES / "images" / name).read_bytes(), "path": pathlib.Path(name).name} for name in names]


def columns(turn=TURN, picture=PICTURE, listed=pa.list_, pictures=with_bytes):
    rows = list(records())
    return {"id": pa.array([r["id"] for r in rows]), "images": pa.array([pictures(r["images"]) for r in rows], listed(picture)),
            "conversations": pa.array([r["conversations"] for r in rows], listed(turn))}


class Parquet(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="troupe-parquet-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def troupe(self, *arguments, code=0):
        done = subprocess.run([TROUPE, *map(str, arguments)], capture_output=True, text=True, timeout=240)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr if code else done.stdout

    def write(self, name, data, metadata=None, **options):
        table = pa.table(data)
        pq.write_table(table.replace_schema_metadata(metadata) if metadata else table, self.folder / name, **options)
        return f"{{path: {self.folder}/{name}}}"

    def lines(self):
        (self.folder / "records.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records()))
        return f"{{path: {self.folder}/records.jsonl, image_root: {SHAPES}/images}}"

    def job(self, name, source, layout=LAYOUTS[0], shuffle="false"):
        path = self.folder / f"{name}.yaml"
        path.write_text(SPEC.format(name=name, shapes=SHAPES, source=source, steps=STEPS, batch=BATCH, shuffle=shuffle, **layout))
        return path

    def check(self, source):
        report = json.loads(self.troupe("check", self.job("check", source), "--json"))
        return {key: report[key] for key in ("records", "bad", "samples", "tokens", "supervised", "images") if key in report}

    def losses(self, name, source, layout, shuffle="false"):
        run = self.folder / f"run-{name}"
        self.troupe("run", self.job(name, source, layout, shuffle), "--run-dir", run)
        return [json.loads(line)["loss"] for line in (run / "metrics.jsonl").read_text().splitlines()]

    def test_rows_with_pictures_train_bitwise_as_lines_with_files_do(self):
        lines, rows = self.lines(), self.write("train-00000-of-00001.parquet", columns(), FEATURES, row_group_size=6)
        for number, layout in enumerate(LAYOUTS):
            for shuffle in ("false", "true"):
                with self.subTest(layout=layout, shuffle=shuffle):
                    expected = self.losses(f"lines-{number}-{shuffle}", lines, layout, shuffle)
                    self.assertEqual(len(expected), STEPS)
                    self.assertEqual(self.losses(f"rows-{number}-{shuffle}", rows, layout, shuffle), expected)

    def test_codecs_encodings_and_types_make_no_difference(self):
        expected = self.check(self.lines())
        self.assertEqual((expected["bad"], expected["records"]), (0, STEPS * BATCH))
        large_turn = pa.struct([("from", pa.dictionary(pa.int8(), pa.string())), ("value", pa.large_string())])
        large_picture = pa.struct([("bytes", pa.large_binary()), ("path", pa.large_string())])
        paths = f", image_root: {SHAPES}/images}}"
        files = {
            "snappy": (columns(), {"compression": "snappy", "row_group_size": 3}),
            "zstd": (columns(large_turn, large_picture, pa.large_list), {"compression": "zstd", "data_page_version": "2.0", "write_page_index": True}),
            "gzip": (columns(), {"compression": "gzip", "use_dictionary": False, "data_page_size": 1000, "write_batch_size": 2}),
            "plain": (columns(large_turn), {"compression": "none", "row_group_size": 1}),
            "bytes": (columns(picture=pa.binary(), pictures=lambda names: [p["bytes"] for p in with_bytes(names)]), {}),
            "paths": (columns(picture=pa.string(), pictures=lambda names: names), {}),
        }
        for name, (data, options) in files.items():
            with self.subTest(name):
                data |= {"stamp": pa.array([0] * STEPS * BATCH, pa.timestamp("ms")), "score": pa.array([0.5] * STEPS * BATCH)}
                source = self.write(f"{name}.parquet", data, **options)
                self.assertEqual(self.check(source[:-1] + paths if name == "paths" else source), expected)

    def test_a_dataset_list_names_a_parquet_file(self):
        self.write("data.parquet", columns())
        (self.folder / "dataset_info.json").write_text(json.dumps({"shapes": {
            "file_name": "data.parquet", "formatting": "sharegpt", "num_samples": 12, "columns": {"messages": "conversations", "images": "images"}}}))
        self.assertEqual(self.check(f"{{path: {self.folder}/dataset_info.json, datasets: shapes}}")["records"], 12)
        self.assertEqual(self.check(f"{{path: {self.folder}/data.parquet, take: 0.5, weight: 2}}")["records"], STEPS * BATCH // 2)

    def test_what_cannot_be_read_is_refused_with_exit_code_2(self):
        source = self.write("cut.parquet", columns())
        path = self.folder / "cut.parquet"
        path.write_bytes(path.read_bytes()[:-10])
        said = self.troupe("run", self.job("cut", source), "--run-dir", self.folder / "out", code=2)
        self.assertIn(f"key 'data.sources[0].path': {path} is a Parquet file that is cut off", said)
        turn = pa.struct([("from", pa.string()), ("value", pa.timestamp("us"))])
        source = self.write("types.parquet", {"conversations": pa.array([[{"from": "human", "value": 1}]], pa.list_(turn))})
        said = self.troupe("run", self.job("types", source), "--run-dir", self.folder / "out", code=2)
        self.assertIn("has column 'conversations.value' of type Timestamp", said)


def built_without():
    with tempfile.TemporaryDirectory() as folder:
        pq.write_table(pa.table({"conversations": ["x"]}), f"{folder}/a.parquet")
        (pathlib.Path(folder) / "job.yaml").write_text(SPEC.format(
            name="a", shapes=SHAPES, source=f"{{path: {folder}/a.parquet}}", steps=1, batch=1, shuffle="false", **LAYOUTS[0]))
        done = subprocess.run([TROUPE, "check", f"{folder}/job.yaml"], capture_output=True, text=True, timeout=120)
        return WITHOUT in done.stdout + done.stderr


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--troupe", required=True)
    options, rest = parser.parse_known_args()
    TROUPE = options.troupe
    if built_without():
        print(f"skipped: {WITHOUT}")
        sys.exit(SKIPPED)
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
