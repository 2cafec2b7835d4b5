"""Draws one step of a merged trace (`troupe trace RUN`) as SVG, for docs/trace.md.

Usage: draw_trace.py TRACE.json OUT.svg [STEP]
"""
import json
import sys

WIDTH, ROW, LEFT = 900, 34, 90
COLOURS = {"encoder": "#7aa6d8", "decoder": "#9cc98f", "update": "#d9b36c", "zero": "#d9b36c", "norm": "#d9b36c", "pack": "#b8a2d0",
           "place": "#b8a2d0", "peer": "#e7e7e7"}


def main():
    trace, out = json.load(open(sys.argv[1])), sys.argv[2]
    events = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "thread_name"}
    step = int(sys.argv[3]) if len(sys.argv) > 3 else min(e["args"]["step"] for e in events)
    events = [e for e in events if e["args"]["step"] == step]
    begin, end = min(e["ts"] for e in events), max(e["ts"] + e["dur"] for e in events)
    x = lambda t: LEFT + (t - begin) / (end - begin) * (WIDTH - LEFT - 10)
    rows = [key for key, name in sorted(names.items()) if name != "host" and any((e["pid"], e["tid"]) == key for e in events)]
    top = {key: 10 + i * ROW for i, key in enumerate(rows)}
    parts = [f'<text x="4" y="{top[key] + 20}">{names[key]}</text><line x1="{LEFT}" x2="{WIDTH - 10}" y1="{top[key] + 29}" y2="{top[key] + 29}" stroke="#ccc"/>'
             for key in rows]
    for e in events:
        key, kind = (e["pid"], e["tid"]), e["cat"]
        if key not in top or kind not in ("kernel", "peer"):
            continue
        word = e["name"].split()[0]
        width = x(e["ts"] + e["dur"]) - x(e["ts"])
        if width < 0.4:
            continue
        colour = COLOURS["peer"] if kind == "peer" else COLOURS.get(word, "#bbb")
        y = top[key] + 4
        parts.append(f'<rect x="{x(e["ts"]):.1f}" y="{y}" width="{width:.1f}" height="24" fill="{colour}" stroke="#555" stroke-width="0.5"/>')
        inside = [i for i in events if i["cat"] == "instruction" and (i["pid"], i["tid"]) == key and i["ts"] <= e["ts"] and i["ts"] + i["dur"] >= e["ts"] + e["dur"]]
        if width > 22 and inside and kind == "kernel" and "unit" in e["args"]:
            letter = {"forward": "F", "backward": "B"}.get(inside[0]["name"].split()[0], "")
            parts.append(f'<text x="{x(e["ts"]) + width / 2:.1f}" y="{y + 16}" text-anchor="middle">{letter}{e["args"]["unit"]}</text>')
        elif width > 34:
            parts.append(f'<text x="{x(e["ts"]) + width / 2:.1f}" y="{y + 16}" text-anchor="middle" fill="#555">{"wait" if kind == "peer" else word}</text>')
    height = 10 + ROW * len(rows) + 22
    parts.append(f'<text x="{LEFT}" y="{height - 6}" fill="#555">0 ms</text><text x="{WIDTH - 10}" y="{height - 6}" text-anchor="end" fill="#555">{(end - begin) / 1000:.0f} ms</text>')
    with open(out, "w") as file:
        file.write(f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" font-family="sans-serif" font-size="12">\n'
                   f'<rect width="{WIDTH}" height="{height}" fill="white"/>\n' + "\n".join(parts) + "\n</svg>\n")


main()
