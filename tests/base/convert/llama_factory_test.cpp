#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/base/convert/converted.h"

namespace troupe::convert {
namespace {

/// The least that LLaMA-Factory trains in full; `more` is added.
std::string config(const std::string& more = "") {
  return "model_name_or_path: model\nfinetuning_type: full\ndataset: chat\n" + more;
}

}  // namespace

TEST_CASE("What LLaMA-Factory takes silently is written out") {
  const ToolFolder folder;
  REQUIRE(folder.has_weights());
  const auto spec = folder.spec(config());
  REQUIRE(spec.ok());
  CHECK(spec->model.path == folder.path("model"));
  CHECK(spec->model.init == ModelInit::kPretrained);
  CHECK(spec->model.dtype == DType::kFp32);
  CHECK_FALSE(spec->components.at("vision").train);
  CHECK_FALSE(spec->components.at("merger").train);
  CHECK(spec->components.at("text").train);
  CHECK(spec->training.global_batch == 8);
  CHECK(spec->training.microbatch_samples == 8);
  CHECK(spec->training.epochs == 3.0);
  CHECK(spec->training.seed == 42);
  CHECK(spec->training.optimizer.lr == 5e-5);
  CHECK(spec->training.optimizer.betas == std::array<double, 2>{0.9, 0.999});
  CHECK(spec->training.optimizer.weight_decay == 0);
  CHECK(spec->training.optimizer.clip == 1);
  CHECK(spec->training.schedule.type == ScheduleKind::kLinear);
  CHECK(spec->training.schedule.warmup_ratio == 0);
  CHECK(spec->data.max_sample_tokens == 2048);
  CHECK(spec->data.too_long == TooLong::kTruncateText);
  CHECK(spec->data.max_pixels == 589'824);
  CHECK(spec->data.min_pixels == 3136);
  CHECK(spec->data.video.fps == 2);
  CHECK(spec->data.video.min_frames == 2);
  CHECK(spec->data.video.max_frames == 128);
  CHECK(spec->data.video.max_pixels == 65'536);
  CHECK(spec->data.video.min_pixels == 3136);
  CHECK(spec->data.on_bad_record == OnBadRecord::kSkip);
  CHECK(spec->data.pack_tokens == 0);
  CHECK(spec->data.sources[0].path == folder.path("data/chat.json"));
  CHECK(spec->data.sources[0].image_root == folder.path("data"));
  CHECK(spec->eval.every == 0);
  CHECK(spec->checkpoint.every == 500);
}

TEST_CASE("Limits below what the model's processor scales up to are remarked, and refused as the largest") {
  const ToolFolder folder;
  const auto raised = folder.convert(config("video_min_pixels: 100\n"));
  REQUIRE(raised.ok());
  CHECK(std::any_of(raised->remarks.begin(), raised->remarks.end(),
                    [](const auto& r) { return r.text.find("video_min_pixels: the model's processor") == 0; }));
  for (const char* key : {"video_max_pixels", "image_max_pixels"})
    CHECK(folder.complaint(config(std::string(key) + ": 2048\n"))
              .find(std::string("key '") + key + "': value '2048' is below") != std::string::npos);
}

TEST_CASE("What a LLaMA-Factory file says becomes the spec's") {
  const ToolFolder folder;
  const auto spec = folder.spec(config(
      "bf16: true\nfreeze_vision_tower: false\nfreeze_multi_modal_projector: False\nfreeze_language_model: true\n"
      "image_max_pixels: 262144\nimage_min_pixels: 50176\nvideo_fps: 1.5\nvideo_maxlen: 16\nvideo_max_pixels: "
      "50176\ncutoff_len: 100\nmask_history: true\n"
      "disable_shuffling: true\nper_device_train_batch_size: 2\ngradient_accumulation_steps: 3\nlearning_rate: 1.0e-5\n"
      "weight_decay: 0.1\nadam_beta1: 0.8\nadam_beta2: 0.95\nadam_epsilon: 1e-6\nmax_grad_norm: 0.5\nmax_steps: 7\n"
      "lr_scheduler_type: cosine\nwarmup_ratio: 0.1\nseed: 3\nval_size: 0.1\neval_strategy: steps\neval_steps: 20\n"
      "save_steps: 11\nsave_total_limit: 2\nlogging_steps: 10\nuse_cpu: true\ngroup_by_length: true\n"));
  REQUIRE(spec.ok());
  CHECK(spec->model.dtype == DType::kBf16);
  CHECK(spec->components.at("vision").train);
  CHECK(spec->components.at("merger").train);
  CHECK_FALSE(spec->components.at("text").train);
  CHECK(spec->data.max_pixels == 262'144);
  CHECK(spec->data.min_pixels == 50'176);
  CHECK(spec->data.video.fps == 1.5);
  CHECK(spec->data.video.max_frames == 16);
  CHECK(spec->data.video.max_pixels == 50'176);
  CHECK(spec->data.max_sample_tokens == 100);
  CHECK(spec->data.supervise == Supervise::kLast);
  CHECK_FALSE(spec->data.shuffle);
  CHECK(spec->data.sort_window == 50);
  CHECK(spec->training.global_batch == 6);
  CHECK(spec->training.microbatch_samples == 2);
  CHECK(spec->training.steps == 7);
  CHECK_FALSE(spec->training.epochs.has_value());
  CHECK(spec->training.optimizer.lr == 1e-5);
  CHECK(spec->training.optimizer.weight_decay == 0.1);
  CHECK(spec->training.optimizer.betas == std::array<double, 2>{0.8, 0.95});
  CHECK(spec->training.optimizer.eps == 1e-6);
  CHECK(spec->training.optimizer.clip == 0.5);
  CHECK(spec->training.schedule.type == ScheduleKind::kCosine);
  CHECK(spec->training.schedule.warmup_ratio == 0.1);
  CHECK(spec->training.seed == 3);
  CHECK(spec->eval.split == 0.1);
  CHECK(spec->eval.every == 20);
  CHECK(spec->checkpoint.every == 11);
  CHECK(spec->checkpoint.keep == 2);
  CHECK(spec->log_every == 10);
  CHECK(spec->device == "cpu");
}

TEST_CASE("Data sets are looked up in dataset_info.json, of which the smaller limit counts") {
  const ToolFolder folder;
  const auto spec = folder.spec(config("max_samples: 100\nmedia_dir: model\neval_dataset: chat\n"));
  REQUIRE(spec.ok());
  CHECK(spec->data.sources[0].take_records == 100);
  CHECK(spec->data.sources[0].image_root == folder.path("model"));
  CHECK(spec->eval.sources[0].take_records == 100);
  const auto two =
      folder.spec("model_name_or_path: model\nfinetuning_type: full\ndataset: [chat, few]\nmax_samples: 9\n");
  REQUIRE(two.ok());
  REQUIRE(two->data.sources.size() == 2);
  CHECK(two->data.sources[1].take_records == 7);
  CHECK(folder.complaint("model_name_or_path: model\nfinetuning_type: full\ndataset: chat, far\n")
            .find("foreign.yaml:3: key 'dataset': data set 'far' of data/dataset_info.json lies elsewhere") == 0);
  CHECK(folder.complaint("model_name_or_path: model\nfinetuning_type: full\ndataset: nosuch\n")
            .find("data set 'nosuch' is not in data/dataset_info.json; valid: chat, few, far") != std::string::npos);
  CHECK(folder.complaint(config("dataset_dir: other\n")) ==
        "foreign.yaml:4: key 'dataset_dir': value 'other': there is no 'other/dataset_info.json'; valid: a folder with "
        "dataset_info.json below --working-dir");
  CHECK(folder.complaint(config("dataset_dir: ONLINE\n")).find("means data sets of a hub") != std::string::npos);
}

TEST_CASE("Adapters are refused, and become training of all weights with --full") {
  ToolFolder folder;
  const std::string lora = "model_name_or_path: model\ndataset: chat\nlora_rank: 8\nfinetuning_type: lora\n";
  CHECK(folder.complaint(lora) ==
        "foreign.yaml:4: key 'finetuning_type': value 'lora' is not built: all weights are trained; valid: "
        "finetuning_type: full, or --full to train all weights of what is not frozen");
  CHECK(folder.complaint("model_name_or_path: model\ndataset: chat\n") ==
        "foreign.yaml: key 'finetuning_type': is missing, which LLaMA-Factory takes as lora; adapters are not built; "
        "valid: finetuning_type: full, or --full to train all weights of what is not frozen");
  folder.options.full = true;
  const auto made = folder.convert(lora);
  REQUIRE(made.ok());
  CHECK(dropped(*made, "finetuning_type") == "'lora' became training of all weights (--full)");
  CHECK(dropped(*made, "lora_rank") == "not needed: belongs to LoRA");
  REQUIRE_FALSE(made->remarks.empty());
  CHECK(made->remarks[0].text.find("finetuning_type: 'lora' became training of all weights") == 0);
}

TEST_CASE("What would train something else is refused by name, all of it at once") {
  const ToolFolder folder;
  const std::string text = folder.complaint(
      config("stage: dpo\ndo_train: false\nfp16: true\ntemplate: llama3\npacking: true\nval_size: 100\n"
             "streaming: true\nmix_strategy: interleave_under\ninterleave_probs: 0.5,0.5\nquantization_bit: 4\n"
             "train_on_prompt: true\nuse_galore: true\nlr_scheduler_type: polynomial\noptim: adafactor\n"
             "resume_from_checkpoint: saves/x\nlearning_rate: fast\nbf16: maybe\n"));
  for (const char* line :
       {":4: key 'stage': value 'dpo' is not built; valid: sft", ":5: key 'do_train': value false",
        ":6: key 'fp16': value 'true': there is no fp16; valid: bf16: true", ":7: key 'template': value 'llama3'",
        ":8: key 'packing': value true lets samples", ":9: key 'val_size': value '100' is a number of samples",
        ":10: key 'streaming': value 'true' is refused", ":11: key 'mix_strategy': value 'interleave_under' is refused",
        ":12: key 'interleave_probs': value '0.5,0.5' is refused", ":13: key 'quantization_bit': value '4' is refused",
        ":14: key 'train_on_prompt': value 'true' is refused", ":15: key 'use_galore': value 'true' is refused",
        ":16: key 'lr_scheduler_type': value 'polynomial' is not valid", ":17: key 'optim': value 'adafactor'",
        ":18: key 'resume_from_checkpoint': value 'saves/x' is refused",
        ":19: key 'learning_rate': value 'fast' is not valid; valid: a number from 0",
        ":20: key 'bf16': value 'maybe' is not valid; valid: true, false"}) {
    INFO(text);
    INFO(line);
    CHECK(text.find(std::string("foreign.yaml") + line) != std::string::npos);
  }
}

TEST_CASE("Packs need to be counted in samples") {
  ToolFolder folder;
  CHECK(folder.complaint(config("neat_packing: true\n")).find("valid: false, or --global-batch SAMPLES") !=
        std::string::npos);
  folder.options.global_batch = 48;
  const auto spec = folder.spec(config("neat_packing: true\ncutoff_len: 4096\nper_device_train_batch_size: 1\n"));
  REQUIRE(spec.ok());
  CHECK(spec->data.pack_tokens == 4096);
  CHECK(spec->training.global_batch == 48);
}

TEST_CASE("A hub's model id is refused with the way to a folder, which --model gives") {
  ToolFolder folder;
  const std::string text = "model_name_or_path: Qwen/Qwen2.5-VL-3B-Instruct\nfinetuning_type: full\ndataset: chat\n";
  CHECK(folder.complaint(text) ==
        "foreign.yaml:1: key 'model_name_or_path': value 'Qwen/Qwen2.5-VL-3B-Instruct' looks like a model id of a hub; "
        "models are read from folders; valid: hf download Qwen/Qwen2.5-VL-3B-Instruct --local-dir FOLDER, then --model "
        "FOLDER");
  folder.options.model = "model";
  CHECK(folder.spec(text)->model.path == folder.path("model"));
  folder.options.model = "none";
  CHECK(folder.complaint(text).find("--model none: 'none' is no folder") == 0);
}

}  // namespace troupe::convert
