"""The tables of docs/convert.md are those of the sources: a row a key, in their order and words.

Usage: convert_test.py REPOSITORY [--write]
--write puts the sources' tables into the page, to be read before it is kept.
"""
import pathlib
import re
import sys

TABLES = {"LLaMA-Factory's own keys": "llama_factory_keys", "ms-swift's own keys": "ms_swift_keys", "Keys of transformers' trainer": "trainer_keys"}
ROW = re.compile(r'\{"(\w+)",\s*Fate::k(\w+),\s*((?:"(?:[^"\\]|\\.)*"\s*)+)(?:,\s*"([^"]*)")?\}')
FATES = {"Carried": "carried over", "Dropped": "dropped", "Refused": "refused"}


def rows(source):
    """Key, fate and text of every row, as the page writes them."""
    out = []
    for name, fate, text, _off in ROW.findall(source):
        words = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', text)).replace(r"\"", '"')
        out.append(f"| `{name}` | {FATES[fate]} | {words} |")
    return out


def table_of(page, title):
    """First and last line of the rows of the table below a heading."""
    lines = page.splitlines()
    begin = lines.index("## " + title)
    first = next(n for n in range(begin, len(lines)) if lines[n].startswith("|---")) + 1
    last = first
    while last < len(lines) and lines[last].startswith("|"):
        last += 1
    return first, last


def complaints_about(page, title, wanted):
    first, last = table_of(page, title)
    there = page.splitlines()[first:last]
    found = [f"docs/convert.md: {title}: missing: {row}" for row in wanted if row not in there]
    found += [f"docs/convert.md: {title}: not in the sources: {row}" for row in there if row not in wanted]
    return found or ([] if there == wanted else [f"docs/convert.md: {title}: the rows are not in the sources' order"])


def selftest():
    """The check notices what it is for."""
    source = '{"a", Fate::kCarried, "x"},\n{"b", Fate::kRefused,\n "y; "\n "z", "false|0"},\n{"c", Fate::kDropped, "w \\"q\\""},'
    wanted = ["| `a` | carried over | x |", "| `b` | refused | y; z |", '| `c` | dropped | w "q" |']
    assert rows(source) == wanted, rows(source)
    page = "## T\n\n| key | | |\n|---|---|---|\n" + "\n".join(wanted) + "\n\nmore\n"
    assert complaints_about(page, "T", wanted) == []
    assert complaints_about(page.replace("| x |", "| v |"), "T", wanted)
    assert complaints_about(page, "T", wanted[:2])
    assert complaints_about(page, "T", wanted[::-1])


def main():
    selftest()
    root = pathlib.Path(sys.argv[1])
    name = root / "docs/convert.md"
    page, complaints = name.read_text(), []
    for title, table in TABLES.items():
        source = (root / f"base/convert/{table}.cpp").read_text()
        wanted = rows(source)
        if len(wanted) < 50 or len(wanted) != len(re.findall(r"Fate::k", source)):
            complaints.append(f"base/convert/{table}.cpp: {len(wanted)} rows found; has its form changed?")
        if "--write" in sys.argv[2:]:
            first, last = table_of(page, title)
            lines = page.splitlines()
            page = "\n".join(lines[:first] + wanted + lines[last:]) + "\n"
        complaints += complaints_about(page, title, wanted)
    if "--write" in sys.argv[2:]:
        name.write_text(page)
    print("\n".join(complaints) or "the page's tables are those of the sources")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
