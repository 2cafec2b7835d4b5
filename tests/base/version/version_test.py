"""Both programs name their version and the commit that each was built from.

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
    for text, name in zip(map(answer, programs), ("troupe", "troupe-actor")):
        print(text)
        assert re.fullmatch(rf"{name} {re.escape(version)} \(\w+, commit ([0-9a-f]{{7,}}(-dirty)?|unknown)\)", text), text
        assert "commit unknown" not in text or not (pathlib.Path(root) / ".git").exists(), text
    return 0


if __name__ == "__main__":
    sys.exit(main())
