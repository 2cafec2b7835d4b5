#include "base/safetensors/model_folder.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/model/parameter.h"
#include "base/safetensors/safetensors_writer.h"
#include "tests/scratch_folder.h"

using namespace troupe;

namespace {

ModelConfig tiny(bool tied) {
  ModelConfig c;
  c.vision.depth = 1;
  c.vision.hidden = c.vision.intermediate = 8;
  c.vision.heads = 2;
  c.vision.patch_size = 2;
  c.vision.out_hidden = c.text.hidden = 8;
  c.text.layers = 1;
  c.text.intermediate = 6;
  c.text.heads = 2;
  c.text.kv_heads = 1;
  c.text.head_dim = 4;
  c.text.vocabulary = 5;
  c.text.tied = tied;
  return c;
}

struct Tensor {
  std::string name;
  std::vector<int64_t> shape;
  char fill = 1;
};

std::vector<Tensor> tensors_of(const ModelConfig& config) {
  std::vector<Tensor> out;
  for (const ParameterDecl& p : model_parameters(config, false)) out.push_back({p.name, p.shape, 1});
  return out;
}

void write_file(const std::string& path, const std::vector<Tensor>& tensors) {
  std::vector<TensorSpec> specs;
  for (const Tensor& t : tensors) specs.push_back({t.name, FileDType::kF32, t.shape});
  auto writer = SafetensorsWriter::create(path, specs);
  REQUIRE(writer.ok());
  for (const Tensor& t : tensors) {
    int64_t n = 4;
    for (int64_t s : t.shape) n *= s;
    const std::string bytes(static_cast<size_t>(n), t.fill);
    REQUIRE((*writer)->append(bytes.data(), bytes.size()).ok());
  }
  REQUIRE((*writer)->finish().ok());
}

std::string check_single(const ModelConfig& config, const std::function<void(std::vector<Tensor>&)>& change) {
  const ScratchFolder scratch;
  const std::string folder = scratch.path();
  std::vector<Tensor> tensors = tensors_of(config);
  change(tensors);
  write_file(folder + "/model.safetensors", tensors);
  const auto f = ModelFolder::open(folder);
  if (!f.ok()) return f.error().message;
  const Status s = f->check(config);
  return s.ok() ? "(accepted)" : s.error().message.substr(folder.size() + 2);
}

}  // namespace

TEST_CASE("all name forms of a folder come to the classic names") {
  CHECK(classic_tensor_name("model.visual.blocks.0.norm1.weight") == "visual.blocks.0.norm1.weight");
  CHECK(classic_tensor_name("visual.blocks.0.norm1.weight") == "visual.blocks.0.norm1.weight");
  CHECK(classic_tensor_name("model.language_model.layers.1.mlp.up_proj.weight") == "model.layers.1.mlp.up_proj.weight");
  CHECK(classic_tensor_name("model.layers.1.mlp.up_proj.weight") == "model.layers.1.mlp.up_proj.weight");
  CHECK(classic_tensor_name("lm_head.weight") == "lm_head.weight");
  CHECK(check_single(tiny(true), [](std::vector<Tensor>& tensors) {
          for (Tensor& t : tensors)
            t.name = t.name.rfind("visual.", 0) == 0 ? "model." + t.name : "model.language_model." + t.name.substr(6);
        }) == "(accepted)");
}

TEST_CASE("a whole folder is accepted, missing and unexpected and misshapen tensors are refused by name") {
  CHECK(check_single(tiny(false), [](auto&) {}) == "(accepted)");
  CHECK(check_single(tiny(false), [](auto& t) { t.erase(t.begin() + 1); }) ==
        "the weights do not match config.json: tensor 'visual.blocks.0.norm1.weight' is missing");
  CHECK(check_single(tiny(false), [](auto& t) {
          t.push_back({"extra.weight", {1}, 1});
        }) == "the weights do not match config.json: tensor 'extra.weight' is unexpected");
  CHECK(check_single(tiny(false),
                     [](auto& t) {
                       t.back().shape = {6, 8};
                     }) ==
        "the weights do not match config.json: tensor 'lm_head.weight' has shape [6,8], config.json asks for [5,8]");
  CHECK(check_single(tiny(false), [](auto& t) {
          t.push_back({"model.visual.merger.ln_q.weight", {8}, 1});
        }).find("tensor 'visual.merger.ln_q.weight' occurs twice") != std::string::npos);
}

