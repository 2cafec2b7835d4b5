"""Runs every mix of text and pictures in six layouts and holds each against transformers, one record at a time.

Usage: python3 mixes.py --troupe PATH [--only REGEX] [--work DIR]
The mixes: no picture in a whole run; a picture in every record, in some nothing else; whole batches with and without pictures in turn; batches
in which half of the records, and with two lanes all of one lane's, are text; videos, by their frames and as files. Then answers that count differently, a whole batch not at all, and tools'
turns. Rows D05 and D06 of docs/data.md. Exit code 1 on any miss.
"""

import argparse
import os
import re
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from transformers.utils import logging

import compare
from layouts import Layout
from reference import Training
from run import TIMEOUT_S, Bench, finish, show, try_layout

SIZES = [(112, 140), (28, 56), (84, 56), (130, 75), (56, 56), (168, 168)]
MIXES = {
    "text-only": [[]] * 20,
    "pictures-everywhere": [((SIZES[i % 6],) if i % 3 == 0 else [SIZES[i % 6], SIZES[(i + 2) % 6]][: 1 + i % 2]) for i in range(20)],
    "batches-in-turn": [[SIZES[i % 6]] if (i // 4) % 2 == 0 else [] for i in range(20)],
    "half-of-each-batch": [[SIZES[i % 6], SIZES[(i + 1) % 6]] if i % 4 < 2 else [] for i in range(20)],
    # Of every length: one frame to eight, odd ones, with and without a rate; several in a record, pictures among them, records without any.
    "videos": [[[(60, 85, 4)], [], [(112, 56, 5, 2), (84, 84)], [(28, 56, 1)]][i % 4] if i < 8 else
               [[(140, 84, 8, 1.5)], [(56, 56), (56, 28, 2, 0.7), (84, 56, 3, 3)], [], ((168, 112, 6),)][i % 4] for i in range(20)],
}
# The same as files, where the program reads them.
FILES = {"video-files": [[[(62, 86, 20, 10, "mp4")], [], [(112, 56, 33, 12, "mkv"), (84, 84)], [(84, 56, 9, 24, "avi")]][i % 4] if i < 12 else
                         [[(140, 84, 6, 1, "mov")], [], [(56, 56, 40, 5, "mp4"), (84, 56, 8, 8, "mkv")], []][i % 4] for i in range(20)]}
# Of the records' answers in turn: there are six a batch at most, so one batch has none but the eight of weight 0.
WEIGHTS = {"weighted-answers": [1, 0.5, 2.5, 0, 0.125, 1, 0, 3] + [0] * 8}
LAYOUTS = [
    Layout("sp2-tp2", (1, 2), (1, 2)),
    Layout("sp4-tp4-sequence", (1, 4), (1, 4), tp_sequence=True, microbatch="{samples: 2}"),
    Layout("dp2-dp2", (2, 1), (2, 1), zero=(1, 1)),
    Layout("dp2sp2-dp2tp2-packed", (2, 2), (2, 2), zero=(1, 1), pack_tokens=256),
    Layout("disjoint-3-to-2", (1, 3), (1, 2), placement="disjoint", unit_images=1),
    Layout("disjoint-dp2-to-dp2tp2", (2, 1), (2, 2), placement="disjoint", zero=(1, 1)),
    Layout("frozen-encoder", (1, 2), (1, 2), training=Training(frozen=("vision",))),
]


def options():
    p = argparse.ArgumentParser()
    p.add_argument("--troupe", required=True)
    p.add_argument("--only", default="", help="regular expression on MIX-LAYOUT")
    p.add_argument("--files", action="store_true", help="files of video too: the program was built with FFmpeg")
    p.add_argument("--work", help="folder for models, runs and logs (default: a temporary one)")
    p.add_argument("--timeout", type=float, default=TIMEOUT_S, help="seconds a run")
    a = p.parse_args()
    a.keep = False
    return a


def main():
    a = options()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    torch.set_num_threads(1)
    work = Path(a.work or tempfile.mkdtemp(prefix="troupe-mixes-")).absolute()
    tried = missed = 0
    print(f"     {'limit':45s} {compare.LOSS:.1e}  {compare.NORM:.1e}  {compare.GRADIENT:.1e}  {compare.ROWS:.1e}  {compare.CHANGE:.1e}")
    for mix, pictures in (MIXES | (FILES if a.files else {}) | dict.fromkeys(WEIGHTS, MIXES["pictures-everywhere"])).items():
        bench = Bench(work / mix, pictures, WEIGHTS.get(mix, ()))
        for layout in LAYOUTS:
            layout = replace(layout, name=f"{mix}-{layout.name}")
            if not re.search(a.only, layout.name):
                continue
            begin = time.monotonic()
            verdict = try_layout(bench, layout, a)
            tried, missed = tried + 1, missed + bool(verdict.complaints)
            show(layout, verdict, time.monotonic() - begin)
    if not tried:
        sys.exit(f"no run matches '{a.only}'")
    finish(a, work, f"{tried - missed} of {tried} runs agree with transformers", missed)


if __name__ == "__main__":
    main()
