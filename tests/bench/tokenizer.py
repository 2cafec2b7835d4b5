#!/usr/bin/env python3
"""Tokenizing mixed text, beside Hugging Face tokenizers in the same run, one thread each: ids must be equal; prints MB/s.

    python tokenizer.py --speed BUILD/tests/actors/data/tokenizer_speed (--model FOLDER | --tiktoken FILE | --train N)
                        [--megabytes 20] [--runs 3] [--least-ratio R]

--tiktoken takes a file of byte-pair ranks (the wheel dashscope has resources/qwen.tiktoken) and makes a tokenizer.json in the Qwen form of
it; --train trains one of N tokens on some of the text. The text: words of many scripts, emoji, code, runs of spaces and digits, heaps of
combining marks, characters drawn from all of Unicode, random bytes made valid, and every character once, beside others that it might
compose with or be cut from. Speed is in processor time of the thread, which other processes on the machine hardly change.
Exit code 1 when an id differs (the first text is shown, and where: normalised text, pieces or ids) or when the ratio of speeds is less than R.
"""
import argparse
import base64
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time
import unicodedata

os.environ["RAYON_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
import numpy
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

PATTERN = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
SENTENCES = [
    "What is in the picture? There is a red circle and two blue squares on the table, isn't there?", "The quick brown fox jumps over the lazy dog.",
    "图片里有什么？有一只猫坐在椅子上，旁边还有一本书。", "これは赤い丸です。テーブルの上に本があります。", "그림에 무엇이 있습니까? 고양이가 의자에 앉아 있습니다.",
    "ما الذي يوجد في الصورة؟ يوجد قط أحمر على الكرسي.", "Что на картинке? Красный круг и два синих квадрата.", "Grüße aus Köln, naïve café, déjà vu, Ærøskøbing",
    "हिन्दी में लिखा हुआ एक वाक्य", "ภาษาไทยไม่มีช่องว่างระหว่างคำ", "שלום עולם, מה שלומך?", "Τι υπάρχει στην εικόνα;", "Bu resimde ne var? İstanbul'da bir kedi.",
    "def area(x: float) -> float:\n    return 3.14159 * x ** 2  # circle\n\n", "for (int i = 0; i < n; ++i) {\n\tsum += a[i] * b[i];\n}\r\n", "{\"id\": 12345, \"values\": [1.5, -2e10, null]}",
    "😀 👩‍👩‍👧‍👦 👍🏽 🇩🇪 🏳️‍🌈", "https://example.com/path?query=1&other=two#part", "        indented    text\t\twith   spaces\n\n\n", "2024-11-28 12:45:07.123456 +0100",
]


def mixed_texts(total):
    rng = random.Random(1)
    marks = [chr(c) for c in range(0x110000) if unicodedata.combining(chr(c))]
    # The planes of unassigned and private characters are alike: one of each is enough.
    points = [c for c in range(1, 0xE1000) if not 0xD800 <= c < 0xE000 and not 0x33000 <= c < 0xE0000]
    used = [c for c in points if unicodedata.category(chr(c)) not in ("Cn", "Co")] + [*range(0x1C80, 0x1C90), *range(0xA7CB, 0xA7DD), *range(0x10D40, 0x10D90)]

    def draw():
        kind = rng.random()
        if kind < 0.8:
            return " ".join(rng.choice(SENTENCES) for _ in range(rng.randint(1, 40)))
        if kind < 0.84:
            return "".join(chr(rng.choice(used)) for _ in range(rng.randint(1, 400)))
        if kind < 0.88:
            return "".join(rng.choice(marks) if rng.random() < 0.6 else rng.choice("aeionsAO'\u0915\u1100\u0644 1\n") for _ in range(rng.randint(1, 300)))
        if kind < 0.92:
            return "".join(rng.choice([" ", "\n", "\r", "\t", "\u3000", "\u00a0", "\u2028", "'", "s", "\u017f", "LL", "9", "!", "\u732b", "\u200d"]) for _ in range(rng.randint(1, 200)))
        return rng.randbytes(rng.randint(1, 800)).decode("utf-8", "replace").replace("\0", "")

    texts = ["".join(f"x{chr(c)}\u0334\u0345\u0301 {chr(c)}1" for c in points[i : i + 500]) for i in range(0, len(points), 500)]
    size = sum(len(t.encode()) for t in texts)
    while size < total:
        if text := draw():
            texts.append(text)
            size += len(text.encode())
    return texts


def write_tokenizer(ranks_file, folder):
    """Merges of byte-pair ranks: the two parts that a token falls into when only lower ranks merge."""
    ranks = {}
    for line in pathlib.Path(ranks_file).read_bytes().splitlines():
        token, rank = line.split()
        ranks[base64.b64decode(token)] = int(rank)
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    letters = {b: chr(b) for b in printable}
    for b in range(256):
        letters.setdefault(b, chr(256 + len(letters) - len(printable)))

    def spelt(token):
        return "".join(letters[b] for b in token)

    merges = []
    for token, rank in ranks.items():
        parts = [bytes([b]) for b in token]
        while len(parts) > 2:
            best = min(range(len(parts) - 1), key=lambda i: ranks.get(parts[i] + parts[i + 1], rank))
            if ranks.get(parts[best] + parts[best + 1], rank) >= rank:
                break
            parts[best : best + 2] = [parts[best] + parts[best + 1]]
        if len(parts) == 2:
            merges.append((rank, spelt(parts[0]), spelt(parts[1])))
    model = {"type": "BPE", "vocab": {spelt(t): r for t, r in ranks.items()}, "merges": [[a, b] for _, a, b in sorted(merges)]}
    steps = [{"type": "Split", "pattern": {"Regex": PATTERN}, "behavior": "Isolated", "invert": False},
             {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}]
    added = [{"id": len(ranks) + i, "content": t, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": t.startswith("<|")}
             for i, t in enumerate(["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>"])]
    (folder / "tokenizer.json").write_text(json.dumps(
        {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": {"type": "NFC"},
         "pre_tokenizer": {"type": "Sequence", "pretokenizers": steps}, "post_processor": None,
         "decoder": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}, "model": model}))


def train_tokenizer(texts, size, folder):
    made = Tokenizer(models.BPE())
    made.normalizer = normalizers.NFC()
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(PATTERN), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    made.decoder = decoders.ByteLevel()
    made.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), special_tokens=["<|im_start|>", "<|im_end|>"], show_progress=False))
    made.save(str(folder / "tokenizer.json"))


