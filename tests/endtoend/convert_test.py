"""Training configurations as LLaMA-Factory and ms-swift document them, through `troupe convert`, `troupe check` and a few steps: the same losses as
those of a spec written by hand.

Usage: convert_test.py --troupe BUILD/bin/troupe [-k WORD]
"""
import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHAPES = ROOT / "examples" / "shapes"
TROUPE = None
STEPS, RECORDS = 3, 16

# What both configurations below ask for; LLaMA-Factory's and ms-swift's own values are filled in.
BY_HAND = """name: by-hand
device: cpu
model: {{path: {model}, init: pretrained, dtype: fp32}}
components: {{vision: {{train: true, lr: {vision_lr}}}, merger: {{train: false}}, text: {{train: true}}}}
data:
  sources: [{source}]
  max_sample_tokens: 1024
  max_pixels: 50176
  min_pixels: 3136
training:
  steps: 3
  global_batch: 4
  microbatch: {{samples: {unit}}}
  optimizer: {{lr: 1.0e-3, betas: [0.9, {beta}], weight_decay: {decay}}}
  schedule: {{type: cosine, warmup_ratio: 0.4}}
  seed: 42
checkpoint: {{export: never}}
"""

FACTORY = """### model
model_name_or_path: tiny
image_max_pixels: 50176
trust_remote_code: true

### method
stage: sft
do_train: true
finetuning_type: {tuner}
freeze_vision_tower: false
freeze_multi_modal_projector: true
freeze_language_model: false
deepspeed: examples/deepspeed/ds_z3_config.json

### dataset
dataset: mllm_demo
template: qwen2_vl
cutoff_len: 1024
max_samples: 1000
overwrite_cache: true
preprocessing_num_workers: 16

### output
output_dir: saves/tiny/full/sft
logging_steps: 1
save_steps: 500
plot_loss: true
report_to: none  # choices: [none, wandb, tensorboard]

### train
per_device_train_batch_size: 2
gradient_accumulation_steps: 2
learning_rate: 1.0e-3
num_train_epochs: 3.0
max_steps: 3
lr_scheduler_type: cosine
warmup_ratio: 0.4
bf16: false
use_cpu: true
ddp_timeout: 180000000
resume_from_checkpoint: null
"""

SWIFT = """# a CPU
nproc_per_node=2

NPROC_PER_NODE=$nproc_per_node \\
MAX_PIXELS=50176 \\
swift sft \\
    --model tiny \\
    --dataset 'sft.jsonl#16' \\
    --tuner_type full \\
    --torch_dtype float32 \\
    --fp16 false \\
    --bf16 false \\
    --max_steps 3 \\
    --per_device_train_batch_size 1 \\
    --gradient_accumulation_steps $(expr 4 / $nproc_per_node) \\
    --learning_rate 1e-3 \\
    --vit_lr 1e-4 \\
    --freeze_vit false \\
    --freeze_aligner true \\
    --lr_scheduler_type cosine \\
    --warmup_ratio 0.4 \\
    --max_length 1024 \\
    --save_steps 50 \\
    --save_total_limit 2 \\
    --logging_steps 1 \\
    --output_dir output \\
    --dataloader_num_workers 4 2>&1 | tee train.log
"""


def conversations():
    """Turns as (role, text) and pictures, with and without."""
    pictures = sorted(f"train/{p.name}" for p in (SHAPES / "images" / "train").iterdir())
    for number in range(RECORDS):
        if number % 4 == 3:
            yield [("user", "What colour has grass?"), ("assistant", "green")], []
        else:
            yield [("user", "<image>What is shown?"), ("assistant", f"shape {number}")], [pictures[number]]


