"""Shows that the checks can fail and that they are fair, without Troupe: transformers in float64, with padding, and with planted mistakes.

Usage: python3 selftest.py
"""

import dataclasses
import sys
import tempfile
from pathlib import Path

import torch

import compare
import reference
from model import ModelVariant, make_model, make_records


def verdict_of(got, want, training):
    """Judges one reference against another, with the checks that a run of Troupe meets."""
    verdict = compare.Verdict()
    lines = [dict(step=i + 1, loss=loss, grad_norm=norm, supervised_tokens=n, vision_rows=rows)
             for i, (loss, norm, n, rows) in enumerate(zip(got.losses, got.norms, got.supervised, got.vision_rows))]
    compare.compare_curves(verdict, lines, want)
    compare.compare_tensors(verdict, "gradient", got.gradients, want.gradients, compare.GRADIENT)
    compare.compare_rows(verdict, got.rows, want)
    compare.compare_changes(verdict, {k: v.float() for k, v in got.after.items()}, want, training)
    return verdict


def main():
    torch.set_num_threads(1)
    failures = 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        make_model(ModelVariant(), folder / "model")
        make_records(folder)
        run = lambda training, **more: reference.run_reference(folder / "model", folder / "records.jsonl", folder / "images", training, **more)
        plain = reference.Training()
        want = run(plain)
        on_disk = reference.names_on_disk(folder / "model")
        expect = [("float64 agrees", run(plain, dtype=torch.float64), True),
                  ("without clipping is seen", run(dataclasses.replace(plain, clip=0)), False),
                  ("without decay is seen", run(dataclasses.replace(plain, weight_decay=0)), False),
                  ("another rate for the merger is seen", run(dataclasses.replace(plain, rates=(("merger", 9.9e-4),))), False),
                  ("a frozen merger is seen", run(dataclasses.replace(plain, frozen=("merger",))), False)]
        decay_all = reference.optimizer_of
        reference.optimizer_of = lambda p, t: torch.optim.AdamW([x for x in p.values()], lr=t.lr, weight_decay=t.weight_decay, betas=t.betas, eps=t.eps)
        expect.append(("decay of norms and biases is seen", run(plain), False))
        reference.optimizer_of = decay_all
        if set(want.after) != on_disk:
            failures += 1
            print("names in memory do not map to the names on disk:", sorted(set(want.after) ^ on_disk)[:5])
        for what, got, should_pass in expect:
            verdict = verdict_of(got, want, plain)
            good = (not verdict.complaints) == should_pass
            failures += not good
            shown = "  ".join(f"{k} {v:.1e}" for k, v in verdict.worst.items())
            print(f"{'ok  ' if good else 'FAIL'} {what:40s} {shown}")
            if not good:
                print("     " + "\n     ".join(verdict.complaints[:5] or ["no complaint was made"]))
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
