#include <catch2/catch.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "actors/checkpoint/export_parts.h"
#include "actors/checkpoint/model_io.h"
#include "tests/actors/checkpoint/tiny_folder.h"

using namespace troupe;
using namespace troupe::testing;
namespace fs = std::filesystem;

namespace {

ExportOptions options_of(const TinyFolder& folder, const std::string& target) {
  ExportOptions o;
  o.source_folder = folder.path();
  o.target_folder = target;
  return o;
}

void require_export(const ExportOptions& options) {
  const Status done = assemble_export(options);
  INFO((done.ok() ? "" : done.error().to_string()));
  REQUIRE(done.ok());
}

void add_one(ParameterStore& store) {
  for (LocalParameter& p : store.parameters()) p.weight.add_(1);
}

}  // namespace

TEST_CASE("weights that were only loaded come out byte for byte, whatever the tensor parallel size") {
  const int tp = GENERATE(1, 2, 3);
  const FileDType dtype = GENERATE(FileDType::kF32, FileDType::kBf16, FileDType::kF16);
  TinyFolderOptions made;
  made.dtype = dtype;
  made.files = GENERATE(1, 3);
  const TinyFolder folder(made);
  const std::string target = folder.other("export");
  write_all_parts(folder, target, tp, dtype == FileDType::kBf16 ? at::kBFloat16 : at::kFloat);
  require_export(options_of(folder, target));
  size_t compared = 0;
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    const std::string name = entry.path().filename().string();
    INFO(name << ", tp " << tp << ", " << file_dtype_name(dtype));
    CHECK(bytes_of(target + "/" + name) == bytes_of(entry.path().string()));
    ++compared;
  }
  CHECK(compared == (made.files == 1 ? 4u : 7u));
  CHECK_FALSE(fs::exists(target + ".parts"));
  CHECK_FALSE(fs::exists(target + ".partial"));
}

TEST_CASE("changed weights come out changed, untouched components byte for byte though the compute dtype is narrower") {
  const TinyFolder folder;  // F32, computed in bf16
  const std::string target = folder.other("export");
  write_all_parts(folder, target, 2, at::kBFloat16, add_one);
  ExportOptions options = options_of(folder, target);
  options.untouched_components = {"vision"};
  require_export(options);
  const std::string before = folder.path() + "/model.safetensors", after = target + "/model.safetensors";
  const std::string vision = "visual.blocks.1.mlp.up_proj.weight", text = "model.layers.1.self_attn.k_proj.bias";
  CHECK(tensor_bytes(after, vision) == tensor_bytes(before, vision));
  const std::string old_bytes = tensor_bytes(before, text), new_bytes = tensor_bytes(after, text);
  REQUIRE(new_bytes.size() == old_bytes.size());
  const auto* old_values = reinterpret_cast<const float*>(old_bytes.data());
  const auto* new_values = reinterpret_cast<const float*>(new_bytes.data());
  for (size_t i = 0; i < new_bytes.size() / 4; ++i) CHECK(new_values[i] == Approx(old_values[i] + 1).margin(0.02));
}

TEST_CASE("a tied head that the source holds follows the trained embedding") {
  TinyFolderOptions made;
  made.tied = made.with_tied_head = true;
  const TinyFolder folder(made);
  const std::string target = folder.other("export");
  write_all_parts(folder, target, 2, at::kFloat, add_one);
  require_export(options_of(folder, target));
  const std::string file = target + "/model.safetensors", embedding = tensor_bytes(file, "model.embed_tokens.weight");
  CHECK(tensor_bytes(file, "lm_head.weight") == embedding);
  CHECK(embedding != tensor_bytes(folder.path() + "/model.safetensors", "model.embed_tokens.weight"));
}

