"""Writes tar archives for tar_file_test.cpp with Python's tarfile.

Usage: python3 make_shards.py PICTURES OUT
"""
import io
import json
import pathlib
import shutil
import sys
import tarfile

LONG = "folder/" + "n" * 180 + "/deep.png"


def add(tar, name, data, headers=None):
    info = tarfile.TarInfo(name)
    info.pax_headers = headers or {}
    info.size = len(data)
    tar.addfile(info, io.BytesIO(data))


def turns(question):
    return [{"from": "human", "value": question}, {"from": "gpt", "value": "A cat."}]


def main():
    pictures, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    picture = (pictures / "rgb.png").read_bytes()
    for form, name in ((tarfile.GNU_FORMAT, "gnu"), (tarfile.PAX_FORMAT, "pax"), (tarfile.USTAR_FORMAT, "ustar")):
        with tarfile.open(out / f"{name}.tar", "w", format=form) as tar:
            folder = tarfile.TarInfo("folder")
            folder.type = tarfile.DIRTYPE
            tar.addfile(folder)
            add(tar, "./a.png", picture)
            add(tar, "empty.png", b"")
            add(tar, "folder/b.png" if name == "ustar" else LONG, picture)
            link = tarfile.TarInfo("link.png")
            link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
            tar.addfile(link)
    with tarfile.open(out / "shard.tar", "w") as tar:
        add(tar, "x/000.jpg", picture)  # content tells the type
        add(tar, "x/000.json", json.dumps({"conversations": turns("What?")}).encode())
        add(tar, "x/001.json", json.dumps({"id": "named", "image": "x/001.left.png", "conversations": turns("<image>What?")}).encode())
        add(tar, "x/001.left.png", picture)
        add(tar, "x/001.right.png", picture)
        add(tar, "x/002.json", json.dumps({"conversations": turns("No picture?")}).encode())
        add(tar, "x/003.txt", b"a caption")
    # Faults of several kinds, with good samples before, between and behind them.
    with tarfile.open(out / "faulty.tar", "w", format=tarfile.PAX_FORMAT) as tar:
        add(tar, "x/000.json", json.dumps({"conversations": turns("What?")}).encode())
        add(tar, "x/000.png", picture)
        add(tar, "x/001.png", picture)
        add(tar, "x/002.json", json.dumps({"conversations": turns("What?")}).encode())
        add(tar, "x/002.png", picture, {"GNU.sparse.major": "0", "GNU.sparse.minor": "1", "GNU.sparse.size": str(len(picture) + 4096), "GNU.sparse.map": f"4096,{len(picture)}"})
        add(tar, "x/003.json", json.dumps({"conversations": turns("What?")}).encode())
        add(tar, "x/003.png", picture)
        add(tar, "x/004.txt", b"a caption")
        add(tar, "x/005.json", json.dumps({"conversations": turns("No picture?")}).encode())
        add(tar, "x/006.json", json.dumps({"conversations": turns("What?")}).encode())
        add(tar, "x/006.png", picture)
    plain = json.dumps({"conversations": turns("What?")}).encode()
    # Samples in pieces between whole ones.
    with tarfile.open(out / "pieces.tar", "w") as tar:
        add(tar, "x/000.json", plain)
        add(tar, "x/001.json", plain)
        add(tar, "x/002.json", plain)
        add(tar, "x/003.json", plain)
        add(tar, "x/003.jpg", picture)
        add(tar, "x/001.jpg", picture)
        add(tar, "x/000.jpg", picture)
        add(tar, "x/004.jpg", picture)
        add(tar, "x/004.json", plain)
        add(tar, "x/004.json", plain)
        add(tar, "x/005.json", plain)
        add(tar, "x/005.JSON", plain)
        add(tar, "x/006.json", plain)
    # Names of one file, as tar writes hard links, and links by path.
    with tarfile.open(out / "links.tar", "w") as tar:
        add(tar, "x/000.json", plain)
        add(tar, "x/000.png", picture)
        for name, kind, target in (("x/001.json", None, ""), ("x/001.png", tarfile.LNKTYPE, "./x/000.png"), ("x/002.json", None, ""),
                                   ("x/002.png", tarfile.SYMTYPE, "../x/003.png"), ("x/003.json", None, ""), ("x/003.png", None, ""),
                                   ("x/004.json", None, ""), ("x/004.png", tarfile.SYMTYPE, "../../elsewhere.png"),
                                   ("x/005.json", tarfile.LNKTYPE, "x/000.json"), ("x/005.png", tarfile.SYMTYPE, "005.png"),
                                   ("x/latest", tarfile.SYMTYPE, "x"), ("x/latest.v2", tarfile.SYMTYPE, "../x/"), ("x/top.v1", tarfile.SYMTYPE, ".."),
                                   ("x/006.json", None, ""), ("x/006.png", tarfile.SYMTYPE, "002.png"),
                                   ("x/007.json", None, ""), ("x/007.png", tarfile.SYMTYPE, "004.png")):
            if kind is None:
                add(tar, name, plain if name.endswith("json") else picture)
                continue
            link = tarfile.TarInfo(name)
            link.type, link.linkname = kind, target
            tar.addfile(link)
    with tarfile.open(out / "again.tar", "w") as tar:
        for name, data, kind, target in (("a.txt", b"old", None, ""), ("first.txt", b"", tarfile.LNKTYPE, "a.txt"), ("a.txt", b"new", None, ""),
                                         ("second.txt", b"", tarfile.LNKTYPE, "a.txt"), ("soft.txt", b"", tarfile.SYMTYPE, "a.txt")):
            if kind is None:
                add(tar, name, data)
                continue
            link = tarfile.TarInfo(name)
            link.type, link.linkname = kind, target
            tar.addfile(link)
    # What macOS writes beside each member, and a hidden file.
    with tarfile.open(out / "hidden.tar", "w") as tar:
        add(tar, ".DS_Store", b"x")
        for key in ("x/000", "x/001"):
            for ending in ("jpg", "json"):
                add(tar, f"x/._{key[2:]}.{ending}", b"x")
                add(tar, f"{key}.{ending}", picture if ending == "jpg" else plain)
    # Members that a record may be about and that are not read, and some that are none of its business.
    with tarfile.open(out / "unread.tar", "w") as tar:
        for number, (ending, data) in enumerate((
                ("img", picture), ("dat", b"RIFF\x10\0\0\0WAVEfmt "), ("bin", b"\0\0\0\x18ftypmp42\0\0\0\0"), ("photo", b"\0\0\0\x1cftypavif\0\0\0\0"),
                ("heic", b"x"), ("wav", b"x"), ("depth.npy", b"x"), ("txt", b"BMW is on the wide road"), ("cls", b"7"), ("mp4.txt", b"sad free text"), ("md5", b"\x93\1\2"))):
            add(tar, f"{number:03}.{ending}", data)
            add(tar, f"{number:03}.json", plain)
        add(tar, "011.json", json.dumps({"image": "011.png", "conversations": turns("<image>What?")}).encode())
        add(tar, "011.npy", b"x")
        add(tar, "011.png", picture)
    with tarfile.open(out / "small.tar.gz", "w:gz") as tar:
        add(tar, "a.png", picture)
    (out / "picture.png").write_bytes(picture)


main()
