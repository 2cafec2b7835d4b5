#include "base/convert/conversion.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "base/convert/report.h"
#include "tests/base/convert/converted.h"

namespace troupe::convert {
namespace {

const std::string kConfig =
    "model_name_or_path: model\nfinetuning_type: full\ndataset: chat\ndeepspeed: z3.json\nlerning_rate: 1\n"
    "zzz: 2\nhf_hub_token: secret-of-mine\nswanlab_api_key: another-secret\nadapter_name_or_path: null\n";

}  // namespace

TEST_CASE("Every key of a file is carried over, dropped with a reason or named as unknown") {
  const ToolFolder folder;
  const auto made = folder.convert(kConfig);
  REQUIRE(made.ok());
  CHECK(made->carried.size() + made->dropped.size() + made->unknown.size() == 9);
  CHECK(carried(*made, "model_name_or_path") == "model.path: \"model\"");
  CHECK(dropped(*made, "deepspeed").find("not needed: ") == 0);
  CHECK(dropped(*made, "adapter_name_or_path") == "not needed: its value asks for nothing");
  REQUIRE(made->unknown.size() == 2);
  CHECK(made->unknown[0].text == "unknown key; did you mean 'learning_rate'?");
  CHECK(made->unknown[0].place.line == 5);
  CHECK(made->unknown[1].text == "unknown key");
  const std::string report = report_text(*made);
  CHECK(report.find("foreign.yaml:4: deepspeed: not needed: ") != std::string::npos);
  CHECK(report.find("foreign.yaml:5: lerning_rate: unknown key; did you mean 'learning_rate'?\n") != std::string::npos);
  CHECK(report.find("2 keys carried over, 5 dropped, warning: 2 unknown keys\n") != std::string::npos);
}

TEST_CASE("The report stands at the head of the spec, and values that may be secrets nowhere") {
  const ToolFolder folder;
  const auto made = folder.convert(kConfig);
  REQUIRE(made.ok());
  CHECK(made->yaml.rfind("# Made by `troupe convert` from ", 0) == 0);
  for (const ConvertedKey& k : made->dropped)
    CHECK(made->yaml.find(": " + k.key + ": " + k.text + "\n") < made->yaml.find("\nmodel:"));
  for (const std::string& text : {made->yaml, report_text(*made), report_json(*made, "").dump()})
    CHECK(text.find("secret") == std::string::npos);
}

TEST_CASE("The answer in JSON says what became of each key, and holds the spec when it is written nowhere") {
  const ToolFolder folder;
  const auto made = folder.convert(kConfig);
  const auto answer = report_json(*made, "");
  CHECK(answer["tool"] == "LLaMA-Factory");
  CHECK(answer["output"].is_null());
  CHECK(answer["yaml"] == made->yaml);
  CHECK(answer["unknown"][0]["key"] == "lerning_rate");
  CHECK(answer["unknown"][0]["line"] == 5);
  CHECK(answer["carried"][0]["becomes"] == "model.path: \"model\"");
  CHECK(answer["dropped"].size() == 5);
  CHECK(std::find(answer["defaults"].begin(), answer["defaults"].end(), "training.optimizer.lr: 5e-05") !=
        answer["defaults"].end());
  CHECK_FALSE(report_json(*made, "job.yaml").contains("yaml"));
  CHECK(report_json(*made, "job.yaml")["output"] == "job.yaml");
}

TEST_CASE("Relative paths are taken from the folder of the tool, and written from that of the spec") {
  ToolFolder folder;
  folder.options.output = folder.path("specs/deep/job.yaml");
  const auto made = folder.convert(kConfig);
  REQUIRE(made.ok());
  CHECK(made->yaml.find("path: \"../../model\"") != std::string::npos);
  CHECK(made->yaml.find("path: \"../../data/dataset_info.json\"") != std::string::npos);
  folder.options.output = "";
  const auto nowhere = folder.convert(kConfig);
  REQUIRE(nowhere.ok());
  CHECK(nowhere->yaml.find("path: \"" + folder.path("model") + "\"") != std::string::npos);
  const auto absolute =
      folder.convert("model_name_or_path: " + folder.path("model") + "\nfinetuning_type: full\ndataset: chat\n");
  CHECK(absolute->yaml.find("path: \"" + folder.path("model") + "\"") != std::string::npos);
}

TEST_CASE(
    "What the spec's own reader refuses is said under the foreign key, and names that look like variables are kept") {
  const ToolFolder folder;
  CHECK(folder.complaint(
            "model_name_or_path: model\nfinetuning_type: full\ndataset: chat\nmax_steps: 3\nwarmup_steps: 5\n") ==
        "foreign.yaml:5: key 'warmup_steps' (training.schedule.warmup_steps): value 5 must be at most training.steps = "
        "3");
  CHECK(folder.complaint("model_name_or_path: data\nfinetuning_type: full\ndataset: chat\n")
            .find("foreign.yaml:1: key 'model_name_or_path' (model.path): ") == 0);
  CHECK(folder.complaint("model_name_or_path: ${MODEL}\nfinetuning_type: full\ndataset: chat\n") ==
        "foreign.yaml:1: key 'model_name_or_path': value '${MODEL}' holds a variable; valid: what it stands for");
}

TEST_CASE("All components frozen is refused") {
  const ToolFolder folder;
  CHECK(folder.complaint(kConfig + "freeze_language_model: true\n").find("every component is frozen") !=
        std::string::npos);
}

}  // namespace troupe::convert
