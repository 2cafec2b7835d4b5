#!/usr/bin/env python3
"""Times the indexing of many records, the first time and from the cache, beside datasets.load_dataset("json") in the same run.

    PYTHON index.py --troupe BUILD/bin/troupe --opens BUILD/tests/base/data/index_open [--records 100000] [--model FOLDER] [--keep FOLDER]

PYTHON has the package datasets (`deploy/bootstrap.sh --benches`: .deps/benches/bin/python); without it that part is left out. Two files of
records of about 2 KB, every one with one of RECORDS/5 distinct pictures: in `sizes` nearly all of it stands under a key that is not read, so that
what takes time is finding records and picture sizes; in `tokens` it is conversation. Memory is the most that a process had resident.
Exit code 1 when a bar is missed: sizes within 120 s a million records, 500 MB, a finished index opened within 0.5 s a million samples.
"""
import argparse
import itertools
import json
import os
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
RECORD_BYTES, RECORDS_A_PICTURE = 2000, 5
SIZES_S, MEMORY_MB, OPEN_S = 120, 500, 0.5  # seconds of a million records
JOB = """name: bench
model: {{path: {model}, init: random, dtype: fp32}}
device: cpu
data: {{sources: [{{path: {records}, image_root: {images}}}], max_sample_tokens: 100000}}
training: {{steps: 1, global_batch: 1}}
checkpoint: {{export: never}}
"""


def png(width, height, shade):
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    rows = (b"\0" + bytes([shade, 90, 160]) * width) * height
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def make_pictures(folder, count, rng):
    forms = [png(rng.randint(60, 900), rng.randint(60, 900), i) for i in range(64)]
    for i in range(count):
        if i % 1000 == 0:
            (folder / f"{i // 1000:04d}").mkdir(parents=True)
        (folder / f"{i // 1000:04d}" / f"{i:08d}.png").write_bytes(forms[i % len(forms)])