class Convert(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """A model folder with weights: what training from random ones exports."""
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="troupe-convert-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        (cls.folder / "seed.yaml").write_text(f"model: {{path: {SHAPES}/model, init: random, dtype: fp32}}\ndevice: cpu\n"
                                              "data: {synthetic: {images: 1, pixels: 56x56, text_tokens: 32}}\ntraining: {steps: 1}\n")
        run(cls, "run", "seed.yaml", "--run-dir", "seed")
        (cls.folder / "seed" / "export").rename(cls.folder / "tiny")
        (cls.folder / "images").symlink_to(SHAPES / "images")
        (cls.folder / "data").mkdir()
        records = [{"messages": [{"role": role, "content": text} for role, text in turns], "images": [f"../images/{name}" for name in pictures]}
                   for turns, pictures in conversations()]
        (cls.folder / "data" / "mllm_demo.json").write_text(json.dumps(records))
        (cls.folder / "data" / "dataset_info.json").write_text(json.dumps({"mllm_demo": {
            "file_name": "mllm_demo.json", "formatting": "sharegpt", "columns": {"messages": "messages", "images": "images"},
            "tags": {"role_tag": "role", "content_tag": "content", "user_tag": "user", "assistant_tag": "assistant"}}}))
        lines = [{"messages": [{"role": role, "content": text} for role, text in turns], **({"images": [f"images/{n}" for n in pictures]} if pictures else {})}
                 for turns, pictures in conversations()]
        (cls.folder / "sft.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        (cls.folder / "jobs").mkdir()

    def train(self, job):
        """The metrics of each step, after every record was found good."""
        report = json.loads(run(self, "check", job, "--json").stdout)
        self.assertEqual((report["bad"], report["records"]), (0, RECORDS), report)
        run(self, "run", job, "--run-dir", f"run-{pathlib.Path(job).stem}", "--set", "checkpoint.export=never", "--set", "device=cpu")
        metrics = (self.folder / f"run-{pathlib.Path(job).stem}" / "metrics.jsonl").read_text().splitlines()
        self.assertEqual(len(metrics), STEPS)
        return [json.loads(line) for line in metrics]

    def by_hand(self, name, **values):
        (self.folder / "jobs" / name).write_text(BY_HAND.format(model=self.folder / "tiny", **values))
        return self.train(f"jobs/{name}")

    def assert_same(self, converted, written):
        for key in ("loss", "grad_norm", "lr", "supervised_tokens", "images"):
            self.assertEqual([m[key] for m in converted], [m[key] for m in written], key)

    def test_a_configuration_of_llama_factory_trains_as_a_spec_by_hand(self):
        (self.folder / "factory.yaml").write_text(FACTORY.format(tuner="full"))
        said = run(self, "convert", "factory.yaml", "-o", "jobs/factory.yaml").stderr
        for line in ("factory.yaml:13: deepspeed: not needed: ", "factory.yaml:27: plot_loss: no counterpart: "):
            self.assertIn("dropped: " + line, said)
        self.assertIn("one is assumed; --devices N says it", said)
        written = self.by_hand("factory-by-hand.yaml", source=f"{{path: {self.folder}/data/mllm_demo.json}}", vision_lr="1.0e-3", beta=0.999, decay=0, unit=2)
        self.assert_same(self.train("jobs/factory.yaml"), written)

    def test_a_script_of_ms_swift_trains_as_a_spec_by_hand(self):
        (self.folder / "sft.sh").write_text(SWIFT)
        answer = json.loads(run(self, "convert", "sft.sh", "-o", "jobs/swift.yaml", "--json").stdout)
        self.assertEqual((answer["tool"], answer["unknown"]), ("ms-swift", []))
        becomes = {key["key"]: key["becomes"] for key in answer["carried"]}
        self.assertIn("training.global_batch: 4", becomes["NPROC_PER_NODE"])
        self.assertEqual(becomes["vit_lr"], "components.vision.lr: 1e-04")
        self.assertEqual({key["key"] for key in answer["dropped"]}, {"tuner_type", "output_dir", "dataloader_num_workers"})
        written = self.by_hand("swift-by-hand.yaml", source=f"{{path: {self.folder}/sft.jsonl, image_root: {self.folder}}}", vision_lr="1.0e-4", beta=0.95, decay=0.1, unit=1)
        converted = self.train("jobs/swift.yaml")
        for key in ("lr", "supervised_tokens", "images"):
            self.assertEqual([m[key] for m in converted], [m[key] for m in written], key)
        for mine, theirs in zip(converted, written):  # two replicas beside one rank
            self.assertLess(abs(mine["loss"] - theirs["loss"]) / theirs["loss"], 1e-5)

    def test_adapters_are_refused_and_nothing_is_written(self):
        (self.folder / "lora.yaml").write_text(FACTORY.format(tuner="lora"))
        done = run(self, "convert", "lora.yaml", "-o", "jobs/lora.yaml", code=2)
        self.assertIn("lora.yaml:9: key 'finetuning_type': value 'lora' is not built", done.stderr)
        self.assertFalse((self.folder / "jobs" / "lora.yaml").exists())
        said = run(self, "convert", "lora.yaml", "--full", "-o", "jobs/lora.yaml").stderr
        self.assertIn("became training of all weights", said)
        done = run(self, "convert", "lora.yaml", "--full", "-o", "jobs/lora.yaml", code=2)
        self.assertIn("is there already; valid: another file, or --force", done.stderr)
        run(self, "convert", "lora.yaml", "--full", "-o", "jobs/lora.yaml", "--force")

    def test_without_an_output_the_spec_goes_to_standard_output_and_plans(self):
        (self.folder / "printed.yaml").write_text(FACTORY.format(tuner="full"))
        done = run(self, "convert", "printed.yaml", "--devices", "2")
        (self.folder / "elsewhere").mkdir()
        (self.folder / "elsewhere" / "job.yaml").write_text(done.stdout)
        self.assertIn("8 samples a step", run(self, "plan", "elsewhere/job.yaml").stdout)
        run(self, "convert", "../printed.yaml", "--working-dir", "..", "-o", "here.yaml", below="elsewhere")
        self.assertIn('path: "../tiny"', (self.folder / "elsewhere" / "here.yaml").read_text())
        self.assertIn("4 samples a step", run(self, "plan", "elsewhere/here.yaml").stdout)


def run(case, *arguments, code=0, below="."):
    done = subprocess.run([TROUPE, *map(str, arguments)], cwd=case.folder / below, capture_output=True, text=True, timeout=240)
    if done.returncode != code:
        raise AssertionError(f"{arguments}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--troupe", required=True)
    options, rest = parser.parse_known_args()
    TROUPE = str(pathlib.Path(options.troupe).resolve())
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