TEST_CASE("a model begun at random is written in classic names in its compute dtype, in files of a bounded size") {
  const TinyFolder folder;
  fs::remove(folder.path() + "/model.safetensors");
  const std::string target = folder.other("export");
  const at::ScalarType dtype = GENERATE(at::kFloat, at::kBFloat16);
  int64_t bytes = 0;
  const ModelConfig config = config_of(folder);
  for (const auto& components : {std::vector<std::string>{"vision", "merger"}, std::vector<std::string>{"text"}}) {
    ParameterStore store(config, store_options(components, 1, 0, dtype));
    initialise_random(store, 1);
    for (const LocalParameter& p : store.parameters()) bytes += static_cast<int64_t>(p.weight.nbytes());
    LoneWorld world(Mesh(), 0);
    REQUIRE(write_export_parts(store, world, target).ok());
  }
  ExportOptions options = options_of(folder, target);
  SECTION("one file") {
    require_export(options);
    const auto file = SafetensorsFile::open(target + "/model.safetensors").value();
    CHECK(file->tensors().size() == model_parameters(config, false).size());
    CHECK(file->find("visual.merger.ln_q.weight")->dtype == (dtype == at::kFloat ? FileDType::kF32 : FileDType::kBf16));
    CHECK_FALSE(fs::exists(target + "/model.safetensors.index.json"));
  }
  SECTION("several files with an index") {
    options.max_file_bytes = bytes / 3;
    require_export(options);
    const auto index = nlohmann::json::parse(bytes_of(target + "/model.safetensors.index.json"));
    CHECK(index["metadata"]["total_size"] == bytes);
    CHECK(index["weight_map"].size() == model_parameters(config, false).size());
    CHECK(fs::exists(target + "/model-00001-of-00004.safetensors"));
  }
  ParameterStore again(config, store_options({"text"}, 1, 0, dtype)),
      original(config, store_options({"text"}, 1, 0, dtype));
  initialise_random(original, 1);
  REQUIRE(load_pretrained(again, target).ok());
  CHECK(again.buffers()[0].weights.equal(original.buffers()[0].weights));
  const auto written = nlohmann::json::parse(bytes_of(target + "/config.json"));
  CHECK(written["torch_dtype"] == (dtype == at::kFloat ? "float32" : "bfloat16"));
}

TEST_CASE("an export with a part missing, or parts of two layouts, is refused and leaves the parts") {
  const TinyFolder folder;
  const std::string target = folder.other("export");
  SECTION("missing") {
    write_all_parts(folder, target, 2, at::kFloat);
    fs::remove(target + ".parts/text-1.safetensors");
  }
  SECTION("two layouts") {
    write_all_parts(folder, target, 3, at::kFloat);  // leaves a third text part behind
    write_all_parts(folder, target, 2, at::kFloat);
  }
  const Status refused = assemble_export(options_of(folder, target));
  REQUIRE_FALSE(refused.ok());
  INFO(refused.error().to_string());
  CHECK(refused.error().code == ErrorCode::kDataLoss);
  CHECK(refused.error().message.find("model.embed_tokens.weight") != std::string::npos);
  CHECK(fs::exists(target + ".parts/vision-0.safetensors"));
  CHECK_FALSE(fs::exists(target));  // what is there is complete
}

TEST_CASE("only the first replica writes parts") {
  const TinyFolder folder;
  const Mesh mesh = Mesh().set(Axis::kDp, 2).set(Axis::kSp, 2);
  for (int rank = 0; rank < 4; ++rank) {
    ParameterStore store(config_of(folder), store_options({"vision", "merger"}, 1, 0));
    LoneWorld world(mesh, rank);
    const std::string target = folder.other("export-" + std::to_string(rank));
    REQUIRE(write_export_parts(store, world, target).ok());
    CHECK(fs::exists(target + ".parts") == (rank == 0));
    CHECK_FALSE(fs::exists(target));
  }
}

TEST_CASE("a new export replaces the one of before") {
  const TinyFolder folder;
  const std::string target = folder.other("export");
  write_all_parts(folder, target, 1, at::kFloat);
  require_export(options_of(folder, target));
  write_all_parts(folder, target, 2, at::kFloat, add_one);
  require_export(options_of(folder, target));
  CHECK(bytes_of(target + "/model.safetensors") != bytes_of(folder.path() + "/model.safetensors"));
  CHECK_FALSE(fs::exists(target + ".old"));
}
