#!/usr/bin/env python3
"""Makes tests/actors/parquet/fixture: the same rows in files of several codecs, encodings and sizes of pages and groups (types.json has what
they are to be read as), records with pictures as bytes, columns of types that are not read, and damaged files.

    python make_fixture.py            rewrites the fixture beside this script
"""
import datetime
import decimal
import json
import pathlib
import random

import pyarrow as pa
import pyarrow.parquet as pq

HERE = pathlib.Path(__file__).resolve().parent / "fixture"
PICTURES = HERE.parents[1] / "data" / "fixture" / "pictures"
ROWS = 60
TURN = {"role": pa.string(), "content": pa.string()}
PICTURE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
PLAIN = {"id": pa.string(), "messages": pa.list_(pa.struct(list(TURN.items()))), "images": pa.list_(PICTURE), "score": pa.float64(), "flag": pa.bool_(),
         "history": pa.list_(pa.list_(pa.string())), "weight": pa.int64(), "text": pa.string(), "query": pa.null()}
LARGE = PLAIN | {
    "id": pa.large_string(), "text": pa.dictionary(pa.int8(), pa.string()), "weight": pa.int64(),
    "messages": pa.large_list(pa.struct([("role", pa.dictionary(pa.int32(), pa.string())), ("content", pa.large_string())])),
    "images": pa.large_list(pa.struct([("bytes", pa.large_binary()), ("path", pa.large_string())]))}


def rows():
    draw = random.Random(3)

    def turn():
        return draw.choice([None, *[{"role": draw.choice(["user", "assistant", None]), "content": draw.choice(["ü", None, "", "x" * draw.randrange(200)])}] * 9])

    def picture():
        return draw.choice([None, {"bytes": draw.choice([None, draw.randbytes(draw.randrange(300))]), "path": draw.choice([None, "a.png"])}])

    return [{"id": draw.choice([None, f"r{i}"]), "messages": draw.choice([None, [], [turn() for _ in range(draw.randrange(1, 5))]]),
             "images": draw.choice([None, [], [picture() for _ in range(draw.randrange(1, 4))]]), "score": draw.choice([None, i / 2]),
             "flag": draw.choice([None, True, False]), "history": draw.choice([None, [], [["q", "a"], ["q2", None]], [[], None]]),
             "weight": draw.choice([None, -5, 2**40]), "text": draw.choice(["a", "b", None]), "query": None} for i in range(ROWS)]


def read_as(value):
    """As the library of the program writes its objects: null left out, bytes as numbers."""
    if isinstance(value, dict):
        return {k: v for k, v in ((k, read_as(v)) for k, v in value.items()) if v is not None} or None
    if isinstance(value, list):
        return [read_as(v) for v in value]
    return {"bytes": list(value), "subtype": None} if isinstance(value, bytes) else value


def write(name, columns, **options):
    table = pa.table({key: pa.array(values, type) if type else values for key, (values, type) in columns.items()})
    pq.write_table(table, HERE / f"{name}.parquet", **({"compression": "snappy"} | options))


def write_types():
    data = rows()
    (HERE / "types.json").write_text(json.dumps([read_as(row) or {} for row in data], ensure_ascii=False))

    def types(name, kinds, **options):
        write(name, {key: ([row[key] for row in data], type) for key, type in kinds.items()}, write_batch_size=8, **options)

    types("snappy", PLAIN, row_group_size=25, data_page_size=200, write_page_index=True, write_page_checksum=True)
    types("zstd", LARGE, compression="zstd", row_group_size=1000, data_page_size=200, data_page_version="2.0", use_dictionary=False)
    types("gzip", PLAIN, compression="gzip", row_group_size=1000, data_page_size=300)
    types("plain", LARGE, compression="none", row_group_size=7, use_dictionary=True)
    types("brotli", PLAIN, compression="brotli", row_group_size=40, data_page_size=100, use_dictionary=False)


def turns(question, answer):
    return [{"from": "human", "value": question}, {"from": "gpt", "value": answer}]


def write_records():
    names = [f"{name}.png" for name in ("rgb", "grey", "palette", "alpha")]
    pictures = [{"bytes": (PICTURES / name).read_bytes(), "path": name} for name in names]
    chat = pa.list_(pa.struct([("from", pa.string()), ("value", pa.string())]))
    write("pictures", {"image": ([pictures[i % 4] if i % 3 else None for i in range(20)], PICTURE),
                       "conversations": ([turns("<image>What?" if i % 3 else "Who?", f"Number {i}.") for i in range(20)], chat)}, row_group_size=8)
    write("paths", {"image": ([names[i % 4] for i in range(4)], pa.string()), "conversations": ([turns("<image>What?", "x")] * 4, chat)})
    write("bytes", {"image": ([p["bytes"] for p in pictures], pa.binary()), "conversations": ([turns("<image>What?", "x")] * 4, chat)})
    write("photo", {"photo": (pictures, PICTURE), "conversations": ([turns("What?", "x")] * 4, chat)})
    write("empty", {"conversations": ([], chat)})
    messages = pa.list_(pa.struct([("role", pa.string()), ("content", pa.list_(pa.struct([("type", pa.string()), ("text", pa.string()), ("image", PICTURE)])))]))
    write("parts", {"messages": ([[{"role": "user", "content": [{"type": "image", "image": pictures[0]}, {"type": "text", "text": "What?"}]},
                                   {"role": "assistant", "content": [{"type": "text", "text": "A square."}]}]], messages)})


