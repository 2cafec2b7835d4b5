#include "base/convert/trainer_settings.h"

#include <catch2/catch.hpp>

#include "tests/base/convert/converted.h"

namespace troupe::convert {
namespace {

std::string config(const std::string& more) {
  return "model_name_or_path: model\nfinetuning_type: full\ndataset: chat\n" + more;
}

std::string script(const std::string& variables, const std::string& arguments = "") {
  return variables + " llamafactory-cli train --model_name_or_path model --finetuning_type full --dataset chat " +
         "--per_device_train_batch_size 2 " + arguments + "\n";
}

}  // namespace

TEST_CASE("A batch is that of a device x accumulation x ranks, and one rank is said to be assumed") {
  ToolFolder folder;
  CHECK(folder.spec(script("NPROC_PER_NODE=4 CUDA_VISIBLE_DEVICES=0,1"))->training.global_batch == 8);
  CHECK(folder.spec(script("NPROC_PER_NODE=4 NNODES=2"))->training.global_batch == 16);
  CHECK(folder.spec(script("CUDA_VISIBLE_DEVICES=0,1,5"))->training.global_batch == 6);
  const auto assumed = folder.convert(script("", "--gradient_accumulation_steps 5"));
  REQUIRE(assumed.ok());
  CHECK(load_job_spec_text(assumed->yaml, folder.options.output)->training.global_batch == 10);
  REQUIRE(assumed->remarks.size() == 1);
  CHECK(assumed->remarks[0].text.find("one is assumed; --devices N says it") != std::string::npos);
  folder.options.devices = 3;
  const auto told = folder.convert(script("NPROC_PER_NODE=4"));
  REQUIRE(told.ok());
  CHECK(told->remarks.empty());
  CHECK(load_job_spec_text(told->yaml, folder.options.output)->training.global_batch == 6);
}

TEST_CASE("Warm-up in steps goes before the ratio, below 1 it is one, and constant has none") {
  const ToolFolder folder;
  const auto steps = folder.spec(config("warmup_steps: 20\nwarmup_ratio: 0.5\n"))->training.schedule;
  CHECK(steps.warmup_steps == 20);
  CHECK(folder.spec(config("warmup_steps: 0\nwarmup_ratio: 0.5\n"))->training.schedule.warmup_ratio == 0.5);
  CHECK(folder.spec(config("warmup_steps: 0.25\n"))->training.schedule.warmup_ratio == 0.25);
  const auto constant = folder.convert(config("lr_scheduler_type: constant\nwarmup_ratio: 0.5\n"));
  REQUIRE(constant.ok());
  CHECK(load_job_spec_text(constant->yaml, folder.options.output)->training.schedule.warmup_ratio == 0);
  CHECK(dropped(*constant, "warmup_ratio").find("constant has no warm-up") != std::string::npos);
  const auto warm = folder.spec(config("lr_scheduler_type: constant_with_warmup\nwarmup_ratio: 0.5\n"));
  CHECK(warm->training.schedule.type == ScheduleKind::kConstant);
  CHECK(warm->training.schedule.warmup_ratio == 0.5);
}

TEST_CASE("The last rate is a part of the peak") {
  const ToolFolder folder;
  const std::string type = "lr_scheduler_type: cosine_with_min_lr\nlearning_rate: 1.0e-4\n";
  CHECK(folder.spec(config(type + "lr_scheduler_kwargs: {min_lr: 1.0e-5}\n"))->training.schedule.min_ratio ==
        Approx(0.1));
  CHECK(folder.spec(config(type + "lr_scheduler_kwargs: '{\"min_lr_rate\": 0.2}'\n"))->training.schedule.min_ratio ==
        0.2);
  for (const char* wrong : {"{min_lr: 1}", "{other: 1}", "{}", "[1]", "{min_lr: 1.0e-5, min_lr_rate: 0.1}"}) {
    INFO(wrong);
    CHECK(folder.complaint(config(type + "lr_scheduler_kwargs: " + wrong + "\n")).find("key 'lr_scheduler_kwargs'") !=
          std::string::npos);
  }
  CHECK(folder.complaint(config("lr_scheduler_kwargs: {num_cycles: 2}\n")).find("is not read for this") !=
        std::string::npos);
}

TEST_CASE("Saving and evaluating have a counterpart in numbers of steps only") {
  const ToolFolder folder;
  CHECK(folder.spec(config("save_strategy: 'no'\n"))->checkpoint.every == 0);
  const auto epoch =
      folder.convert(config("save_strategy: epoch\nsave_steps: 20\nval_size: 0.1\neval_strategy: epoch\n"));
  REQUIRE(epoch.ok());
  CHECK(carried(*epoch, "save_strategy") == "checkpoint.every: 0");
  CHECK(carried(*epoch, "eval_strategy") == "eval.every: 0");
  CHECK(dropped(*epoch, "save_steps") == "not needed: without effect beside the other keys");
  CHECK(epoch->yaml.find("every: 0  # save_strategy: only a number of steps has a counterpart") != std::string::npos);
  const auto share = folder.convert(config("save_steps: 0.1\nlogging_steps: 0.5\n"));
  REQUIRE(share.ok());
  CHECK(carried(*share, "save_steps") == "checkpoint.every: 0");
  CHECK(dropped(*share, "logging_steps") == "no counterpart: logging.every is a number of steps, not a share of all");
  const auto nothing = folder.convert(config("eval_strategy: steps\neval_steps: 5\n"));
  CHECK(dropped(*nothing, "eval_steps") == "not needed: nothing is held out to evaluate");
  CHECK(folder.spec(config("evaluation_strategy: steps\nval_size: 0.2\nlogging_steps: 7\n"))->eval.every == 7);
}

TEST_CASE("Steps go before epochs") {
  const ToolFolder folder;
  const auto made = folder.convert(config("max_steps: 9\nnum_train_epochs: 2\n"));
  CHECK(carried(*made, "max_steps") == "training.steps: 9");
  CHECK(dropped(*made, "num_train_epochs") == "not needed: max_steps goes before it");
  CHECK(folder.spec(config("max_steps: -1\nnum_train_epochs: 0.5\n"))->training.epochs == 0.5);
}

}  // namespace troupe::convert
