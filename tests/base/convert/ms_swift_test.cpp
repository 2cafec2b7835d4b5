#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/base/convert/converted.h"

namespace troupe::convert {
namespace {

/// The least that ms-swift trains in full; `more` is added.
std::string config(const std::string& more = "") {
  return "model: model\ntuner_type: full\ntorch_dtype: bfloat16\ndataset: train.jsonl\n" + more;
}

}  // namespace

TEST_CASE("What ms-swift takes silently is written out") {
  const ToolFolder folder;
  REQUIRE(folder.has_weights());
  const auto spec = folder.spec(config());
  REQUIRE(spec.ok());
  CHECK(spec->model.dtype == DType::kBf16);
  CHECK_FALSE(spec->components.at("vision").train);
  CHECK_FALSE(spec->components.at("merger").train);
  CHECK(spec->components.at("text").train);
  CHECK(spec->training.global_batch == 16);
  CHECK(spec->training.microbatch_samples == 1);
  CHECK(spec->training.epochs == 3.0);
  CHECK(spec->training.seed == 42);
  CHECK(spec->training.optimizer.lr == 1e-5);
  CHECK(spec->training.optimizer.betas == std::array<double, 2>{0.9, 0.95});
  CHECK(spec->training.optimizer.weight_decay == 0.1);
  CHECK(spec->training.schedule.type == ScheduleKind::kCosine);
  CHECK(spec->data.max_sample_tokens == 4096);  // of config.json
  CHECK(spec->data.too_long == TooLong::kSkip);
  CHECK(spec->data.on_bad_record == OnBadRecord::kSkip);
  CHECK(spec->data.max_pixels == 16384 * 28 * 28);
  CHECK(spec->data.min_pixels == 4 * 28 * 28);
  CHECK(spec->data.sources[0].path == folder.path("train.jsonl"));
  CHECK(spec->data.sources[0].image_root + "/" == folder.path(""));
  CHECK(spec->eval.split == 0);
}

TEST_CASE("A script of ms-swift becomes a spec") {
  const ToolFolder folder;
  const auto spec = folder.spec(
      "nproc_per_node=2\nCUDA_VISIBLE_DEVICES=0,1 \\\nNPROC_PER_NODE=$nproc_per_node \\\nMAX_PIXELS=1003520 \\\n"
      "swift sft \\\n    --model model \\\n    --train_type full \\\n    --dataset 'train.jsonl#200' train.jsonl \\\n"
      "    --torch_dtype bfloat16 \\\n    --num_train_epochs 1 \\\n    --per_device_train_batch_size 2 \\\n"
      "    --learning_rate 1e-4 \\\n    --vit_lr 2e-6 \\\n    --aligner_lr 1e-5 \\\n    --freeze_vit false \\\n"
      "    --freeze_aligner false \\\n    --gradient_accumulation_steps $(expr 16 / $nproc_per_node) \\\n"
      "    --split_dataset_ratio 0.01 \\\n    --eval_steps 50 \\\n    --save_steps 60 \\\n    --max_length 2048 \\\n"
      "    --truncation_strategy right \\\n    --loss_scale last_round \\\n    --warmup_ratio 0.05 \\\n"
      "    --deepspeed zero2 2>&1 | tee log\n",
      "sft.sh");
  REQUIRE(spec.ok());
  CHECK(spec->training.global_batch == 32);
  CHECK(spec->training.microbatch_samples == 2);
  CHECK(spec->group_of_component("text")->mesh.size(Axis::kDp) == 2);
  CHECK(spec->group_of_component("vision")->mesh.size(Axis::kDp) == 2);
  CHECK(spec->data.max_pixels == 1'003'520);
  CHECK(spec->components.at("vision").train);
  CHECK(spec->components.at("vision").lr == 2e-6);
  CHECK(spec->components.at("merger").lr == 1e-5);
  CHECK_FALSE(spec->components.at("text").lr.has_value());
  REQUIRE(spec->data.sources.size() == 2);
  CHECK(spec->data.sources[0].take_records == 200);
  CHECK(spec->data.sources[1].take_records == -1);
  CHECK(spec->data.max_sample_tokens == 2048);
  CHECK(spec->data.too_long == TooLong::kTruncateText);
  CHECK(spec->data.supervise == Supervise::kLast);
  CHECK(spec->eval.split == 0.01);
  CHECK(spec->eval.every == 50);
  CHECK(spec->checkpoint.every == 60);
}

TEST_CASE("The dtype is that of the model's config.json, which means fp16 where it is fp32") {
  const ToolFolder folder;
  const std::string text = "model: model\ntuner_type: full\ndataset: train.jsonl\n";
  CHECK(folder.complaint(text) ==
        "foreign.yaml: key 'torch_dtype': 'float32', which config.json gives, trains in fp16 there; there is no fp16; "
        "valid: torch_dtype: bfloat16, or float32 with fp16: false and bf16: false");
  CHECK(folder.spec(text + "fp16: false\nbf16: false\n")->model.dtype == DType::kFp32);
  CHECK(folder.spec(text + "bf16: true\n")->model.dtype == DType::kBf16);
  CHECK(folder.spec(config("bf16: false\n"))->model.dtype == DType::kBf16Pure);
  CHECK(folder.complaint(config("fp16: true\n")).find(":5: key 'fp16': value 'true': there is no fp16") !=
        std::string::npos);
  CHECK(folder.complaint(text + "torch_dtype: float16\n").find("'float16' trains in fp16") != std::string::npos);
  const auto remarked = folder.convert(config());
  REQUIRE(remarked->remarks.size() == 2);
  CHECK(remarked->remarks[0].text.find("--set model.dtype=bf16-pure") != std::string::npos);
  CHECK(folder.convert(config("deepspeed: zero2\n"))->remarks.size() == 1);
}

TEST_CASE("Pixel limits come from the environment, the key and model_kwargs; the smaller largest counts") {
  const ToolFolder folder;
  CHECK(folder.spec(config("max_pixels: 200704\n"))->data.max_pixels == 200'704);
  CHECK(folder.spec(config("max_pixels: 200704\nMAX_PIXELS: 100352\nMIN_PIXELS: 50176\n"))->data.max_pixels == 100'352);
  const auto spec = folder.spec(config("model_kwargs: '{\"max_pixels\": 100352, \"min_pixels\": 6272, \"fps\": 2}'\n"));
  REQUIRE(spec.ok());
  CHECK(spec->data.max_pixels == 100'352);
  CHECK(spec->data.min_pixels == 6272);
  CHECK(spec->data.video.fps == 2);
  CHECK(folder.complaint(config("model_kwargs: {max_ratio: 3}\n")).find(":5: key 'model_kwargs'") != std::string::npos);
}

TEST_CASE("Settings of videos come from the environment and model_kwargs, else from qwen_vl_utils") {
  const ToolFolder folder;
  const auto plain = folder.spec(config(""));
  REQUIRE(plain.ok());
  CHECK(plain->data.video.fps == 2);
  CHECK(plain->data.video.min_frames == 4);
  CHECK(plain->data.video.max_frames == 768);
  CHECK(plain->data.video.min_pixels == 128 * 28 * 28);
  CHECK(plain->data.video.max_pixels == 768 * 28 * 28);
  const auto set = folder.spec(
      config("FPS: 0.5\nFPS_MAX_FRAMES: 12\nmodel_kwargs: {fps_min_frames: 2, VIDEO_MAX_PIXELS: 200704}\n"));
  REQUIRE(set.ok());
  CHECK(set->data.video.fps == 0.5);
  CHECK(set->data.video.min_frames == 2);
  CHECK(set->data.video.max_frames == 12);
  CHECK(set->data.video.max_pixels == 200'704);
  CHECK(folder.complaint(config("model_kwargs: {fps: many}\n")).find("'fps' is 'many'; valid: a number") !=
        std::string::npos);
  CHECK(folder.complaint(config("FPS_MAX_FRAMES: 0\n")).find("key 'FPS_MAX_FRAMES'") != std::string::npos);
  const auto total = folder.convert(config("model_kwargs: {video_total_pixels: 9}\n"));
  REQUIRE(total.ok());
  CHECK(std::any_of(total->remarks.begin(), total->remarks.end(),
                    [](const auto& r) { return r.text.find("video_total_pixels: dropped") == 0; }));
}

TEST_CASE("Only files here are data sets, and folders, tables and hubs are refused by name") {
  const ToolFolder folder;
  const std::string text = folder.complaint(
      "model: model\ntuner_type: full\ntorch_dtype: bfloat16\ndataset:\n  - AI-ModelScope/LaTeX_OCR:small#2000\n"
      "  - gone.jsonl\n  - data\n  - a.csv\n");
  CHECK(text.find("foreign.yaml:5: key 'dataset': value 'AI-ModelScope/LaTeX_OCR:small#2000' is no file here") == 0);
  CHECK(text.find(":6: key 'dataset': value 'gone.jsonl' does not exist ('gone.jsonl')") != std::string::npos);
  CHECK(text.find(":7: key 'dataset': value 'data' is a folder") != std::string::npos);
  CHECK(text.find(":8: key 'dataset': value 'a.csv' is a .csv file, which is not read") != std::string::npos);
  CHECK(folder.complaint("model: model\ntuner_type: full\ntorch_dtype: bfloat16\n").find("key 'dataset': is missing") !=
        std::string::npos);
}

TEST_CASE("Columns, image folders and validation files carry over") {
  const ToolFolder folder;
  const auto spec = folder.spec(config(
      "columns: '{\"talk\": \"messages\", \"pics\": \"images\"}'\nROOT_IMAGE_DIR: data\nval_dataset: [train.jsonl]\n"
      "split_dataset_ratio: 0.5\nsave_steps: 30\ndataset_shuffle: false\ntrain_dataloader_shuffle: false\nstrict: "
      "true\n"));
  REQUIRE(spec.ok());
  CHECK(spec->data.sources[0].spelling.columns.at("turns") == "talk");
  CHECK(spec->data.sources[0].spelling.columns.at("images") == "pics");
  CHECK(spec->data.sources[0].image_root == folder.path("data"));
  CHECK(spec->eval.sources.size() == 1);
  CHECK(spec->eval.split == 0);
  CHECK(spec->eval.every == 30);
  CHECK_FALSE(spec->data.shuffle);
  CHECK(spec->data.on_bad_record == OnBadRecord::kFail);
  CHECK(folder.spec(config("dataset_shuffle: false\n"))->data.shuffle);
  CHECK(folder.complaint(config("columns: {talk: tools}\n"))
            .find("'tools' of 'talk' is not known; valid: messages, query") != std::string::npos);
}

TEST_CASE("Without evaluation ms-swift holds nothing out") {
  const ToolFolder folder;
  const auto spec = folder.spec(config("split_dataset_ratio: 0.1\neval_strategy: 'no'\n"));
  REQUIRE(spec.ok());
  CHECK(spec->eval.split == 0);
  CHECK(folder.spec(config("split_dataset_ratio: 0.1\n"))->eval.every == 500);
}

TEST_CASE("Ranks of one sequence count as one") {
  ToolFolder folder;
  folder.options.devices = 8;
  const auto spec = folder.spec(config("sequence_parallel_size: 4\ngradient_accumulation_steps: 3\n"));
  REQUIRE(spec.ok());
  CHECK(spec->training.global_batch == 6);
  CHECK(spec->group_of_component("text")->mesh.size(Axis::kDp) == 2);
  CHECK(folder.complaint(config("sequence_parallel_size: 3\n")).find("value '3' does not divide the 8 ranks") !=
        std::string::npos);
}

TEST_CASE("An adapter's missing rate is that of training all weights with --full") {
  ToolFolder folder;
  const std::string lora = "model: model\ntorch_dtype: bfloat16\ndataset: train.jsonl\n";
  CHECK(folder.complaint(lora).find("key 'tuner_type': is missing, which ms-swift takes as lora") != std::string::npos);
  CHECK(folder.complaint(lora + "train_type: dora\n").find(":4: key 'train_type': value 'dora'") != std::string::npos);
  folder.options.full = true;
  CHECK(folder.spec(lora)->training.optimizer.lr == 1e-5);
  CHECK(folder.spec(lora + "learning_rate: 1e-4\n")->training.optimizer.lr == 1e-4);
}

TEST_CASE("Forms, losses and truncations that are not built are refused") {
  const ToolFolder folder;
  for (const auto& [line, part] :
       {std::pair("loss_scale: react", "key 'loss_scale': value 'react' is not built"),
        std::pair("truncation_strategy: left", "value 'left' is not built; valid: delete, right"),
        std::pair("packing: true", "--global-batch SAMPLES"),
        std::pair("system: Be short.", "key 'system': value 'Be short.' is refused"),
        std::pair("template: llava", "key 'template': value 'llava' is refused"),
        std::pair("rlhf_type: dpo", "key 'rlhf_type': value 'dpo' is refused"),
        std::pair("freeze_parameters_ratio: 0.5", "value '0.5' is refused"),
        std::pair("task_type: seq_cls", "value 'seq_cls' is refused")}) {
    INFO(line);
    CHECK(folder.complaint(config(std::string(line) + "\n")).find(part) != std::string::npos);
  }
  CHECK(folder.complaint(config("template: qwen2_5_vl\nfreeze_parameters_ratio: 0\nadapters: []\n")) == "(accepted)");
}

}  // namespace troupe::convert
