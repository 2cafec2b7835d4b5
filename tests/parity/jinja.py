"""The evaluator of chat templates beside jinja2 in transformers' own environment.

Usage: python3 jinja.py --render PROGRAM
Every small template is rendered on each of the inputs by both. Where both give a text it must be the same, marks included; where jinja2 fails we must
fail; where we say that something is not known, the template must be in the list of those for which that is meant.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from transformers.utils import chat_template_utils

CHATS = [
    [{"role": "user", "content": "  Hello\n"}, {"role": "assistant", "content": "Hi"}],
    [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "a,b,,c"}, {"role": "assistant", "content": "<think>\nx\n</think>\n\n\u00a0Ünï 猫😀 \n"},
     {"role": "user", "content": "/no_think x' \"y\" \\ \t"}, {"role": "assistant", "content": ""}],
    [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "What?"}, {"type": "image", "image": "a.png"}, {"type": "text", "text": ""}]},
     {"role": "assistant", "content": [{"type": "text", "text": "A cat."}]}],
]
EACH = "{% for m in messages %}"
BODIES = {  # written into a loop over the messages as {{ ... }}
    "names": ["m.role", "m['role']", "m.role ~ loop.index", "m.nothing", "m['nothing']", "nothing", "m.get('role')", "m.get('x')", "m.get('x', 'y')", "m.role[0]", "m.role[-2]",
              "m.role[99]", "m.role[1:3]", "m.role[::-1]", "m.role[:-1]", "m.role[-3:]", "m.role[::2]", "m.role[3:0:-1]", "messages[0].role", "messages[-1]['role']",
              "messages[::-1][0].role", "messages[1:]|length", "messages.0.role", "(messages|first).role", "(messages|last).role", "messages[9] is defined", "(m.content if m.content is string)[5:1:-2] if m.content is string"],
    "operators": ["1 + 2 * 3", "7 // 2", "-7 // 2", "-7 % 3", "7 % -3", "2 - -1", "'a' + 'b' ~ 'c' + 'd'", "1 ~ 2 + 3 ~ 4", "'a' * 3", "true + 1", "1 == true", "'1' == 1", "1 < 2 < 3",
                  "1 < 3 < 2", "'a' < 'b'", "'猫' < '😀'", "not 1 == 2", "not not ''", "'' or 'x'", "'' and 'x'", "'y' and 'x'", "none or 0", "1 if m.role == 'user' else 2",
                  "'u' if m.role == 'user'", "1 if 0 else 2 if 0 else 3", "'a' in 'cat'", "'a' not in 'cat'", "'role' in m", "'x' in m", "m.role in ['user', 'system']", "m.role in ('user',)",
                  "'user' in nothing", "3 in [1, 2]", "(1, 2) == (1, 2)", "[1] == (1,)", "[1, [2]] == [1, [2]]", "{'a': 1} == {'a': 1}", "[1] + [2] == [1, 2]", "none == nothing", "nothing == other",
                  "true", "none", "false ~ none", "-1 | string is defined", "1 -1", "-m.role|length", "'a' 'b'", "('a')", "[1,2,3][1]", "{'a': 'b'}['a']", "{'a': 'b'}.a", "{'items': 'b'}['items']"],
    "filters": ["m.role|upper", "m.role|capitalize", "m.role|length", "messages|length", "nothing|length", "nothing|default('d')", "''|default('d')", "''|default('d', true)", "none|default('d')",
                "''|d('e', boolean=true)", "m.role|first", "m.role|last", "m.role|reverse", "messages|map(attribute='role')|join(', ')", "messages|map(attribute='role')|map('upper')|list|join('-')",
                "messages|selectattr('role', 'equalto', 'user')|list|length", "(messages|rejectattr('role', 'eq', 'user')|first).role", "messages|selectattr('x')|list|length",
                "messages|selectattr('role', 'in', ['user', 'system'])|map(attribute='role')|join", "messages|rejectattr('x', 'defined')|list|length", "['b', '', 'a']|select|join", "[1,2,3]|select('odd')|join(',')",
                "[1,2,3]|reject('divisibleby', 2)|join(',')", "messages|join(',', attribute='role')", "m.role|replace('s', 'Z')", "m.role|replace('s', 'Z', 1)", "'12'|int + 1", "5|string + 'x'",
                "{'b': [1, 'x\"é\\n'], 'a': {'c': none, 'd': true}}|tojson", "m|tojson", "'<&>'|tojson", "m.role|list|join('.')", "messages|list|length", "m|list|join", "{'a': 1}|items|list|length", "nothing|items|list|length",
                "messages|reverse|map(attribute='role')|join", "nothing|upper", "nothing|trim", "none|trim", "' x '|trim ~ '.'", "'xxaxx'|trim('x')", "'a' ~ ' b '|trim ~ 'c'", "(1, 2)|join('+')", "3|default(1)|string",
                "nothing|list|length", "nothing|first", "''|first", "'a-b'|replace('-', '')|upper"],
    "tests": ["m is mapping", "m is sequence", "m is iterable", "m.content is string", "m.content is iterable", "m.content is not string", "nothing is defined", "nothing is not defined", "nothing is undefined", "m.x is none", "none is none",
              "none is not none", "true is true", "1 is true", "true is boolean", "0 is boolean", "1 is integer", "true is integer", "true is number", "'1' is number", "nothing is sequence", "nothing is iterable", "none is iterable",
              "3 is odd", "4 is even", "9 is divisibleby 3", "m.role is eq 'user'", "m.role is in ['user']", "m.role is equalto('user')", "2 is gt 1", "1 is ne 1", "'a' is string and 1", "not m.x is defined", "m.role is defined and m.role"],
    "strings": ["m.role.startswith('us')", "m.role.endswith(('r', 'm'))", "m.role.upper()", "m.role.strip('su')", "m.role.lstrip('us') ~ m.role.rstrip('ret')", "m.role.split('s')|join('+')", "m.role.split('s', 1)|length",
                "' a  b '.split()|join('+')", "'a,b,c'.split(',')[-1]", "'a,b,c'.split(',')[:-1]|join", "m.role.replace('e', '3')", "'-'.join(['a', 'b'])", "'ab'.removeprefix('a')", "'ab'.removesuffix('x')", "m.items()|list|length",
                "m.keys()|join(',')", "m.values()|list|length", "'\\n\\t\\x41\\u732b\\d\\\\'", '"it\'s"', "'a\\'b'", "'\\101'", "'\\U0001F600'", "''", "range(3)|join", "range(1, 7, 2)|list|join(',')", "range(3, 0, -1)|join",
                "'\\z' ~ \"\\q\"", "'%s' is string"],
    "failing": ["m.x.y", "nothing.a", "nothing + 1", "'a' + 1", "1 + none", "nothing()", "m()", "m.role()", "none|length", "1|length", "messages + 'a'", "'a' < 1", "1 in 'a'", "m.get('x')[1:]", "nothing[0]", "1 // 0",
                "raise_exception('no ' ~ m.role)", "m.role.split('')", "''.join([1])", "-'a'", "nothing < 1", "m[1:]", "[][0].x", "'abc'|join(',', attribute=)", "1 +", "{{", "m.role | nosuchfilter", "m is nosuchtest", "[1, 2", "'a", "a b"],
    "not known": ["messages", "m.content ~ [1]", "1.5", "2 ** 3", "7 / 2", "'a%s' % 1", "m.role|title", "'é'|upper", "m.role.count('s')", "m.__class__", "strftime_now('%Y')", "'x'|escape", "m.role|center(20)", "f(*messages)", "1_000",
                  "messages.append", "self", "3 is odd 'a'", "猫", "'\\é'", "m | nothing_called_so if tools", "namespace(a=1)", "loop", "m|dictsort|list", "loop.cycle('a', 'b')", "[1, 2].index(2)", "'abc'.find('c')", "(messages|selectattr('role'))|list and messages|map(attribute='role')", "0x10", "[1]*2"],
}
# Whole templates.
WHOLE = [
    "plain", "a\n", "a\n\n", "\r\na\rb\r\n", "", "{# gone #}\nx", "a {#- gone -#} b", "a\n  {# gone #}\nb", "{{ 'x' }}\n", "{{ 'x' -}}\n y", "a  {{- 'x' }}", "a\n  {{ 'x' }}\n  b",
    EACH + "\n  {{ m.role }}\n{% endfor %}\nend", EACH + "\n  {%- if loop.first %}\n  first\n  {%- else -%}\n  other\n  {%- endif %}\n{%- endfor %}", "a\n  {%+ if true %}x{% endif +%}\nb", "  {% if true %}  x  {% endif %}  y",
    "x {% if true %}\ny{% endif %}", "{%- if true -%}\n\n  x\n\n{%- endif -%}\n y", "{{ '%}' }}{{ '}}' }}{% if '%}' %}x{% endif %}", "{ {x} }", "{{{'a': {'b': 'c'}}['a']['b']}}", "\u00a0 {%- if true %}x{% endif %}", "\t{% if true %}x{% endif %}\t\nz",
    "{% set x = 1 %}" + EACH + "{% set x = x + 1 %}{{ x }}{% endfor %}{{ x }}", "{% set ns = namespace(x=1, s='') %}" + EACH + "{% set ns.x = ns.x + 1 %}{% set ns.s = ns.s ~ m.role[0] %}{% endfor %}{{ ns.x }}{{ ns.s }}{{ ns.y }}",
    "{% if true %}{% set x = 1 %}{% endif %}{{ x }}", EACH + "{% if loop.first %}{% set y = 1 %}{% endif %}{{ y }}{% endfor %}{{ y }}", "{% set a, b = 1, 2 %}{{ b }}{{ a }}", "{% for k, v in messages[0].items() %}{{ k }},{% endfor %}",
    "{% for x in [] %}a{% else %}b{% endfor %}", "{% for x in [1, 2] %}{% break %}{% else %}b{% endfor %}", "{% for x in [1, 2] %}{% continue %}{% else %}b{% endfor %}", "{% for x in [1, 2] %}{% if x == 2 %}{% break %}{% endif %}a{% else %}b{% endfor %}",
    "{% for x in [1, 2] %}{% if x == 1 %}{% continue %}{% endif %}a{% else %}b{% endfor %}", "{% for x in [1, 2] %}a{% if x == 2 %}{% continue %}{% endif %}{% else %}b{% endfor %}", "{% for x in [1, 2] if x > 5 %}a{% else %}b{% endfor %}",
    "{% for x in [1, 2] %}{% if x == 2 %}{% continue %}{% else %}{% break %}{% endif %}{% else %}b{{ x }}{{ loop }}{% endfor %}", "{% for y in [1, 2, 3] %}{% for x in [y] %}{% if x == 1 %}{% break %}{% endif %}{% else %}{% continue %}{% endfor %}{{ y }}{% else %}c{% endfor %}",
    "{% for y in [1, 2, 3] %}{% for x in [y] %}{% if x > 1 %}{% break %}{% endif %}{% else %}{% break %}{% endfor %}{{ y }}{% else %}c{% endfor %}",
    EACH + "{% if m.role == 'user' %}{% break %}{% endif %}{{ m.role }}{% else %}none{% endfor %}", EACH + "{% if m.role == 'user' %}{% continue %}{% endif %}{{ m.role }}{% else %}none{% endfor %}", EACH + "{% for n in messages %}{% if n.role == m.role %}{% break %}{% endif %}{{ n.role }}{% else %}none{% endfor %},{% endfor %}", "{% for x in nothing %}a{% else %}b{% endfor %}", "{% for c in 'ab' %}{{ c }}{{ loop.length }}{% endfor %}", "{% for k in messages[0] %}{{ k }}{% endfor %}",
    "{% for m in messages if m.role == 'user' %}{{ loop.index }}/{{ loop.length }}{{ loop.last }}{% else %}none{% endfor %}", EACH + "{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.previtem.role if not loop.first }}{{ loop.nextitem is defined }};{% endfor %}",
    EACH + "{% if m.role == 'assistant' %}{% continue %}{% endif %}{{ m.role }}{% if loop.index == 3 %}{% break %}{% endif %}{% endfor %}", EACH + "{% for n in messages %}{{ loop.index }}{% endfor %}{{ loop.index }}|{% endfor %}",
    "{% for messages in messages %}{{ messages.role }}{% endfor %}{{ messages|length }}", "{% set x %}a {{ 1 + 1 }} b{% set inner = 2 %}{% endset %}[{{ x }}]{{ inner }}{{ x is string }}",
    "{% macro f(a, b='B', c=a) %}{{ a }}{{ b }}{{ c }}{{ m }}{{ late }}{% endmacro %}" + EACH + "{{ f(m.role) }}{{ f(1, c=2) }}{{ f() }}{% endfor %}", "{% macro f(a) %}{{ late }}{{ a }}{% endmacro %}{% set late = 5 %}{{ f(1)|upper }}{{ f }}"[:-7],
    "{% macro f(a) %}{% for x in a %}{{ x.role }}{% endfor %}{% endmacro %}{{ f(messages) | length }}", "{% macro f(n) %}{% if n > 0 %}{{ n }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(5) }}", "{% macro f() %}x{% endmacro %}{{ f(1) }}", "{% macro f() %}x{% endmacro %}{{ f(a=1) }}",
    EACH + "{% if m.role == 'assistant' %}a{% generation %}{% set z = 1 %}{{ m.role }}!{% endgeneration %}b{{ z }}{% else %}{{ m.role }}{% endif %}{% endfor %}", "{% generation %}x{% endgeneration %}{% generation %}{% endgeneration %}",
    "{% if nothing %}a{% elif messages|length > 2 %}b{% elif 0 %}c{% else %}d{% endif %}", "{% if messages[0].role != 'system' %}{{ raise_exception('first') }}{% endif %}ok", 
    "{% if tools %}{% for t in tools %}{{ t | title }}{% endfor %}{% endif %}x", "{{ tools }}{{ documents is none }}{{ add_generation_prompt }}", "{% if false %}{{ strftime_now('%d') }}{% endif %}x", "{% for i in range(2) %}{% for j in range(2) %}{% if j %}{% break %}{% endif %}{{ i }}{{ j }}{% endfor %}{% endfor %}",
    "{% set ns = namespace(last=-1) %}{% for m in messages[::-1] %}{% set index = (messages|length - 1) - loop.index0 %}{% if ns.last == -1 and m.role == 'user' %}{% set ns.last = index %}{% endif %}{% endfor %}{{ ns.last }}",
    EACH + "{% set content = m.content %}{% if content is string and '</think>' in content %}{% set content = content.split('</think>')[-1].lstrip('\\n') %}{% endif %}{{ content if content is string }}{% endfor %}",
    EACH + "{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}{% if p.type == 'image' or 'image' in p %}<i>{% elif 'text' in p %}{{ p.text }}{% endif %}{% endfor %}{% endif %}{% endfor %}",
    "{{ range(99999)|join('aaaa')|length }}", "{{ range(100000)|list|length }}", "{{ range(100001)|list|length }}", "{{ ('" + "a" * 300 + "'.replace('a', '" + "b" * 3000 + "'))|length }}",
    "{% for x in [1] if loop %}{{ x }}{% endfor %}", "{% if x: %}a{% endif %}b", "{% endif %}", "{% if true %}", "{% for x in messages %}", "{% nosuch %}", "{% set x 1 %}", "{% if %}a{% endif %}", "{{ }}", "{{ 'a' ", "{# a", "{% for a, b in messages %}{% endfor %}", "{% set a, b = 1 %}", "{% set nothing.x = 1 %}", "{% break %}", "{{ [1, 2)}}",
]
WHOLE_NOT_KNOWN = [
    "{% raw %}{{ x }}{% endraw %}", "{% with x = 1 %}{{ x }}{% endwith %}", "{% filter upper %}a{% endfilter %}", "{% for x in [1] recursive %}{{ x }}{% endfor %}", "{% if true %}{% macro f() %}x{% endmacro %}{% endif %}", "{% set x | upper %}a{% endset %}",
    "{% include 'x' %}", "{% set ns = namespace(n=2) %}{% for x in [1, 2, 3] if x < ns.n %}{% set ns.n = 9 %}{{ x }}{% endfor %}", "{% for y in [1] %}{% for x in [1] if loop %}{% endfor %}{% endfor %}", "{% macro f() %}{% generation %}x{% endgeneration %}{% endmacro %}{{ f() }}",
    "{% set ns = namespace() %}{% set ns.self = ns %}", "{% set ns = namespace(x=0) %}{% for i in range(9999) %}{% set ns.x = [ns.x] %}{% endfor %}", "{% for i in range(9999) %}{% for j in range(9999) %}{% endfor %}{% endfor %}",
    "{% set ns = namespace(x='aaaaaaaa') %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}", "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "{{ " + "(" * 500 + "1" + ")" * 500 + " }}", "{{ " + "not " * 500 + "1 }}", "{% if 1 %}" * 300 + "{% endif %}" * 300,
    "{{ " + "+".join("1" for _ in range(500)) + " }}", "{{ 'a' * 99999999 }}", "{{ x" + ".y" * 500 + " }}", "{{ '" + "a" * 30000 + "'.replace('a', '" + "b" * 3000 + "') }}", "{% macro f(x) %}{{ kwargs }}{% endmacro %}", "{% set loop = 1 %}",
]


def cases():
    for group, bodies in BODIES.items():
        for body in bodies:
            yield group == "not known", EACH + "{{ " + body + " }};{% endfor %}"
    yield from ((False, t) for t in WHOLE)
    yield from ((True, t) for t in WHOLE_NOT_KNOWN)


def due(template, chat):
    """The text and the marks, or None when jinja2 fails."""
    try:
        texts, marks = chat_template_utils.render_jinja_template([chat], chat_template=template, return_assistant_tokens_mask="generation" in template)
        return texts[0], [list(m) for m in marks[0]] if marks else []
    except Exception:
        return None


def in_bytes(text, marks):
    return [[len(text[:n].encode()) for n in mark] for mark in marks]


def judge(template, chat, not_known, answer):
    """What is wrong with an answer, or nothing."""
    if not_known:
        return None if answer.get("code") == "unimplemented" else "it should not be known"
    expected = due(template, chat)
    if expected is None:
        return None if "error" in answer else "jinja2 fails"
    if "error" in answer:
        return f"jinja2 gives {expected[0]!r}"
    if answer["text"] != expected[0] or answer["marked"] != in_bytes(*expected):
        return f"due {expected!r}"
    return None


def answers(program, asked, timeout=100):
    """What the program says of each (template, chat)."""
    variables = lambda chat: {"messages": chat, "tools": None, "documents": None, "add_generation_prompt": False}
    with tempfile.TemporaryDirectory(prefix="troupe-jinja-") as scratch:
        lines = Path(scratch) / "asked.jsonl"
        lines.write_text("".join(json.dumps({"template": t, "variables": variables(c)}) + "\n" for t, c in asked))
        done = subprocess.run([program, str(lines)], capture_output=True, text=True, timeout=timeout)
    if done.returncode != 0:
        sys.exit(f"the program ended with {done.returncode}: {done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--render", required=True)
    program = parser.parse_args().render
    asked = [(not_known, template, chat) for not_known, template in cases() for chat in (CHATS[:1] if not_known else CHATS)]
    wrong = texts = 0
    for (not_known, template, chat), answer in zip(asked, answers(program, [(t, c) for _, t, c in asked]), strict=True):
        texts += "text" in answer
        if complaint := judge(template, chat, not_known, answer):
            wrong += 1
            print(f"{template[:300]}\n  {complaint}\n  got {str(answer)[:300]}")
    print(f"{len(list(cases()))} templates, {len(asked)} renderings compared, {texts} of them texts, {wrong} wrong")
    sys.exit(wrong != 0)


if __name__ == "__main__":
    main()