def show_difference(text, here, there, theirs):
    """Where two lists of a text's ids part, and what the other side made of that place on the way."""
    at = next((i for i, (a, b) in enumerate(zip(here, there)) if a != b), min(len(here), len(there)))
    print(f"text of {len(text)} characters differs at token {at}: here {here[at:at + 8]}, tokenizers {there[at:at + 8]}", file=sys.stderr)
    normal = theirs.normalizer.normalize_str(text) if theirs.normalizer else text
    print("before it: " + ascii(theirs.decode(there[max(at - 5, 0):at])) + ", there: " + ascii(theirs.decode(there[at:at + 8])), file=sys.stderr)
    print("characters: " + " ".join(f"{ord(c):x}" for c in normal[:60]), file=sys.stderr)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--speed", required=True)
    which = p.add_mutually_exclusive_group(required=True)
    which.add_argument("--model")
    which.add_argument("--tiktoken")
    which.add_argument("--train", type=int)
    p.add_argument("--megabytes", type=float, default=20)
    p.add_argument("--runs", type=int, default=3)
    p.add_argument("--least-ratio", type=float, default=0)
    options = p.parse_args()
    texts = mixed_texts(options.megabytes * 1e6)
    size = sum(len(t.encode()) for t in texts) / 1e6
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        folder = pathlib.Path(options.model) if options.model else scratch
        if options.tiktoken:
            write_tokenizer(options.tiktoken, folder)
        if options.train:
            train_tokenizer(texts[-len(texts) // 4:], options.train, folder)
        (scratch / "texts").write_bytes(b"".join(t.encode() + b"\0" for t in texts))
        theirs = Tokenizer.from_file(str(folder / "tokenizer.json"))
        theirs.encode_special_tokens = True
        times, there = {"here": [], "tokenizers": []}, []
        for _ in range(options.runs):
            out = subprocess.run([options.speed, folder, scratch / "texts", scratch / "ids", scratch / "counts"], check=True, capture_output=True, text=True, timeout=600)
            times["here"].append(float(out.stdout))
            begin = time.thread_time()
            there = [theirs.encode(t, add_special_tokens=False).ids for t in texts]
            times["tokenizers"].append(time.thread_time() - begin)
        ids = numpy.fromfile(scratch / "ids", numpy.int64)
        counts = numpy.fromfile(scratch / "counts", numpy.int64)
    here = [part.tolist() for part in numpy.split(ids, numpy.cumsum(counts)[:-1])]
    different = [i for i in range(len(texts)) if here[i] != there[i]]
    if different:
        show_difference(texts[different[0]], here[different[0]], there[different[0]], theirs)
    best = {name: min(seconds) for name, seconds in times.items()}
    ratio = best["tokenizers"] / best["here"]
    print(json.dumps({"megabytes": round(size, 2), "texts": len(texts), "tokens": sum(map(len, there)), "texts_that_differ": len(different),
                      "mb_per_s": {name: round(size / seconds, 2) for name, seconds in best.items()}, "ratio": round(ratio, 2)}))
    return 1 if different or len(here) != len(texts) or ratio < options.least_ratio else 0


if __name__ == "__main__":
    sys.exit(main())
