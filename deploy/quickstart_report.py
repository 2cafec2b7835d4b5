"""What the quickstart shows, from its run folders. Exit code 1 when a promise of the README is not kept.

Usage: quickstart_report.py FOLDER TRAINING_SECONDS
"""
import json
import pathlib
import sys


def lines(run):
    rows = [json.loads(line) for line in open(run / "metrics.jsonl")]
    return [row for row in rows if "loss" in row]


def last_evaluation(run):
    return [row for row in map(json.loads, open(run / "metrics.jsonl")) if "eval_loss" in row][-1]


def main():
    folder, seconds = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    steps = lines(folder / "colocated")
    tail = sum(row["loss"] for row in steps[-10:]) / len(steps[-10:])
    seen, shuffled = (json.load(open(folder / name)) for name in ("eval.json", "eval-shuffled.json"))
    a, b = lines(folder / "colocated-50"), lines(folder / "disjoint-50")
    print("\n  step   colocated     disjoint      difference")
    worst = 0.0
    for x, y in zip(a, b):
        difference = abs(x["loss"] - y["loss"]) / abs(x["loss"])
        worst = max(worst, difference)
        if x["step"] == 1 or x["step"] % 10 == 0:
            print(f"  {x['step']:4d}   {x['loss']:.8f}    {y['loss']:.8f}    {difference:.1e}")
    trained = last_evaluation(folder / "colocated")
    exported_alike = trained["step"] == steps[-1]["step"] and all(
        abs(seen[key] - trained[key]) <= 1e-6 * abs(trained[key]) for key in ("eval_loss", "eval_accuracy", "eval_exact", "eval_samples", "eval_tokens"))
    moved = [(row["wire_rows"] + row["in_process_rows"]) / max(1, row["vision_rows"]) for row in b]
    checks = [
        (steps[-1]["step"] > 0 and tail < steps[0]["loss"] / 3, f"loss: {steps[0]['loss']:.3f} at the first step, {tail:.3f} over the last ten (below a third)"),
        (seen["eval_exact"] >= shuffled["eval_exact"] + 0.30,
         f"exact answers to held-out questions: {100 * seen['eval_exact']:.1f} %, with shuffled pictures {100 * shuffled['eval_exact']:.1f} % (at least 30 points apart)"),
        (exported_alike, f"the exported folder is evaluated as the trained model was: loss {seen['eval_loss']:.8f} and {trained['eval_loss']:.8f} (1e-6), the same answers"),
        (len(a) == len(b) == 50 and worst <= 1e-5, f"colocated 2:2 and disjoint 3:2: losses of {len(a)} steps differ by at most {worst:.1e} (1e-5)"),
        (all(abs(m - 1) < 1e-9 for m in moved), f"boundary: {sum(moved) / len(moved):.2f}x the encoder's rows sent, {sum(r['wire_rows'] for r in b)} of them between processes (1.00x)"),
    ]
    print(f"\nTraining took {seconds} s.")
    for kept, text in checks:
        print(("  ok    " if kept else "  FAIL  ") + text)
    print(f"Files: {folder}/colocated (job.yaml, metrics.jsonl, events.jsonl, logs/, export/)")
    return 0 if all(kept for kept, _ in checks) else 1


if __name__ == "__main__":
    sys.exit(main())
