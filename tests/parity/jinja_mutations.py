"""The evaluator of chat templates beside jinja2 on templates that were damaged at random.

Usage: python3 jinja_mutations.py --render PROGRAM [--templates N] [--seed S]
Tokens of the templates of jinja.py are taken out, put in and exchanged. Where we give a text, jinja2 must give the same; that we refuse is always right.
"""

import argparse
import logging
import random
import re
import sys

import jinja

TOKEN = re.compile(r"\s+|\{%[-+]?|[-+]?%\}|\{\{-?|-?\}\}|\{#-?|-?#\}|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|\w+|.", re.S)
BATCH = 4000


def sources():
    """Token lists of the sound templates, without those that are about sizes: jinja2 takes minutes for them."""
    return [TOKEN.findall(t) for _, t in jinja.cases() if len(t) < 2000 and not re.search(r"\d{4}", t)]


def damaged(all_tokens, pool, chance):
    tokens = list(chance.choice(all_tokens))
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(tokens) + 1)
        what = chance.random()
        if what < 0.25:
            del tokens[at:at + 1]
        elif what < 0.5:
            tokens.insert(at, chance.choice(pool))
        elif what < 0.75:
            tokens[at:at + 1] = [chance.choice(pool)]
        else:
            other = chance.choice(all_tokens)
            begin = chance.randrange(len(other) + 1)
            tokens[at:at] = other[begin:begin + chance.randint(1, 6)]
    return "".join(tokens)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--render", required=True)
    parser.add_argument("--templates", type=int, default=BATCH)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    chance = random.Random(options.seed)
    all_tokens = sources()
    pool = sorted({token for tokens in all_tokens for token in tokens})
    texts = wrong = 0
    for done in range(0, options.templates, BATCH):
        asked = [(damaged(all_tokens, pool, chance), chance.choice(jinja.CHATS)) for _ in range(min(BATCH, options.templates - done))]
        for (template, chat), answer in zip(asked, jinja.answers(options.render, asked), strict=True):
            if "text" not in answer:
                continue
            texts += 1
            if complaint := jinja.judge(template, chat, False, answer):
                wrong += 1
                print(f"{template[:300]}\n  {complaint}\n  got {str(answer)[:300]}")
    print(f"{options.templates} damaged templates, {texts} of them with a text, {wrong} wrong")
    sys.exit(wrong != 0 or texts == 0)


main()
