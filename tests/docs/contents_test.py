"""The pages name every verb, flag, exit code, metric, event and cause that the sources have, and no flag that they lack.

Usage: python3 contents_test.py REPOSITORY
"""
import pathlib
import re
import sys


def words_in_code(page):
    """Everything between backticks, split at blanks and commas."""
    return {word for code in re.findall(r"`([^`\n]+)`", page) for word in re.split(r"[\s,]+", code)}


def missing(name, page, what, wanted):
    there = words_in_code(page)
    return [f"{name}: {what} '{word}' is missing" for word in sorted(wanted) if word not in there]


def command_line(root):
    name = "docs/command-line.md"
    page, source = (root / name).read_text(), (root / "cli/main.cpp").read_text()
    bench = "".join((root / f"actors/bench/{name}_bench.cpp").read_text() for name in ("step", "boundary", "feed", "pipeline"))
    bench += "".join((root / f"cli/bench_{name}.cpp").read_text() for name in ("calls", "dispatch"))
    verbs = set(re.findall(r'add_subcommand\("(\w+)"', source)) | set(re.findall(r'\{"(\w+)", "[^"]+"\}', source))
    flags = set(re.findall(r'add_(?:option|flag)\("(?:-\w,)?(--[\w-]+)"', source + bench))
    codes = set(re.findall(r"kExit\w+ = (\d+);", (root / "cli/exit_codes.h").read_text()))
    listed = set(re.findall(r"^\| (\d+) \|", page, re.M))
    found = missing(name, page, "verb", verbs) + missing(name, page, "flag", flags)
    known = flags | {"--help", "--version"}
    found += [f"{name}: there is no flag '{word}'" for word in sorted(words_in_code(page)) if word.startswith("--") and word not in known]
    if listed != codes:
        found.append(f"{name}: exit codes {sorted(listed)}, the sources have {sorted(codes)}")
    return found, len(verbs), len(flags), len(codes)


def run_folder(root):
    name = "docs/run-folder.md"
    page = (root / name).read_text()
    metrics = set(re.findall(r'\bj\["(\w+)"\]', (root / "actors/host/metrics.cpp").read_text()))
    evaluation = set(re.findall(r'\bj\["(\w+)"\]', (root / "actors/host/evaluation.cpp").read_text()))
    events = set(re.findall(r'append_event\("(\w+)"', (root / "driver/run/job_runner.cpp").read_text()))
    causes = set(re.findall(r"^///   (\w+) ", (root / "driver/supervision/outcome.h").read_text(), re.M))
    found = missing(name, page, "key of metrics.jsonl", metrics | evaluation)
    found += missing(name, page, "event", events) + missing(name, page, "cause", causes)
    return found, len(metrics), len(evaluation), len(events), len(causes)


def main():
    root = pathlib.Path(sys.argv[1])
    complaints = []
    for check in (command_line, run_folder):
        found, *sizes = check(root)
        complaints += found
        if min(sizes) < 4:
            complaints.append(f"{check.__name__}: the sources are no longer read as they are written: {sizes}")
    assert missing("page", "`a --b` `c`, d", "word", {"a", "--b", "c", "d"}) == ["page: word 'd' is missing"]
    print("\n".join(complaints) or "pages and sources agree")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
