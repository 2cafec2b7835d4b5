"""The reference pages name exactly the keys that files may have, and say which are reserved.

Usage: python3 keys_test.py REPOSITORY
"""
import pathlib
import re
import sys

PAGES = {"job_spec_keys": "docs/job-spec.md", "manifest_keys": "docs/cluster.md"}
RULE = re.compile(r'\{"([^"]+)"(?:, (true|false), "([^"]*)")?\}')
# A row of a table whose first cell is one key.
ROW = re.compile(r"^\| `([^`]+)` \|(.*)\|$")


def rules(source, function):
    """Key as the page spells it -> (built, value that switches a reserved key off)."""
    body = source.split(f"const KeyTable& {function}()")[1].split("});")[0]
    found = {}
    for path, built, accepted in RULE.findall(body):
        parts = ["NAME" if part == "*" else part for part in path.split(".") if part != "[]"]
        found[".".join(parts)] = (built != "false", accepted)
    return found


def rows(page):
    found, in_keys = [], False
    for line in page.splitlines():
        if not line.startswith("|"):
            in_keys = False
        elif line.startswith("| key |"):
            in_keys = True
        elif in_keys and (match := ROW.match(line)):
            found.append((match.group(1), match.group(2)))
    return found


def complaints_about(source, function, name, page):
    wanted, found = rules(source, function), rows(page)
    names = [key for key, _ in found]
    complaints = [f"{name}: key '{key}' is missing" for key in wanted if key not in names]
    complaints += [f"{name}: key '{key}' is in two rows" for key in sorted({k for k in names if names.count(k) > 1})]
    for key, text in found:
        if key not in wanted:
            complaints.append(f"{name}: there is no key '{key}'")
            continue
        built, accepted = wanted[key]
        if built == ("| reserved" in text):
            complaints.append(f"{name}: key '{key}' is {'built' if built else 'reserved'}; the page says otherwise")
        if accepted and f"`{accepted}`" not in text:
            complaints.append(f"{name}: key '{key}' accepts '{accepted}'; the page does not say so")
    return complaints


def selftest():
    """The check notices what it is for."""
    source = 'const KeyTable& f() {\n table({\n {"a"},\n {"b.*.c", false, "off"},\n {"d.[].e"},\n });\n}'
    good = "| key | x |\n|---|---|\n| `a` | |\n| `b.NAME.c` | `off` | reserved |\n| `d.e` | |\n"
    assert rules(source, "f") == {"a": (True, ""), "b.NAME.c": (False, "off"), "d.e": (True, "")}
    assert complaints_about(source, "f", "page", good) == []
    for bad in (good.replace("`a`", "`z`"), good.replace("| reserved", "| here"), good.replace("`off`", ""), good + "| `a` | |\n"):
        assert complaints_about(source, "f", "page", bad), bad


def main():
    selftest()
    root = pathlib.Path(sys.argv[1])
    source = (root / "base/config/key_table.cpp").read_text()
    complaints = []
    for function, name in PAGES.items():
        keys = rules(source, function)
        if len(keys) < 10:
            complaints.append(f"base/config/key_table.cpp: only {len(keys)} keys found in {function}; has its form changed?")
        complaints += complaints_about(source, function, name, (root / name).read_text())
    print("\n".join(complaints) or "the reference pages and the key tables agree")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
