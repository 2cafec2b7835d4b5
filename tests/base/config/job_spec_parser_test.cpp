#include "base/config/job_spec_parser.h"

#include <catch2/catch.hpp>

using namespace troupe;

namespace {
const char* kSketch = R"(name: llava-3b
model: {path: models/Qwen2.5-VL-3B-Instruct, init: pretrained, dtype: bf16}
components:
  vision: {train: true, lr: 2.0e-6}
  merger: {train: true, lr: 1.0e-5}
  text:   {train: true}
groups:
  vision: {mesh: {sp: 4}, zero: 1, recompute: none}
  text:   {mesh: {tp: 4}, tp_sequence: true}
placement: colocated
data:
  sources: [{path: data/train.jsonl, image_root: data/images, take: 1.0}]
  max_sample_tokens: 8192
  pack_tokens: 8192
  min_pixels: 4*28*28
  max_pixels: 1280*28*28
  supervise: all
  workers: auto
  on_bad_record: fail
eval: {split: 0.01, every: 100}
training:
  steps: 1000
  global_batch: 64
  microbatch: {samples: 1}
  optimizer: {lr: 1.0e-5, betas: [0.9, 0.95], weight_decay: 0.1, clip: 1.0}
  schedule: {type: cosine, warmup_ratio: 0.03, min_ratio: 0.1}
  seed: 1
checkpoint: {every: 200, keep: 3, export: end}
logging: {every: 1, tensorboard: false}
debug: {dump: {steps: [1], gradients: true, vision_rows: true}}
)";
}

TEST_CASE("a spec as a person writes it is read") {
  const auto spec = parse_job_spec(kSketch, "/jobs/a.yaml");
  if (!spec.ok()) FAIL(spec.error().message);
  CHECK(spec->model.path == "/jobs/models/Qwen2.5-VL-3B-Instruct");
  CHECK(spec->data.sources[0].image_root == "/jobs/data/images");
  CHECK(*spec->data.max_pixels == 1280 * 28 * 28);
  CHECK(*spec->components.at("vision").lr == 2e-6);
  CHECK_FALSE(spec->components.at("text").lr.has_value());
  CHECK(spec->groups[0].components == std::vector<std::string>{"vision", "merger"});
  CHECK(spec->groups[1].mesh.size(Axis::kTp) == 4);
  CHECK(spec->groups[1].tp_sequence);
  CHECK(spec->debug.steps == std::vector<int64_t>{1});
  const std::string written = job_spec_to_yaml(*spec);
  INFO(written);
  const auto again = parse_job_spec(written, "/elsewhere/job.yaml");
  if (!again.ok()) FAIL(again.error().message);
  CHECK(job_spec_to_yaml(*again) == written);
}
