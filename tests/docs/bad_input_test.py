"""Replays the rows of docs/bad-input.md that say all that they need: the job with its changes, the command, what is printed, the exit code.

Usage: bad_input_test.py REPOSITORY --troupe PATH [--write]
--write puts what is printed now into the page, to be read before it is kept. Rows about a model folder, a record file, a manifest or a run
that was made beforehand name no change that a script can make, and are left to the tests of their rooms.
"""
import argparse
import concurrent.futures
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

JOB = """name: bad
model: {path: model, init: random, dtype: fp32}
groups:
  vision: {components: [vision, merger], mesh: {sp: 2}, zero: 1}
  text: {components: [text], mesh: {tp: 2}}
placement: colocated
device: cpu
data:
  sources: [{path: train.jsonl, image_root: images}]
  max_sample_tokens: 512
training:
  steps: 2
  global_batch: 4
  optimizer: {lr: 1.0e-3}
"""
RECORDS, LONG, TIMEOUT_S, ROWS_AT_ONCE = 16, 600, 60, 6
PREPARED = ("--cluster c.yaml", "--run-dir done", "--resume images", "--model trained", "unix:nobody.sock")


def prepare(folder, shapes):
    (folder / "images").symlink_to(shapes / "images")
    shutil.copytree(shapes / "model", folder / "model")
    (folder / "job.yaml").write_text(JOB)
    (folder / "train.jsonl").write_text("".join((shapes / "train.jsonl").read_text().splitlines(keepends=True)[:RECORDS]))


def replayed(row):
    """The changes and the command's words, or nothing for a row that is not replayed."""
    words = re.findall(r"`([^`]*)`(?: → `([^`]*)`)?", row[1].replace(r"\|", "|"))
    if not words or any(p in row[1] for p in PREPARED):
        return None
    changes, command = [], []
    for before, after in ((x.replace(" ⏎ ", "\n").replace("⇥", "\t") for x in pair) for pair in words):
        if after:
            changes.append((before, after))
        else:
            command = shlex.split(before)[1:] if before.startswith("troupe ") else ["run", "job.yaml", *shlex.split(before)]
    command = command or ["run", "job.yaml"]
    return changes, command + (["--run-dir", "out"] if command[:2] == ["run", "job.yaml"] and "--run-dir" not in command and "--resume" not in command else [])


def change(folder, before, after):
    """At its first place in the job, else in the model's configuration, else in the records."""
    for name in ("job.yaml", "model/config.json", "train.jsonl"):
        text = (folder / name).read_text()
        if before in text:
            return (folder / name).write_text(text.replace(before, after, 1))
    sys.exit(f"docs/bad-input.md: neither the job nor model/config.json nor train.jsonl has '{before}'")


def printed(output, folder):
    """From the refusal on, without this machine's paths, in a cell of the table."""
    text = output.replace(f"{folder}/", "").replace(str(folder), ".").strip()
    at = re.search(r"^ *(troupe: |cause \(refused\): |The following argument)", text, re.M)
    text = (text[at.start():].strip() if at else text.splitlines()[-1] if text else "")
    text = text.replace("|", r"\|")
    return re.sub(r"\n *", "<br>", text)


def cut(text):
    return text if len(text) <= LONG else text[:LONG].rsplit(" ", 1)[0] + " ..."


def replay(troupe, shapes, changes, command):
    """Exit code and what was printed."""
    with tempfile.TemporaryDirectory(prefix="troupe-bad-input-") as name:
        folder = pathlib.Path(name).resolve()
        prepare(folder, shapes)
        for before, after in changes:
            change(folder, before, after)
        done = subprocess.run([troupe, *command], cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_S, start_new_session=True)
        return done.returncode, printed(done.stdout + done.stderr, folder)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("repository", type=pathlib.Path)
    p.add_argument("--troupe", required=True, type=pathlib.Path)
    p.add_argument("--write", action="store_true")
    a = p.parse_args()
    page, shapes = a.repository.resolve() / "docs" / "bad-input.md", a.repository.resolve() / "examples" / "shapes"
    lines, missed = page.read_text().splitlines(), 0
    rows = {n: [c.strip() for c in re.split(r"(?<!\\)\|", line)[1:-1]] for n, line in enumerate(lines)}
    cases = {n: case for n, row in rows.items() if len(row) == 4 and row[3].isdigit() and (case := replayed(row))}
    with concurrent.futures.ThreadPoolExecutor(ROWS_AT_ONCE) as pool:
        replays = dict(zip(cases, pool.map(lambda case: replay(a.troupe.resolve(), shapes, *case), cases.values())))
    for n, (code, text) in replays.items():
        row = rows[n]
        same = text.startswith(row[2].removesuffix("...").rstrip()) if row[2].endswith("...") else text == row[2]
        if a.write:
            lines[n] = f"| {row[0]} | {row[1]} | {row[2] if same else cut(text)} | {code} |"
        elif not same or str(code) != row[3]:
            missed += 1
            print(f"{row[0]}:\n  the page: {row[3]}: {row[2]}\n  printed:  {code}: {text}")
    if a.write:
        page.write_text("\n".join(lines) + "\n")
    print(f"{len(cases) - missed} of {len(cases)} replayed rows are as the page says")
    sys.exit(1 if missed or not cases else 0)


if __name__ == "__main__":
    main()
