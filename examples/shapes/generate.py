"""Draws the pictures of the shapes example and writes its question records (LLaVA JSONL).

Usage: python3 generate.py [FOLDER]        needs Pillow; the same files come out each time (up to Pillow's own encoder version)

Every question needs its picture: within a kind of question the answers are balanced, so that an answer guessed from the words
alone is right no more often than one in the number of answers. `eval-shuffled.jsonl` holds the records of `eval.jsonl` with the
pictures moved round between records of one kind: a model that looks at its pictures must do badly on it.
"""

import json
import math
import random
import sys
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

COLOURS = {
    "red": (214, 40, 40), "green": (44, 160, 60), "blue": (36, 84, 214), "yellow": (244, 214, 32),
    "purple": (142, 50, 178), "orange": (246, 132, 24), "black": (16, 16, 16), "white": (250, 250, 250),
}
DARK = ["black", "blue", "purple"]
SHAPES = ["circle", "square", "triangle", "star"]
COUNTS = [1, 2, 3, 4]
SCALE = 4  # drawn this much larger, then reduced: soft edges
SIZES = [(56, 56), (84, 56), (56, 84), (70, 70), (84, 84), (75, 90), (112, 84), (84, 112)]
LARGE = [(140, 112), (112, 140), (130, 130), (168, 84), (168, 140)]  # more than one attention window


def background(rng, size):
    """A soft grey-beige slope, darker to one side."""
    grey = rng.randint(150, 190)
    ends = [tuple(grey + rng.randint(-14, 14) for _ in range(3)) for _ in range(2)]
    slope = Image.linear_gradient("L").rotate(rng.choice([0, 90, 180, 270])).resize(size)
    return Image.composite(Image.new("RGB", size, ends[0]), Image.new("RGB", size, ends[1]), slope)


def draw_shape(canvas, shape, colour, x, y, radius):
    if shape == "circle":
        canvas.ellipse([x - radius, y - radius, x + radius, y + radius], fill=colour)
    elif shape == "square":
        side = radius * 0.9
        canvas.rectangle([x - side, y - side, x + side, y + side], fill=colour)
    elif shape == "triangle":
        canvas.polygon([(x, y - radius), (x + radius, y + radius * 0.8), (x - radius, y + radius * 0.8)], fill=colour)
    else:
        reach = [radius * (1.1 if i % 2 == 0 else 0.42) for i in range(10)]
        turn = [math.pi * (i / 5 - 0.5) for i in range(10)]
        canvas.polygon([(x + r * math.cos(t), y + r * math.sin(t)) for r, t in zip(reach, turn)], fill=colour)


def canvas_of(rng, size):
    large = (size[0] * SCALE, size[1] * SCALE)
    picture = background(rng, large)
    return picture, ImageDraw.Draw(picture)


def single_picture(rng, size, shape, colour):
    picture, canvas = canvas_of(rng, size)
    width, height = picture.size
    radius = min(width, height) * rng.uniform(0.36, 0.42)
    x = width / 2 + rng.uniform(-0.06, 0.06) * width
    y = height / 2 + rng.uniform(-0.06, 0.06) * height
    draw_shape(canvas, shape, COLOURS[colour], x, y, radius)
    return picture.resize(size, Image.LANCZOS)


def count_picture(rng, size, shape, colour, count):
    """`count` equal shapes, none touching another."""
    picture, canvas = canvas_of(rng, size)
    width, height = picture.size
    radius = math.sqrt(width * height) * 0.15
    places = []
    while len(places) < count:
        x, y = rng.uniform(radius * 1.1, width - radius * 1.1), rng.uniform(radius * 1.1, height - radius * 1.1)
        if all(math.hypot(x - a, y - b) > radius * 2.3 for a, b in places):
            places.append((x, y))
    for x, y in places:
        draw_shape(canvas, shape, COLOURS[colour], x, y, radius)
    return picture.resize(size, Image.LANCZOS)


def digit_picture(rng, size, digit, colour):
    picture, canvas = canvas_of(rng, size)
    width, height = picture.size
    font = ImageFont.load_default(size=min(width, height) * 0.95)
    left, top, right, bottom = canvas.textbbox((0, 0), str(digit), font=font, stroke_width=SCALE)
    x = (width - right + left) / 2 - left + rng.uniform(-0.02, 0.02) * width
    y = (height - bottom + top) / 2 - top + rng.uniform(-0.02, 0.02) * height
    canvas.text((x, y), str(digit), font=font, fill=COLOURS[colour], stroke_width=SCALE, stroke_fill=COLOURS[colour])
    return picture.resize(size, Image.LANCZOS)


def cycle(rng, values, count):
    """`count` values, each as often as any other, in random order."""
    dealt = [values[i % len(values)] for i in range(count)]
    rng.shuffle(dealt)
    return dealt


