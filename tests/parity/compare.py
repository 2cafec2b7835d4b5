"""The tolerances of the parity runs, and nothing looser. Every check returns the worst deviation found and complaints."""

import json
from dataclasses import dataclass, field
from pathlib import Path

import torch
from safetensors.torch import load_file

from reference import component

LOSS = 1e-5        # relative
GRADIENT = 1e-4    # of the tensor's largest element
CHANGE = 1e-3      # weight change w5 - w0, of the tensor's largest change
ROWS = 1e-4        # of the largest element of a sample's vision rows
NORM = 1e-4        # relative


@dataclass
class Verdict:
    worst: dict = field(default_factory=dict)      # check -> deviation
    complaints: list = field(default_factory=list)

    def note(self, check, deviation, limit, what):
        self.worst[check] = max(self.worst.get(check, 0.0), deviation)
        if not deviation <= limit:
            self.complaints.append(f"{check}: {what} deviates by {deviation:.2e}, limit {limit:.0e}")

    def require(self, good, what):
        if not good:
            self.complaints.append(what)


def relative(a, b):
    return abs(a - b) / max(abs(b), 1e-30)


def of_largest(got, want):
    """Largest deviation as a part of the largest element that is wanted; an all-zero tensor must be met exactly."""
    want, got = want.double(), got.double()
    if want.numel() == 0:
        return 0.0
    deviation, largest = (got - want).abs().max().item(), want.abs().max().item()
    return deviation / largest if largest > 0 else (0.0 if deviation == 0 else float("inf"))


def compare_tensors(verdict, check, got, want, limit):
    verdict.require(set(got) == set(want), f"{check}: missing {sorted(set(want) - set(got))[:3]}, unexpected {sorted(set(got) - set(want))[:3]}")
    for name in sorted(set(got) & set(want)):
        if tuple(got[name].shape) != tuple(want[name].shape):
            verdict.complaints.append(f"{check}: {name} has shape {tuple(got[name].shape)}, wanted {tuple(want[name].shape)}")
            continue
        verdict.note(check, of_largest(got[name], want[name]), limit, name)


def compare_changes(verdict, got, reference, training):
    """`got` weights after the last step. Frozen tensors must not have moved at all."""
    before, after = reference.before, reference.after
    verdict.require(set(got) == set(after), f"weights: names differ: {sorted(set(got) ^ set(after))[:4]}")
    for name in sorted(set(got) & set(after)):
        if component(name) in training.frozen:
            verdict.require(torch.equal(got[name], before[name].to(got[name].dtype)), f"weights: frozen {name} has changed")
            continue
        start = before[name].double()
        verdict.note("change", of_largest(got[name].double() - start, after[name].double() - start), CHANGE, name)


def compare_curves(verdict, lines, reference):
    """`lines`: the training lines of metrics.jsonl in order."""
    verdict.require([x["step"] for x in lines] == list(range(1, len(reference.losses) + 1)), f"metrics: steps {[x.get('step') for x in lines]}")
    for i, (line, loss, norm) in enumerate(zip(lines, reference.losses, reference.norms), 1):
        verdict.note("loss", relative(line["loss"], loss), LOSS, f"step {i} ({line['loss']:.8f}, wanted {loss:.8f})")
        verdict.note("norm", relative(line["grad_norm"], norm), NORM, f"step {i} ({line['grad_norm']:.8f}, wanted {norm:.8f})")
        verdict.require(line["supervised_tokens"] == reference.supervised[i - 1],
                        f"metrics: step {i} counts {line['supervised_tokens']} supervised tokens, wanted {reference.supervised[i - 1]}")
        verdict.require(line["vision_rows"] == reference.vision_rows[i - 1],
                        f"metrics: step {i} counts {line['vision_rows']} vision rows, wanted {reference.vision_rows[i - 1]}")


def compare_rows(verdict, got, reference):
    """Samples without pictures may be left out or have zero rows."""
    got = {name: rows for name, rows in got.items() if rows.numel()}
    compare_tensors(verdict, "rows", got, {name: rows for name, rows in reference.rows.items() if rows.numel()}, ROWS)


def compare_samples(verdict, listed, reference):
    """Sums of token losses by record, in the order of the batch; a record without supervised tokens has loss zero."""
    verdict.require([x["id"] for x in listed] == [id for id, _ in reference.sample_losses], f"samples: ids {[x.get('id') for x in listed]}")
    for entry, (name, loss) in zip(listed, reference.sample_losses):
        verdict.note("loss", relative(entry["loss"], loss), LOSS, f"{name} ({entry['loss']:.8f}, wanted {loss:.8f})")


def training_lines(run):
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [line for line in lines if "loss" in line]


def load_weights(folder):
    out = {}
    for part in sorted(Path(folder).glob("*.safetensors")):
        out.update(load_file(part))
    return out


def judge_run(run, reference, training):
    verdict = Verdict()
    compare_curves(verdict, training_lines(run), reference)
    compare_tensors(verdict, "gradient", load_file(run / "debug" / "step-1.gradients.safetensors"), reference.gradients, GRADIENT)
    compare_rows(verdict, load_file(run / "debug" / "step-1.vision_rows.safetensors"), reference)
    compare_samples(verdict, json.loads((run / "debug" / "step-1.samples.json").read_text()), reference)
    compare_changes(verdict, load_weights(run / "export"), reference, training)
    return verdict


def judge_repeat(first, second):
    """Two runs of one layout must agree in every bit: losses, gradients, weights."""
    verdict = Verdict()
    a, b = training_lines(first), training_lines(second)
    verdict.require([(x["loss"], x["grad_norm"]) for x in a] == [(x["loss"], x["grad_norm"]) for x in b], "repeat: losses or norms differ")
    for what, folder in (("gradients", "debug"), ("weights", "export")):
        x, y = load_weights(first / folder), load_weights(second / folder)
        different = [name for name in x if name not in y or not torch.equal(x[name], y[name])]
        verdict.require(set(x) == set(y) and not different, f"repeat: {what} differ in {different[:3]}")
    return verdict
