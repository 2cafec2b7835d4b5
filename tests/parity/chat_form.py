"""Token ids and supervised positions of chats, beside transformers' apply_chat_template on the same folder.

Usage: python3 chat_form.py --ids PROGRAM
Templates of the Qwen form in many spellings must be accepted. A plain one with the same default and with generation marks, which transformers needs to
say where answers stand, must give the same text by transformers, and its ids and mask are those that are due. Templates that write some chat in
another way, by transformers again, must be refused; so must those that do what is not understood.
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
IM = "<|im_start|>{{ m['role'] }}{{ '\\n' }}"
LOOP = "{% for m in messages %}"
PROMPT = "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
KIND = "You are a helpful assistant."
# Accepted: the template, its default system turn (None: it has none).
TEMPLATES = {
    "the published default": (PARTS + DEFAULT % KIND + TURNS, KIND),
    "a changed default": (PARTS + DEFAULT % "Answer like a pirate, 简短." + TURNS, "Answer like a pirate, 简短."),
    "a default over lines": (PARTS + DEFAULT % "One.\\nTwo." + TURNS, "One.\\nTwo."),
    "an empty default": (PARTS + DEFAULT % "" + TURNS, ""),
    "no default": (PARTS + TURNS, None),
    "an opening that is asked for": (PARTS + TURNS + PROMPT, None),
    "marks of its own": (PARTS + DEFAULT % KIND + MARKED + PROMPT, KIND),
    "the default inside the loop": (PARTS + LOOP + "{% if loop.first and m.role != 'system' %}<|im_start|>system\nHi.<|im_end|>\n{% endif %}" + IM + "{{ words(m) }}<|im_end|>\n{% endfor %}", "Hi."),
    "the system turn taken off and put back": (PARTS + "{%- if messages[0].role == 'system' -%}{%- set system = words(messages[0]) -%}{%- set messages = messages[1:] -%}{%- else -%}{%- set system = 'Short.' -%}{%- endif -%}"
                                               "{{- '<|im_start|>system\\n' ~ system ~ '<|im_end|>\\n' -}}" + TURNS, "Short."),
    "a computed default": (PARTS + "{% set line = ['You', 'are', 'one'] | join(' ') ~ '.' %}{% if messages | selectattr('role', 'equalto', 'system') | list | length == 0 %}<|im_start|>system\n{{ line }}<|im_end|>\n{% endif %}" + TURNS, "You are one."),
    "pieces by key": (LOOP + IM + "{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}{% if 'image' in p or p['type'] == 'image' or 'image_url' in p %}<|vision_start|><|image_pad|><|vision_end|>"
                      "{% elif 'video' in p %}<|video_pad|>{% elif 'text' in p %}{{ p['text'] }}{% endif %}{% endfor %}{% endif %}<|im_end|>\n{% endfor %}", None),
    "numbered pictures that nobody asked for": (LOOP + "{% set ns = namespace(n=0) %}" + IM + "{% if m.content is not string %}{% for p in m.content %}{% if p.type == 'image' %}{% set ns.n = ns.n + 1 %}{% if add_vision_id %}Picture {{ ns.n }}: {% endif %}"
                                                "<|vision_start|><|image_pad|><|vision_end|>{% elif p.type == 'text' %}{{ p.text }}{% endif %}{% endfor %}{% else %}{{ m.content }}{% endif %}<|im_end|>\n{% endfor %}", None),
    "tools that nobody gives": (PARTS + "{%- if tools %}\n    {{- '<|im_start|>system\\n' }}\n    {%- for tool in tools %}\n        {{- '\\n' }}\n        {{- tool | tojson }}\n    {%- endfor %}\n    {{- '<|im_end|>\\n' }}\n{%- else %}\n"
                                "    {%- if messages[0].role != 'system' %}\n        {{- '<|im_start|>system\\nTools.<|im_end|>\\n' }}\n    {%- endif %}\n{%- endif %}\n" + TURNS, "Tools."),
    "branches by role": (PARTS + "{%- for m in messages %}\n    {%- set content = words(m) %}\n    {%- if m.role == 'user' or m.role == 'system' %}\n        {{- '<|im_start|>' + m.role + '\\n' + content + '<|im_end|>' + '\\n' }}\n"
                         "    {%- elif m.role == 'assistant' %}\n        {{- '<|im_start|>' + m.role + '\\n' + content }}\n        {%- if m.tool_calls %}\n            {{- m.tool_calls | tojson }}\n        {%- endif %}\n"
                         "        {{- '<|im_end|>\\n' }}\n    {%- elif m.role == 'tool' %}\n        {{- raise_exception('no tools') }}\n    {%- endif %}\n{%- endfor %}\n" + PROMPT, None),
    "the end as a special token": (PARTS + LOOP + IM + "{{ words(m) ~ eos_token ~ '\\n' }}{% endfor %}", None),
    "a list gone through backwards twice": (PARTS + TURNS.replace("in messages", "in messages[::-1][::-1]"), None),
}
# Refused: the template, what the message says.
OTHER_FORMS = {
    "a trimmed answer": (PARTS + LOOP + IM + "{{ words(m) | trim }}<|im_end|>{{ '\\n' }}{% endfor %}", "blanks"),
    "no newline at the end": (PARTS + LOOP + IM + "{{ words(m) }}<|im_end|>{% endfor %}", "one question"),
    "a newline before the end": (PARTS + LOOP + IM + "{{ words(m) }}\n<|im_end|>\n{% endfor %}", "one question"),
    "another form": (PARTS + LOOP + "[{{ m['role'] }}] {{ words(m) }}{% endfor %}", "one question"),
    "strings alone": (LOOP + IM + "{{ m['content'] }}<|im_end|>\n{% endfor %}", "a list written as text"),
    "the first turn left out": (PARTS + TURNS.replace("in messages", "in messages[1:]"), "one question"),
    "an edited list": (PARTS + "{% set messages = messages | rejectattr('role', 'equalto', 'system') | list %}" + TURNS, "a system turn"),
    "an item under another name": (PARTS + LOOP + "{% set text = words(m) | trim %}" + IM + "{{ text }}<|im_end|>{{ '\\n' }}{% endfor %}", "blanks"),
    "a default for an empty system turn": (PARTS + "{% if messages[0].role != 'system' or not messages[0].content %}<|im_start|>system\nHi.<|im_end|>\n{% endif %}" + TURNS, "an empty system turn"),
    "a default for chats with images": (PARTS + "{% if messages[0].role != 'system' and messages[0].content is not string %}<|im_start|>system\nHi.<|im_end|>\n{% endif %}" + TURNS, "lists of parts"),
    "words around an answer": (PARTS + LOOP + IM + "{% if m.role == 'assistant' %}{{ '<answer>' ~ words(m) ~ '</answer>' }}{% else %}{{ words(m) }}{% endif %}<|im_end|>{{ '\\n' }}{% endfor %}", "<answer>"),
    "text after the loop": (PARTS + TURNS + "{{ eos_token }}", "one question"),
    "thoughts cut from earlier answers": (PARTS + LOOP + IM + "{% set text = words(m) %}{% if m.role == 'assistant' and not loop.last and '</think>' in text %}{% set text = text.split('</think>')[-1].lstrip('\\n') %}{% endif %}{{ text }}<|im_end|>{{ '\\n' }}{% endfor %}", "thoughts"),
    "thoughts added to the last answer": (PARTS + LOOP + IM + "{% if m.role == 'assistant' and loop.last %}{{ '<think>\\n\\n</think>\\n\\n' }}{% endif %}{{ words(m) }}<|im_end|>{{ '\\n' }}{% endfor %}", "<think>"),
    "an opening with a thought": (PARTS + TURNS + "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n<think>\\n' }}{% endif %}", "opens the answer"),
    "numbered pictures": (LOOP + "{% set ns = namespace(n=0) %}" + IM + "{% if m.content is not string %}{% for p in m.content %}{% if p.type == 'image' %}{% set ns.n = ns.n + 1 %}Picture {{ ns.n }}: <|vision_start|><|image_pad|><|vision_end|>"
                          "{% else %}{{ p.text }}{% endif %}{% endfor %}{% else %}{{ m.content }}{% endif %}<|im_end|>\n{% endfor %}", "Picture 1"),
    "images first": (LOOP + IM + "{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content if p.type == 'image' %}<|vision_start|><|image_pad|><|vision_end|>{% endfor %}{{ m.content | selectattr('type', 'equalto', 'text') | map(attribute='text') | join }}"
                     "{% endif %}<|im_end|>\n{% endfor %}", "an image behind"),
    "texts on lines": (LOOP + IM + "{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}{{ '\\n' if not loop.first }}{{ p.text if p.type == 'text' else '<|vision_start|><|image_pad|><|vision_end|>' }}{% endfor %}{% endif %}<|im_end|>\n{% endfor %}", "lists of parts"),
    "a string with an unknown escape": (PARTS + LOOP + "<|im_start|>{{ m.role ~ '\\n\\d' }}{{ words(m) }}<|im_end|>{{ '\\n' }}{% endfor %}", "\\d"),
    "a block that does not end": (PARTS + LOOP + IM + "{{ words(m) }}<|im_end|>{{ '\\n' }}", "line 1"),
    "marks around the words alone": (PARTS + LOOP + IM + "{% if m.role == 'assistant' %}{% generation %}{{ words(m) }}{% endgeneration %}{% else %}{{ words(m) }}{% endif %}<|im_end|>{{ '\\n' }}{% endfor %}", "marks other words"),
    "the day in the default": (PARTS + "{% if messages[0].role != 'system' %}<|im_start|>system\nToday is {{ strftime_now('%d') }}.<|im_end|>\n{% endif %}" + TURNS, "strftime_now"),
    "a refusal of system turns": (PARTS + "{% if messages[0].role == 'system' %}{{ raise_exception('no system turns') }}{% endif %}" + TURNS, "no system turns"),
}
CHATS = [
    [("user", "Hello"), ("assistant", "Hi there!")],
    [("user", "Hello"), ("assistant", "Hi"), ("user", "Who are you?"), ("assistant", "An assistant, 一个助手 😀.")],
    [("system", "Answer in one word."), ("user", ["Compare ", "<image>", " with ", "<image>", "."]), ("assistant", "Same")],
    [("user", ["<image>", "\nWhat is this?"]), ("assistant", " A cat.\n\nIt sleeps.\n"), ("user", ["And ", "<image>", "?"]), ("assistant", "  dog ")],
    [("system", ""), ("user", "\n\nlines first"), ("assistant", "1234 5.67")],
    [("user", ["<image>", "<image>", "And this?"]), ("assistant", ["<think>\nhm\n</think>\n\nTwo."]), ("user", " Sure?\n"), ("assistant", "Yes </think> <answer>")],
    [("user", "Which?"), ("assistant", "\nThis one."), ("user", "And?"), ("assistant", "\n\nThat one.")],
    [("system", [" Be kind.\n"]), ("user", ["What is ", "it? ", "<image>"]), ("assistant", ["A ", "cat."])],
]


def as_messages(chat):
    parts = lambda c: {"type": "image"} if c == "<image>" else {"type": "text", "text": c}
    return [{"role": r, "content": c if isinstance(c, str) else [parts(x) for x in c]} for r, c in chat]


def as_record(chat):
    pictures = sum(c.count("<image>") for _, c in chat if not isinstance(c, str))
    turns = [{"role": r, "content": c if isinstance(c, str) else "".join(c)} for r, c in chat]
    return {"record": {"messages": turns, "images": [f"{i}.png" for i in range(pictures)]}, "grids": [GRIDS[i % 3] for i in range(pictures)]}


def without_merged(tokenizer, ids, mask):
    """The mask without the tokens in which the role's line and an answer that begins with a newline have merged: docs/data.md says that they are not
    learned, while transformers marks them."""
    merged = lambda i: i > 0 and mask[i] and not mask[i - 1] and not tokenizer.decode(ids[:i]).endswith("assistant\n")
    return [0 if merged(i) else learned for i, learned in enumerate(mask)]


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
    for token, learned in zip(answer["input_ids"], without_merged(tokenizer, answer["input_ids"], answer["assistant_masks"])):
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
        for name, (template, default) in TEMPLATES.items():
            (folder / "chat_template.jinja").write_text(template, encoding="utf-8")
            marked = PARTS + ("" if default is None else DEFAULT % default) + MARKED
            done = program_answers(program, folder, records)
            if done.returncode != 0:
                sys.exit(f"{name}: {done.stderr}")
            tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
            for chat, record, line in zip(CHATS, records, done.stdout.splitlines(), strict=True):
                compared += 1
                due = expected(tokenizer, template, marked, chat, record["grids"])
                if json.loads(line) != due:
                    wrong += 1
                    print(f"{name}: {chat}\n  due  {due}\n  got  {line}")
        for name, (template, words) in OTHER_FORMS.items():
            (folder / "chat_template.jinja").write_text(template, encoding="utf-8")
            done = program_answers(program, folder, records)
            if done.returncode == 0 or "chat_template.jinja" not in done.stderr or words not in done.stderr:
                wrong += 1
                print(f"{name}: not refused with {words!r}: {done.stderr}")
    print(f"{len(TEMPLATES)} templates accepted, {compared} chats compared, {len(OTHER_FORMS)} other forms refused, {wrong} wrong")
    sys.exit(wrong != 0)


main()
