"""Every relative link of the pages leads to a file, and every heading that is linked to exists.

Usage: python3 links_test.py REPOSITORY
"""
import pathlib
import re
import sys

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.S)


def anchors(text):
    titles = re.findall(r"^#+ (.+)$", CODE.sub(lambda m: m.group(0).strip("`") if "\n" not in m.group(0) else "", text), re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def broken(page, text):
    for target in LINK.findall(CODE.sub("", text)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists():
            yield f"{page.name}: {target} does not exist"
        elif anchor and anchor not in anchors(file.read_text()):
            yield f"{page.name}: {target}: no such heading"


def main():
    root = pathlib.Path(sys.argv[1])
    pages = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    sample = "# A title\n[a](gone.md) [b](#a-title) [c](#other) `[d](x.md)` [e](https://example.org)"
    assert len(list(broken(root / "README.md", sample.replace("#a-title", "https://example.org")))) == 2
    complaints = [line for page in pages for line in broken(page, page.read_text())]
    print("\n".join(complaints) or f"all links of {len(pages)} pages lead somewhere")
    return 1 if complaints or len(pages) < 5 else 0


if __name__ == "__main__":
    sys.exit(main())
