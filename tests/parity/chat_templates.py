"""Which of a model folder's chat templates is taken, beside transformers' processor and tokenizer.

Usage: python3 chat_templates.py --find PROGRAM
Folders hold every combination of the files that may have a template. The processor's is the one that counts, and the tokenizer's where the processor has none.
"""

import argparse
import itertools
import json
import logging
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

from transformers import PreTrainedTokenizerFast, ProcessorMixin

FIXTURE = Path(__file__).parent.parent / "actors/data/fixture/model"
PROCESSOR = [None, {"chat_template": None}, {"chat_template": "P"}, {"chat_template": {"default": "P", "x": "Q"}}, {"chat_template": {"x": "Q"}}]
LEGACY = [None, {"chat_template": "L"}, {"chat_template": None}, {"chat_template": ""}, {"chat_template": {"default": "L"}}, {"chat_template": [{"name": "default", "template": "L"}]}, {}]
ALONE = [None, "J"]
NAMED = [{}, {"tool": "N"}, {"default": "N", "tool": "O"}]
TOKENIZER = [None, {"chat_template": "T"}, {"chat_template": [{"name": "x", "template": "U"}, {"name": "default", "template": "T"}]}, {"chat_template": [{"name": "x", "template": "U"}]}]


def write(folder, processor, legacy, alone, named, tokenizer):
    folder.mkdir()
    (folder / "tokenizer.json").symlink_to(FIXTURE / "tokenizer.json")
    for name, value in (("processor_config.json", processor), ("chat_template.json", legacy), ("tokenizer_config.json", tokenizer)):
        if value is not None:
            (folder / name).write_text(json.dumps(value))
    if alone is not None:
        (folder / "chat_template.jinja").write_text(alone)
    for name, text in named.items():
        (folder / "additional_chat_templates").mkdir(exist_ok=True)
        (folder / "additional_chat_templates" / f"{name}.jinja").write_text(text)


def due(folder):
    """The template's text, nothing when there is none, "refused" when transformers fails."""
    try:
        template = ProcessorMixin.get_processor_dict(folder)[0].get("chat_template")
        if template is not None:
            template = ProcessorMixin._resolve_chat_template(SimpleNamespace(chat_template=template), None)
        else:
            tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
            template = tokenizer.get_chat_template() if tokenizer.chat_template is not None else None
        return template if template is None or isinstance(template, str) else "refused"
    except (ValueError, KeyError):
        return "refused"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--find", required=True)
    program = parser.parse_args().find
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory(prefix="troupe-templates-") as scratch:
        folders = []
        for i, files in enumerate(itertools.product(PROCESSOR, LEGACY, ALONE, NAMED, TOKENIZER)):
            folders.append((Path(scratch) / str(i), files))
            write(folders[-1][0], *files)
        listed = Path(scratch) / "folders.txt"
        listed.write_text("".join(f"{folder}\n" for folder, _ in folders))
        done = subprocess.run([program, str(listed)], capture_output=True, text=True, timeout=60)
        if done.returncode != 0:
            sys.exit(f"the program ended with {done.returncode}: {done.stderr}")
        wrong = refused = 0
        for (folder, files), line in zip(folders, done.stdout.splitlines(), strict=True):
            answer, expected = json.loads(line), due(folder)
            refused += expected == "refused"
            if answer.get("text") != expected:
                wrong += 1
                print(f"{files}\n  due {expected!r}\n  got {answer}")
    print(f"{len(folders)} folders, {refused} of them refused, {wrong} wrong")
    sys.exit(wrong != 0)


main()
