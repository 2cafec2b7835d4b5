"""Token ids and supervised positions of chats, beside transformers' apply_chat_template on the same folder.

Usage: python3 chat_form.py --ids PROGRAM
Several templates of the Qwen form, each written plainly and once more with generation marks, which transformers needs to say where answers stand:
the marked one must give the same text and a mask that is not all zeros. Templates of other forms must be refused.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from transformers import PreTrainedTokenizerFast

FIXTURE = Path(__file__).resolve().parent.parent / "actors" / "data" / "fixture" / "model"
GRIDS = [(1, 4, 6), (1, 8, 2), (1, 2, 2)]

PARTS = (
    "{%- macro words(m) -%}{% if m['content'] is string %}{{ m['content'] }}{% else %}{% for p in m['content'] %}{% if p['type'] == 'image' %}"
    "<|vision_start|><|image_pad|><|vision_end|>{% else %}{{ p['text'] }}{% endif %}{% endfor %}{% endif %}{%- endmacro -%}")
TURNS = "{% for m in messages %}<|im_start|>{{ m['role'] }}{{ '\\n' }}{{ words(m) }}<|im_end|>{{ '\\n' }}{% endfor %}"
MARKED = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}{{ '\\n' }}{% if m['role'] == 'assistant' %}{% generation %}{{ words(m) }}<|im_end|>"
    "{% endgeneration %}{{ '\\n' }}{% else %}{{ words(m) }}<|im_end|>{{ '\\n' }}{% endif %}{% endfor %}")
DEFAULT = "{%% if messages[0]['role'] != 'system' %%}{{ '<|im_start|>system\\n%s<|im_end|>\\n' }}{%% endif %%}"
TEMPLATES = {
    "the published default": DEFAULT % "You are a helpful assistant.",
    "a changed default": DEFAULT % "Answer like a pirate, 简短.",
    "a default over lines": DEFAULT % "One.\\nTwo.",
    "an empty default": DEFAULT % "",
    "no default": "",
}
OTHER_FORMS = {
    "a trimmed answer": PARTS + "{% for m in messages %}<|im_start|>{{ m['role'] }}{{ '\\n' }}{{ m['content'] | trim }}<|im_end|>{{ '\\n' }}{% endfor %}",
    "no newline at the end": PARTS + "{% for m in messages %}<|im_start|>{{ m['role'] }}{{ '\\n' }}{{ words(m) }}<|im_end|>{% endfor %}",
    "a newline before the end": "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}\n<|im_end|>\n{% endfor %}",
    "another form": "{% for m in messages %}[{{ m['role'] }}] {{ m['content'] }}{% endfor %}",
}
CHATS = [
    [("user", "Hello"), ("assistant", "Hi there!")],
    [("user", "Hello"), ("assistant", "Hi"), ("user", "Who are you?"), ("assistant", "An assistant, 一个助手 😀.")],
    [("system", "Answer in one word."), ("user", ["Compare ", "<image>", " with ", "<image>", "."]), ("assistant", "Same")],
    [("user", ["<image>", "\nWhat is this?"]), ("assistant", " A cat.\n\nIt sleeps.\n"), ("user", ["And ", "<image>", "?"]), ("assistant", "  dog ")],
    [("system", ""), ("user", "\n\nlines first"), ("assistant", "1234 5.67")],
]


def as_messages(chat):
    parts = lambda c: {"type": "image"} if c == "<image>" else {"type": "text", "text": c}
    return [{"role": r, "content": c if isinstance(c, str) else [parts(x) for x in c]} for r, c in chat]


def as_record(chat):
    pictures = sum(c.count("<image>") for _, c in chat if not isinstance(c, str))
    turns = [{"role": r, "content": c if isinstance(c, str) else "".join(c)} for r, c in chat]
    return {"record": {"messages": turns, "images": [f"{i}.png" for i in range(pictures)]}, "grids": [GRIDS[i % 3] for i in range(pictures)]}


def expected(tokenizer, plain, marked, chat, grids):
    messages = as_messages(chat)
    text = tokenizer.apply_chat_template(messages, chat_template=plain, tokenize=False)
    if text != tokenizer.apply_chat_template(messages, chat_template=marked, tokenize=False):
        sys.exit(f"the marked template says something else than the plain one: {chat}")
    answer = tokenizer.apply_chat_template(messages, chat_template=marked, tokenize=True, return_dict=True, return_assistant_tokens_mask=True)
    if not any(answer["assistant_masks"]):
        sys.exit("the mask is all zeros")
    pad = tokenizer.convert_tokens_to_ids("<|image_pad|>")
    ids, mask, images = [], [], iter(grids)
    for token, learned in zip(answer["input_ids"], answer["assistant_masks"]):
        times = 1
        if token == pad:
            t, h, w = next(images)
            times = t * h * w // 4
        ids += [token] * times
        mask += [learned] * times
    return {"ids": ids, "supervised": mask}


def program_answers(program, folder, records):
    lines = Path(folder) / "records.jsonl"
    lines.write_text("".join(json.dumps(r) + "\n" for r in records))
    return subprocess.run([program, str(folder), str(lines)], capture_output=True, text=True, timeout=60)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ids", required=True)
    program = parser.parse_args().ids
    wrong = compared = 0
    with tempfile.TemporaryDirectory(prefix="troupe-chat-") as scratch:
        folder = Path(scratch) / "model"
        shutil.copytree(FIXTURE, folder)
        records = [as_record(chat) for chat in CHATS]
        for name, system in TEMPLATES.items():
            (folder / "chat_template.jinja").write_text(PARTS + system + TURNS, encoding="utf-8")
            done = program_answers(program, folder, records)
            if done.returncode != 0:
                sys.exit(f"{name}: {done.stderr}")
            tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
            for chat, record, line in zip(CHATS, records, done.stdout.splitlines(), strict=True):
                compared += 1
                due = expected(tokenizer, PARTS + system + TURNS, PARTS + system + MARKED, chat, record["grids"])
                if json.loads(line) != due:
                    wrong += 1
                    print(f"{name}: {chat}\n  due  {due}\n  got  {line}")
        for name, template in OTHER_FORMS.items():
            (folder / "chat_template.jinja").write_text(template, encoding="utf-8")
            done = program_answers(program, folder, records)
            if done.returncode == 0 or "chat_template.jinja" not in done.stderr:
                wrong += 1
                print(f"{name}: not refused: {done.stderr}")
    print(f"{compared} chats compared, {len(OTHER_FORMS)} other forms refused, {wrong} wrong")
    sys.exit(wrong != 0)


main()
