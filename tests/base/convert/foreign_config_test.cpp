#include "base/convert/foreign_config.h"

#include <catch2/catch.hpp>

#include "tests/scratch_folder.h"

namespace troupe::convert {
namespace {

struct Files {
  ScratchFolder scratch;
  Result<ForeignConfig> read(const std::string& text, std::optional<ForeignTool> tool = std::nullopt) const {
    return read_foreign_config(scratch.write("f", text), tool);
  }
  std::string complaint(const std::string& text, std::optional<ForeignTool> tool = std::nullopt) const {
    const auto config = read(text, tool);
    if (config.ok()) return "(accepted)";
    return config.error().message.substr(scratch.path("f").size());
  }
};

}  // namespace

TEST_CASE("Whose a file is follows from its keys") {
  const Files files;
  CHECK(files.read("model_name_or_path: m\ndataset: d\n")->tool == ForeignTool::kLlamaFactory);
  CHECK(files.read("model: m\ndataset: d\n")->tool == ForeignTool::kMsSwift);
  CHECK(files.read("{\"model\": \"m\", \"max_length\": 3}")->tool == ForeignTool::kMsSwift);
  CHECK(files.read("learning_rate: 1\n", ForeignTool::kMsSwift)->tool == ForeignTool::kMsSwift);
  CHECK(files.complaint("learning_rate: 1\n") ==
        ": its keys do not say whose it is; valid: --from llama-factory or --from ms-swift");
}

TEST_CASE("Texts that are no configuration are refused with what is valid") {
  const Files files;
  CHECK(files.complaint("model: {path: m}\ngroups: {}\n") ==
        ": is a job spec already; valid: a configuration of LLaMA-Factory or ms-swift");
  CHECK(files.complaint("- a\n- b\n").find(":1: holds [a, b] (a list); valid: keys and values") == 0);
  CHECK(files.complaint("").find(":1: holds ") == 0);
  CHECK(files.complaint("model: m\nmodel: n\n").find(":2: key 'model': occurs twice") == 0);
  CHECK(files.complaint("a: [\n").find("is not valid YAML") != std::string::npos);
  CHECK(read_foreign_config(files.scratch.path("none"), std::nullopt).error().code == ErrorCode::kNotFound);
}

TEST_CASE("A script's arguments are keys, its variables before the command too") {
  const Files files;
  const auto config = files.read(
      "#!/bin/bash\nset -e\nn=2\nexport OMP_NUM_THREADS=4\nNPROC_PER_NODE=$n \\\nswift sft \\\n    --model m \\\n"
      "    --dataset a.jsonl 'b.jsonl#5' \\\n    --packing \\\n    --max-steps=-1 \\\n    --columns '{\"a\": "
      "\"query\"}'\n");
  REQUIRE(config.ok());
  CHECK(config->tool == ForeignTool::kMsSwift);
  CHECK(config->find("OMP_NUM_THREADS")->text == "4");
  CHECK(config->find("NPROC_PER_NODE")->text == "2");
  CHECK(config->find("n") == nullptr);
  CHECK(config->find("model")->place.line == 7);
  REQUIRE(config->find("dataset")->items.size() == 2);
  CHECK(config->find("dataset")->items[1].text == "b.jsonl#5");
  CHECK(config->find("packing")->text == "true");
  CHECK(config->find("max_steps")->text == "-1");
  CHECK(config->find("columns")->text == "{\"a\": \"query\"}");
  const auto factory = files.read("FORCE_TORCHRUN=1 llamafactory-cli train --stage sft --model_name_or_path m\n");
  REQUIRE(factory.ok());
  CHECK(factory->tool == ForeignTool::kLlamaFactory);
  CHECK(factory->find("FORCE_TORCHRUN")->text == "1");
}

TEST_CASE("Scripts that do something else beside, or train otherwise, are refused with the line") {
  const Files files;
  CHECK(files.complaint("cd there\nswift sft --model m\n").find(":1: has the command 'cd', which is not read") == 0);
  CHECK(files.complaint("swift sft --model m\nswift sft --model n\n") ==
        ":2: has a second training command; valid: a script with one");
  CHECK(files.complaint("swift rlhf --model m\n") ==
        ":1: 'swift rlhf' trains in another way than Troupe; valid: swift sft, llamafactory-cli train");
  CHECK(files.complaint("swift pt --model m\n").find("'swift pt' trains in another way") != std::string::npos);
  CHECK(files.complaint("llamafactory-cli train a.yaml\n").find(":1: 'a.yaml' is no --key") == 0);
  CHECK(files.complaint("swift sft --seed 1 \\\n --seed 2\n") ==
        ":2: key 'seed': occurs twice; it is already on line 1");
  CHECK(files.complaint("#!/bin/bash\necho hello\n").find(": has no training command") == 0);
  CHECK(files.complaint("swift sft --model m\n", ForeignTool::kLlamaFactory) ==
        ": has a command of ms-swift, not of LLaMA-Factory");
}

TEST_CASE("null, ~ and None ask for nothing") {
  const Files files;
  const auto config = files.read("model_name_or_path: m\na: null\nb: ~\nc: None\nd: ''\n");
  REQUIRE(config.ok());
  for (const char* key : {"a", "b", "c"}) CHECK(config->find(key) == nullptr);
  CHECK(config->find("d") != nullptr);
}

}  // namespace troupe::convert
