"""Every row of reported failures stands in its table once, and the test that the table names speaks of it.

Usage: python3 rows_test.py REPOSITORY
"""
import pathlib
import re
import sys

PAGES = {"docs/data.md": [f"D{n:02d}" for n in range(1, 27)], "docs/job-spec.md": [f"C{n:02d}" for n in range(1, 12)]}
ROW = re.compile(r"^\| ([DC]\d\d) \|.*\| `([^`]+)` \|$", re.M)


def complaints_about(name, wanted, page, read):
    """`read`: path -> contents, or None where there is no such file."""
    found = ROW.findall(page)
    complaints = [f"{name}: row {row} is missing" for row in wanted if row not in [r for r, _ in found]]
    for row, path in found:
        text = read(path)
        if text is None:
            complaints.append(f"{name}: row {row}: there is no {path}")
        elif not re.search(rf"\b{row}\b", text):
            complaints.append(f"{name}: row {row}: {path} has no test of that name")
    return complaints


def selftest():
    """The check notices what it is for."""
    page, files = "| D01 | a | b | `t` |\n", {"t": 'TEST_CASE("D01: x")'}
    assert complaints_about("p", ["D01"], page, files.get) == []
    assert complaints_about("p", ["D01", "D02"], page, files.get)
    assert complaints_about("p", ["D01"], page, {"t": "D011"}.get)
    assert complaints_about("p", ["D01"], page, {}.get)


def main():
    selftest()
    root = pathlib.Path(sys.argv[1])
    read = lambda path: (root / path).read_text() if (root / path).is_file() else None
    complaints = [c for name, rows in PAGES.items() for c in complaints_about(name, rows, (root / name).read_text(), read)]
    print("\n".join(complaints) or "every row has its test")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