def write_odd():
    now, chat = datetime.datetime(2024, 1, 2), pa.list_(pa.struct([("role", pa.string()), ("content", pa.string()), ("at", pa.timestamp("us"))]))
    write("unused", {"messages": ([[{"role": "user", "content": "q", "at": now}, {"role": "assistant", "content": "a", "at": now}]], chat),
                     "made": ([now], pa.timestamp("us")), "day": ([now.date()], pa.date32()), "price": ([decimal.Decimal("1.50")], pa.decimal128(9, 2)),
                     "marks": ([[("a", 1)]], pa.map_(pa.string(), pa.int32())), "box": ([[1.0, 2.0]], pa.list_(pa.float32(), 2)),
                     "uuid": ([b"x" * 16], pa.binary(16)), "note": (["n"], pa.string())})
    write("timestamp", {"messages": ([[{"role": "user", "content": now}]], pa.list_(pa.struct([("role", pa.string()), ("content", pa.timestamp("us"))])))})
    write("map", {"images": ([[("a", "b")]], pa.map_(pa.string(), pa.string())), "id": (["x"], pa.string())})
    write("latin", {"instruction": (pa.array([b"Gr\xfc\xdfe"], pa.binary()).view(pa.string()), None), "output": (["x"], pa.string())})
    ids = {"id": ([f"id {i}" for i in range(400)], pa.string())}
    write("ids", ids, use_dictionary=False, compression="none", data_page_size=500, write_batch_size=20, write_page_checksum=True)
    sound = (HERE / "ids.parquet").read_bytes()
    codec = b"\x19\x18\x02id\x15"  # a footer's path_in_schema ["id"], then its codec
    assert sound.count(codec + b"\x00") == 1
    (HERE / "lzo.parquet").write_bytes(sound.replace(codec + b"\x00", codec + b"\x06"))
    (HERE / "damaged.parquet").write_bytes(sound.replace(b"id 200", b"id 2OO"))


def varint(number):
    out = b""
    while number >= 0x80:
        out, number = out + bytes([number & 0x7F | 0x80]), number >> 7
    return out + bytes([number])


def write_broken():
    """Damage that one page has, and footers and indexes that do not say what they should."""
    ids, pages = [f"id {i}" for i in range(400)], dict(compression="none", data_page_size=500, write_batch_size=20, write_page_checksum=True)
    write("indexed", {"id": (ids, pa.string())}, use_dictionary=False, write_page_index=True, **pages)
    sound = (HERE / "indexed.parquet").read_bytes()
    (HERE / "indexed_damaged.parquet").write_bytes(sound.replace(b"id 200", b"id 2OO", 1))
    chat = pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))
    chats = [[{"role": "user", "content": f"What is {i}?"}, {"role": "assistant", "content": "It is a cat."}] for i in range(1600)]
    write("chats_damaged", {"messages": (chats, chat)}, use_dictionary=["messages.list.element.role"], **pages)
    file = HERE / "chats_damaged.parquet"
    file.write_bytes(file.read_bytes().replace(b"What is 700?", b"What is 7OO?", 1))
    # A dictionary that the footer does not name: the pages begin with it, and its own place is 0.
    write("dictionary", {"id": ([f"id {i % 40}" for i in range(400)], pa.string())}, compression="none", data_page_size=10, write_batch_size=20, write_page_index=True)
    file = HERE / "dictionary.parquet"
    column = pq.ParquetFile(file).metadata.row_group(0).column(0)
    assert column.dictionary_page_offset == 4
    begin = varint(2 * column.data_page_offset)  # zigzag, as what follows
    assert len(begin) == 2
    named, unnamed = b"\x26" + begin + b"\x26\x08", b"\x26\x88\x00\x26\x00"
    assert file.read_bytes().count(named) == 1
    file.write_bytes(file.read_bytes().replace(named, unnamed))
    write("large", {"id": (["x" * (200 << 20)], pa.string())}, use_dictionary=False, compression="zstd", compression_level=19, write_statistics=False)


if __name__ == "__main__":
    HERE.mkdir(exist_ok=True)
    write_types()
    write_records()
    write_odd()
    write_broken()
