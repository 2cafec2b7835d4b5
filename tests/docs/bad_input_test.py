"""Replays the rows of docs/bad-input.md that say all that they need: the files with their changes, the command, what is printed, the
exit code.

Usage: bad_input_test.py REPOSITORY --troupe PATH [--write]
--write puts what is printed now into the page, to be read before it is kept. Files that the page prints (`job.yaml`: and a block) are the
base. A change is `BEFORE` → `AFTER` at the first place in job.yaml, c.yaml, model/config.json or the records, `FILE` ← `TEXT` for a file's
whole text, or `FILE` empty or removed; ⏎ is a newline, ⇥ a tab. Rows about a run or a model made beforehand are not replayed.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

RECORDS, LONG, TIMEOUT_S, ROWS_AT_ONCE = 16, 600, 60, 6
CHANGED = ("job.yaml", "c.yaml", "model/config.json", "train.jsonl")
OPTIONAL = "built without Parquet"
PREPARED = ("--run-dir done", "--model trained")


def prepare(folder, shapes, base):
    shutil.copytree(shapes / "model", folder / "model")
    records = (shapes / "train.jsonl").read_text().splitlines(keepends=True)[:RECORDS]
    (folder / "train.jsonl").write_text("".join(records))
    for name in ["train/0000.png", *sum((x if isinstance(x, list) else [x] for x in (json.loads(r).get("image", []) for r in records)), [])]:
        (folder / "images" / name).parent.mkdir(parents=True, exist_ok=True)
        if not (folder / "images" / name).exists():
            shutil.copy(shapes / "images" / name, folder / "images" / name)
    for name, text in base.items():
        (folder / name).write_text(text)


def replayed(row):
    """The changes (a file or None, the text before, the text after or None) and the command's words, or nothing for a row that is not replayed."""
    text = row[1].replace(r"\|", "|")
    words = re.findall(r"`([^`]*)`(?: (→|←) `([^`]*)`| (empty|removed))?", text)
    if not words or any(p in text for p in PREPARED):
        return None
    changes, command = [], []
    for before, arrow, after, fate in words:
        before, after = (x.replace(" ⏎ ", "\n").replace("⏎", "\n").replace("⇥", "\t") for x in (before, after))
        if arrow == "→":
            changes.append((None, before, after))
        elif arrow or fate:
            changes.append((before, "", None if fate == "removed" else after))
        else:
            command = shlex.split(before)[1:] if before.startswith("troupe ") else ["run", "job.yaml", *shlex.split(before)]
    command = command or ["run", "job.yaml"]
    return changes, command + (["--run-dir", "out"] if command[:2] == ["run", "job.yaml"] and "--run-dir" not in command and "--resume" not in command else [])


def change(folder, name, before, after):
    if name:
        (folder / name).unlink(missing_ok=True)
        return after is None or (folder / name).write_text(after)
    for name in CHANGED:
        text = (folder / name).read_text()
        if before in text:
            return (folder / name).write_text(text.replace(before, after, 1))
    sys.exit(f"docs/bad-input.md: none of {', '.join(CHANGED)} has '{before}'")


def printed(output, folder):
    """From the refusal on, without this machine's paths, in a cell of the table."""
    text = output.replace(f"{folder}/", "").replace(str(folder), ".").strip()
    at = re.search(r"^ *(troupe: |cause \(refused\): |The following argument)", text, re.M)
    remarks = [line for line in text.splitlines() if line.startswith("warning: ")]
    text = text[at.start():].strip() if at else "\n".join(remarks or text.splitlines()[-1:])
    text = text.replace("|", r"\|")
    return re.sub(r"\n *", "<br>", text)


def cut(text):
    return text if len(text) <= LONG else text[:LONG].rsplit(" ", 1)[0] + " ..."


def replay(troupe, shapes, base, changes, command):
    """Exit code and what was printed."""
    with tempfile.TemporaryDirectory(prefix="troupe-bad-input-") as name:
        folder = pathlib.Path(name).resolve()
        prepare(folder, shapes, base)
        for what in changes:
            change(folder, *what)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TROUPE_")} | {"TROUPE_CACHE": "off"}
        done = subprocess.run([troupe, *command], cwd=folder, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, start_new_session=True)
        return done.returncode, printed(done.stdout + done.stderr, folder)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("repository", type=pathlib.Path)
    p.add_argument("--troupe", required=True, type=pathlib.Path)
    p.add_argument("--write", action="store_true")
    a = p.parse_args()
    page, shapes = a.repository.resolve() / "docs" / "bad-input.md", a.repository.resolve() / "examples" / "shapes"
    lines, missed = page.read_text().splitlines(), 0
    base = dict(re.findall(r"^`(\S+)`:\n\n```yaml\n(.*?)^```", page.read_text(), re.M | re.S))
    rows = {n: [c.strip() for c in re.split(r"(?<!\\)\|", line)[1:-1]] for n, line in enumerate(lines)}
    cases = {n: case for n, row in rows.items() if len(row) == 4 and row[3].isdigit() and (case := replayed(row))}
    with concurrent.futures.ThreadPoolExecutor(ROWS_AT_ONCE) as pool:
        replays = dict(zip(cases, pool.map(lambda case: replay(a.troupe.resolve(), shapes, base, *case), cases.values())))
    for n, (code, text) in replays.items():
        row = rows[n]
        same = text.startswith(row[2].removesuffix("...").rstrip()) if row[2].endswith("...") else text == row[2]
        if a.write:
            lines[n] = f"| {row[0]} | {row[1]} | {row[2] if same else cut(text)} | {code} |"
        elif OPTIONAL in text and OPTIONAL not in row[2]:
            print(f"{row[0]}: not compared, as this program was {OPTIONAL}")
        elif not same or str(code) != row[3]:
            missed += 1
            print(f"{row[0]}:\n  the page: {row[3]}: {row[2]}\n  printed:  {code}: {text}")
    if a.write:
        page.write_text("\n".join(lines) + "\n")
    print(f"{len(cases) - missed} of {len(cases)} replayed rows are as the page says")
    sys.exit(1 if missed or not cases else 0)


if __name__ == "__main__":
    main()
