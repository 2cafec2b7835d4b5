"""Both programs name their version and the commit that they were built from.

Usage: version_test.py REPOSITORY TROUPE TROUPE_ACTOR
"""
import pathlib
import re
import subprocess
import sys


def answer(program):
    return subprocess.run([program, "--version"], capture_output=True, text=True, timeout=30, check=True).stdout.strip()


def main():
    root, *programs = sys.argv[1:]
    version = re.search(r"project\(troupe VERSION ([\d.]+)", (pathlib.Path(root) / "CMakeLists.txt").read_text()).group(1)
    texts = [answer(program) for program in programs]
    for text, name in zip(texts, ("troupe", "troupe-actor")):
        print(text)
        assert re.fullmatch(rf"{name} {re.escape(version)} \(\w+, commit ([0-9a-f]{{7,}}(-dirty)?|unknown)\)", text), text
        assert "commit unknown" not in text or not (pathlib.Path(root) / ".git").exists(), text
    assert texts[0].split(" ", 1)[1] == texts[1].split(" ", 1)[1], texts  # built together
    return 0


if __name__ == "__main__":
    sys.exit(main())