TEST_CASE("a head beside a tied embedding is accepted when equal and refused when different") {
  CHECK(check_single(tiny(true), [](auto& t) { t.push_back({"lm_head.weight", {5, 8}, 1}); }) == "(accepted)");
  CHECK(check_single(tiny(true),
                     [](auto& t) {
                       t.push_back({"lm_head.weight", {5, 8}, 2});
                     }) ==
        "the weights do not match config.json: tensor 'lm_head.weight' differs from 'model.embed_tokens.weight', but "
        "config.json ties them (tie_word_embeddings: true)");
}

TEST_CASE("the index of a sharded folder decides: strays are ignored, gaps are refused") {
  const ModelConfig config = tiny(false);
  const ScratchFolder scratch;
  const std::string folder = scratch.path();
  const std::vector<Tensor> tensors = tensors_of(config);
  const std::vector<Tensor> first(tensors.begin(), tensors.begin() + 5);
  std::vector<Tensor> second(tensors.begin() + 5, tensors.end());
  second.push_back({"stray.in.a.shard", {2}, 1});
  write_file(folder + "/model-00001-of-00002.safetensors", first);
  write_file(folder + "/model-00002-of-00002.safetensors", second);
  write_file(folder + "/stray.safetensors", {{"stray", {1}, 1}});
  nlohmann::json index;
  for (const Tensor& t : first) index["weight_map"][t.name] = "model-00001-of-00002.safetensors";
  for (size_t i = 5; i < tensors.size(); ++i) index["weight_map"][tensors[i].name] = "model-00002-of-00002.safetensors";
  const std::string index_path = folder + "/model.safetensors.index.json";
  std::ofstream(index_path) << index.dump();
  auto f = ModelFolder::open(folder);
  if (!f.ok()) FAIL(f.error().message);
  CHECK(f->check(config).ok());
  CHECK(f->files().size() == 2);

  index["weight_map"]["ghost"] = "model-00001-of-00002.safetensors";
  std::ofstream(index_path) << index.dump();
  CHECK(ModelFolder::open(folder).error().message ==
        index_path +
            ": says that tensor 'ghost' is in 'model-00001-of-00002.safetensors', but that file does not hold it");

  index["weight_map"]["ghost"] = "model-00003.safetensors";
  std::ofstream(index_path) << index.dump();
  CHECK(ModelFolder::open(folder).error().message ==
        index_path + ": names files that are not there: 'model-00003.safetensors'");

  index["weight_map"]["ghost"] = "../secret.safetensors";
  std::ofstream(index_path) << index.dump();
  CHECK(ModelFolder::open(folder).error().message.find("valid: a file in the same folder") != std::string::npos);
}

TEST_CASE("a folder without weights, or with several files and no index, is refused") {
  const ScratchFolder scratch;
  const std::string folder = scratch.path();
  CHECK_FALSE(ModelFolder::has_weights(folder));
  CHECK(ModelFolder::open(folder).error().code == ErrorCode::kNotFound);
  write_file(folder + "/a.safetensors", {{"a", {1}, 1}});
  CHECK(ModelFolder::has_weights(folder));
  CHECK(ModelFolder::open(folder).ok());
  write_file(folder + "/b.safetensors", {{"b", {1}, 1}});
  CHECK(ModelFolder::open(folder).error().message.find("has 2 safetensors files but no model.safetensors.index.json") !=
        std::string::npos);
}