class Split:
    """Pictures and records of one file."""

    def __init__(self, folder, name, seed):
        self.folder, self.name, self.rng = folder, name, random.Random(seed)
        self.records, self.pictures = [], 0

    def keep(self, picture):
        """Saves as PNG (a third, with a palette so that the file stays small) or JPEG; returns the name relative to `images/`."""
        png = self.pictures % 3 == 0
        name = f"{self.name}/{self.pictures:04d}.{'png' if png else 'jpg'}"
        self.pictures += 1
        path = self.folder / "images" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if png:
            picture.quantize(32, method=Image.Quantize.MAXCOVERAGE).save(path, optimize=True)
        else:
            picture.save(path, quality=80)
        return name

    def size(self):
        return self.rng.choice(SIZES if self.rng.random() < 0.85 else LARGE)

    def ask(self, kind, images, *turns):
        record = {"id": kind}
        if images:
            record["image"] = images[0] if len(images) == 1 else images
        marks = "<image>\n" * len(images)
        record["conversations"] = []
        for question, answer in turns:
            record["conversations"] += [{"from": "human", "value": marks + question}, {"from": "gpt", "value": answer}]
            marks = ""
        self.records.append(record)

    def singles(self, count, pairs):
        rng, shown = self.rng, []
        for shape, colour in zip(cycle(rng, SHAPES, count), cycle(rng, list(COLOURS), count)):
            name = self.keep(single_picture(rng, self.size(), shape, colour))
            shown.append((name, shape, colour))
            self.ask("colour", [name], (f"What colour is the {shape}?", colour))
        for i in range(pairs):
            first, second = rng.sample(shown, 2)
            which, answer = ("first", first[2]) if i % 2 == 0 else ("second", second[2])
            self.ask("pair", [first[0], second[0]], (f"What colour is the shape in the {which} picture?", answer))

    def shapes(self, count, both):
        rng = self.rng
        for i, (shape, colour) in enumerate(zip(cycle(rng, SHAPES, count), cycle(rng, DARK, count))):
            name = self.keep(single_picture(rng, (56, 56), shape, colour))
            more = [("What colour is it?", colour)] if i < both else []
            self.ask("both" if more else "shape", [name], ("Which shape is shown?", shape), *more)

    def counts(self, count):
        rng = self.rng
        for number, shape, colour in zip(cycle(rng, COUNTS, count), cycle(rng, SHAPES, count), cycle(rng, list(COLOURS), count)):
            name = self.keep(count_picture(rng, (84, 84), "circle", rng.choice(DARK), number))
            self.ask("count", [name], ("How many shapes are there?", str(number)))

    def digits(self, count):
        rng = self.rng
        for digit, colour in zip(cycle(rng, list(range(10)), count), cycle(rng, list(COLOURS), count)):
            name = self.keep(digit_picture(rng, (56, 56), digit, rng.choice(DARK)))
            self.ask("digit", [name], ("Which digit is shown?", str(digit)))

    def texts(self, count):
        sums = [(a, b) for a in range(10) for b in range(10 - a)]
        for a, b in cycle(self.rng, sums, count):
            self.ask("text", [], (f"What is {a} plus {b}?", str(a + b)))

    def write(self, name, records):
        with open(self.folder / name, "w", encoding="utf-8") as out:
            for record in records:
                out.write(json.dumps(record, ensure_ascii=False) + "\n")

    def finish(self):
        self.rng.shuffle(self.records)
        for i, record in enumerate(self.records):
            record["id"] = f"{self.name}-{i:04d}-{record['id']}"
        self.write(f"{self.name}.jsonl", self.records)


def shuffled(records):
    """Each picture list moves half a kind further, so no record keeps its own."""
    moved = [dict(record) for record in records]
    kinds = [record["id"].rsplit("-", 1)[1] for record in records]
    for kind in sorted(set(kinds) - {"text"}):
        places = [i for i, k in enumerate(kinds) if k == kind]
        for i, j in zip(places, places[len(places) // 2:] + places[:len(places) // 2]):
            moved[i]["image"] = records[j]["image"]
    return moved


def main():
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    train = Split(folder, "train", 1)
    train.singles(240, pairs=120)
    train.shapes(200, both=60)
    train.counts(160)
    train.digits(240)
    train.texts(40)
    train.finish()
    held_out = Split(folder, "eval", 2)
    held_out.singles(64, pairs=16)
    held_out.shapes(24, both=0)
    held_out.counts(24)
    held_out.digits(40)
    held_out.texts(4)
    held_out.finish()
    held_out.write("eval-shuffled.jsonl", shuffled(held_out.records))


if __name__ == "__main__":
    main()
