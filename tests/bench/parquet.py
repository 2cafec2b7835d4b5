#!/usr/bin/env python3
"""What rows of Parquet files cost in order and shuffled, for files with and without page index, with many and few groups of rows.

    python parquet.py --speed BUILD/tests/actors/parquet/parquet_speed [--pictures 2000] [--texts 200000] [--most-ms M]

Prints a table of milliseconds a row, one thread. Exit code 1 when a shuffled row of any file (of 1000) takes more than M, 77 without pyarrow.
"""
import argparse
import os
import pathlib
import random
import subprocess
import sys
import tempfile

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError:
    print("skipped: there is no pyarrow (deploy/bootstrap.sh --tests)")
    sys.exit(77)

PICTURE_BYTES, WORDS = 100_000, ["some", "words", "that", "a", "picture", "shows", "twice", "7", "blue", "circle"]
TURNS = pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))


def conversations(count, words):
    text = lambda: " ".join(random.choices(WORDS, k=words))
    return pa.array([[{"role": "user", "content": text()}, {"role": "assistant", "content": text()}] for _ in range(count)], TURNS)


def files(folder, pictures, texts):
    random.seed(1)
    image = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    shown = pa.table({"image": pa.array([{"bytes": os.urandom(PICTURE_BYTES), "path": "a.jpg"} for _ in range(pictures)], image),
                      "messages": conversations(pictures, 20)})
    said = pa.table({"messages": conversations(texts, 200)})
    for name, table, options in [
            ("pictures, groups of 100, no index", shown, {"row_group_size": 100}),
            ("pictures, groups of 100, index, content-defined pages", shown, {"row_group_size": 100, "write_page_index": True, "use_content_defined_chunking": True}),
            ("pictures, one group, pages of 1 MB, no index", shown, {"write_batch_size": 8}),
            ("texts, one group, no index", said, {}),
            ("texts, one group, index", said, {"write_page_index": True}),
            ("texts, groups of 1000, zstd", said, {"row_group_size": 1000, "compression": "zstd"})]:
        path = folder / "rows.parquet"
        pq.write_table(table, path, **({"compression": "snappy"} | options))
        yield name, path


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--speed", required=True)
    p.add_argument("--pictures", type=int, default=2000)
    p.add_argument("--texts", type=int, default=200_000)
    p.add_argument("--most-ms", type=float)
    a = p.parse_args()
    slow = False
    print("| file | in order | shuffled, first 40 | shuffled, 1000 |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="troupe-parquet-") as folder:
        for name, path in files(pathlib.Path(folder), a.pictures, a.texts):
            times = [float(subprocess.run([a.speed, path, order, str(rows)], capture_output=True, text=True, check=True, timeout=300).stdout)
                     for order, rows in (("ordered", 10**9), ("shuffled", 40), ("shuffled", 1000))]
            print(f"| {name} | " + " | ".join(f"{t:.2g}" for t in times) + " |", flush=True)
            slow |= a.most_ms is not None and times[-1] > a.most_ms
    sys.exit(1 if slow else 0)


if __name__ == "__main__":
    main()