def paragraphs(rng):
    """Texts of about a quarter of a record, of words as frequent as in speech and some that are rare."""
    words = ["".join(rng.choice("etaoinshrdlucmfwypvbgkjqxz") for _ in range(rng.randint(2, 11))) for _ in range(30000)]
    weights = list(itertools.accumulate(1 / (i + 2) for i in range(len(words))))
    return [" ".join(rng.choices(words, cum_weights=weights, k=80))[: RECORD_BYTES // 4] for _ in range(20000)]


def make_records(folder, count, rng):
    texts = paragraphs(rng)
    with open(folder / "sizes.jsonl", "w") as sizes, open(folder / "tokens.jsonl", "w") as tokens:
        for i in range(count):
            picture = rng.randrange((count + RECORDS_A_PICTURE - 1) // RECORDS_A_PICTURE)
            head = f'{{"id": "{i}", "image": "{picture // 1000:04d}/{picture:08d}.png", '
            a, b, c, d = rng.choices(texts, k=4)
            sizes.write(f'{head}"conversations": [{{"from": "human", "value": "<image>What?"}}, {{"from": "gpt", "value": "That."}}], "notes": "{a} {b} {c} {d}"}}\n')
            tokens.write(f'{head}"conversations": [{{"from": "human", "value": "<image>{a}"}}, {{"from": "gpt", "value": "{b} {c} {d}"}}]}}\n')


def timed(command, environment, timeout):
    """Seconds, the most memory of a process in MB, what was printed; exits when the command fails."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        begin = time.monotonic()
        process = subprocess.Popen(list(map(str, command)), stdout=out, stderr=err, env={**os.environ, **environment})
        killer = subprocess.Popen(["sh", "-c", f"sleep {timeout} && kill -9 {process.pid}"], start_new_session=True)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - begin
        os.killpg(killer.pid, 9)
        killer.wait()
        out.seek(0)
        err.seek(0)
        if status != 0:
            sys.exit(f"{' '.join(map(str, command))} ended with status {status}: {err.read()[-2000:]}")
        return seconds, usage.ru_maxrss * 1024 / 1e6, out.read()


def measure_troupe(options, folder, name):
    job = folder / f"{name}.yaml"
    job.write_text(JOB.format(model=options.model, records=folder / f"{name}.jsonl", images=folder / "images"))
    cache = {"TROUPE_CACHE": str(folder / f"cache-{name}")}
    rows = []
    for turn in ("first", "again"):
        seconds, memory, out = timed([options.troupe, "check", job, "--json"], cache, options.timeout)
        report = json.loads(out)
        rows.append({"data": name, "by": "troupe check", "turn": turn, "seconds": round(seconds, 2), "memory_mb": round(memory), "tokens": report["tokens"]["total"],
                     **report["index"]})
    index = folder / f"{name}.index"
    timed([pathlib.Path(options.troupe).with_name("troupe-actor"), "index", "--job", job, "--out", index], cache, options.timeout)
    opened = json.loads(timed([options.opens, index], {}, 600)[2])
    rows.append({"data": name, "by": "troupe", "turn": "opening the index", "seconds": round(opened["seconds"], 4), "memory_mb": round(opened["memory_mb"])})
    return rows


def measure_datasets(options, folder, name):
    script = ('import sys, datasets; datasets.disable_progress_bars(); '
              'print(len(datasets.load_dataset("json", data_files=sys.argv[1], split="train", cache_dir=sys.argv[2])))')
    if subprocess.run([sys.executable, "-c", "import datasets"], capture_output=True).returncode:
        print("the package datasets is not installed (deploy/bootstrap.sh --benches): left out", file=sys.stderr)
        return []
    rows = []
    for turn in ("first", "again"):
        seconds, memory, _ = timed([sys.executable, "-c", script, folder / f"{name}.jsonl", folder / f"hf-{name}"],
                                   {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(folder / "hf-home")}, options.timeout)
        rows.append({"data": name, "by": "datasets", "turn": turn, "seconds": round(seconds, 2), "memory_mb": round(memory)})
    return rows


def missed(rows, records):
    millions = records / 1e6
    for row in rows:
        if row["by"] == "datasets":
            continue
        if row["memory_mb"] > MEMORY_MB:
            yield f"{row['data']}, {row['turn']}: {row['memory_mb']} MB, more than {MEMORY_MB}"
        limit = {("sizes", "first"): SIZES_S, ("sizes", "opening the index"): OPEN_S, ("tokens", "opening the index"): OPEN_S}.get((row["data"], row["turn"]))
        # The start of the programs and the model's tokenizer are in it too.
        if limit and row["seconds"] > limit * millions + 2:
            yield f"{row['data']}, {row['turn']}: {row['seconds']} s, more than {limit} s a million records"
        if row["turn"] == "again" and row["cached_blocks"] != row["blocks"]:
            yield f"{row['data']}: only {row['cached_blocks']} of {row['blocks']} blocks came from the cache"


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--troupe", required=True, type=pathlib.Path)
    p.add_argument("--opens", required=True)
    p.add_argument("--records", type=int, default=100000)
    p.add_argument("--model", type=pathlib.Path, default=ROOT / "examples" / "shapes" / "model")
    p.add_argument("--timeout", type=int, default=3600)
    p.add_argument("--keep", type=pathlib.Path, help="makes the data here, or takes those that are here, and leaves them")
    options = p.parse_args()
    options.troupe, options.model = options.troupe.resolve(), options.model.resolve()
    folder = (options.keep or pathlib.Path(tempfile.mkdtemp(prefix="troupe-index-"))).resolve()
    try:
        if not (folder / "made").exists():
            rng = random.Random(1)
            make_pictures(folder / "images", (options.records + RECORDS_A_PICTURE - 1) // RECORDS_A_PICTURE, rng)
            make_records(folder, options.records, rng)
            (folder / "made").write_text(str(options.records))
        records = int((folder / "made").read_text())
        rows = []
        for name in ("sizes", "tokens"):
            rows += measure_troupe(options, folder, name) + measure_datasets(options, folder, name)
            shutil.rmtree(folder / f"cache-{name}")
            shutil.rmtree(folder / f"hf-{name}", ignore_errors=True)
        for row in rows:
            more = f", {row['tokens'] / row['seconds'] / 1e6:.2f} million tokens a second" if row.get("tokens") and row["data"] == "tokens" and row["turn"] == "first" else ""
            print(f"{row['data']:7} {row['by']:13} {row['turn']:18} {row['seconds']:9.2f} s {row['memory_mb']:6} MB{more}")
        print(json.dumps({"records": records, "megabytes": {n: round((folder / f"{n}.jsonl").stat().st_size / 1e6) for n in ("sizes", "tokens")}, "rows": rows}))
        complaints = list(missed(rows, records))
        for complaint in complaints:
            print(f"missed: {complaint}")
        return 1 if complaints else 0
    finally:
        if not options.keep:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
