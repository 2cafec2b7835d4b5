#include "tests/actors/checkpoint/tiny_folder.h"

#include <ATen/ops/empty.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "actors/checkpoint/model_io.h"
#include "actors/checkpoint/philox.h"
#include "actors/checkpoint/weight_slices.h"
#include "base/safetensors/safetensors_writer.h"

namespace troupe::testing {
namespace {

namespace fs = std::filesystem;

constexpr const char* kConfig =
    R"({"model_type": "qwen2_5_vl", "torch_dtype": "bfloat16", "hidden_size": 24, "num_hidden_layers": 2,
 "intermediate_size": 31, "num_attention_heads": 6, "num_key_value_heads": 3, "vocab_size": VOCABULARY, "rms_norm_eps": 1e-6, "hidden_act": "silu",
 "rope_scaling": {"type": "mrope", "mrope_section": [1, 1, 0]}, "tie_word_embeddings": TIED,
 "vision_config": {"depth": 2, "hidden_size": 16, "intermediate_size": 10, "num_heads": 2, "patch_size": 2, "window_size": 8,
  "out_hidden_size": 24, "fullatt_block_indexes": [1]}})";

void write_text(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

void require(const Status& status) {
  if (!status.ok()) throw ErrorException(status.error());
}

}  // namespace

TinyFolder::TinyFolder(const TinyFolderOptions& options) {
  std::string pattern = (fs::temp_directory_path() / "troupe-model-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
  root_ = pattern;
  fs::create_directories(path());
  std::string config = kConfig;
  config.replace(config.find("TIED"), 4, options.tied ? "true" : "false");
  config.replace(config.find("VOCABULARY"), 10, std::to_string(options.vocabulary));
  write_text(path() + "/config.json", config);
  write_text(path() + "/tokenizer.json", "{\"version\": \"1.0\"}");
  write_text(path() + "/preprocessor_config.json", R"({"min_pixels": 3136, "max_pixels": 12845056, "patch_size": 14})");
  write_weights(options);
}

TinyFolder::~TinyFolder() {
  std::error_code ec;
  fs::remove_all(root_, ec);
}

void TinyFolder::write_weights(const TinyFolderOptions& options) {
  const auto config = read_model_config(path());
  if (!config.ok()) throw ErrorException(config.error());
  std::vector<TensorInfo> tensors;
  const auto add = [&](const std::string& name, const std::vector<int64_t>& shape) {
    TensorInfo info;
    info.name = name;
    info.shape = shape;
    if (options.change) options.change(info);
    if (info.name != options.leave_out) tensors.push_back(info);
  };
  for (const ParameterDecl& decl : model_parameters(*config, false)) add(decl.name, decl.shape);
  if (options.with_tied_head) add("lm_head.weight", {config->text.vocabulary, config->text.hidden});
  if (!options.extra.empty()) add(options.extra, {3});
  nlohmann::ordered_json index = {{"metadata", {{"total_size", 0}}}};
  const auto count = static_cast<int64_t>(tensors.size());
  for (int f = 0; f < options.files; ++f) {
    const std::string name =
        options.files == 1 ? "model.safetensors" : "model-part-" + std::to_string(f) + ".safetensors";
    std::vector<TensorSpec> specs;
    for (int64_t t = cut_begin(count, options.files, f); t < cut_begin(count, options.files, f + 1); ++t) {
      const TensorInfo& info = tensors[static_cast<size_t>(t)];
      specs.push_back({info.name, options.dtype, info.shape});
      index["weight_map"][info.name] = name;
    }
    auto writer = SafetensorsWriter::create(path() + "/" + name, specs);
    require(writer.status());
    for (const TensorSpec& spec : specs) {
      at::Tensor values = at::empty(spec.shape, at::kFloat);
      const std::string stream =
          options.tied && spec.name == "lm_head.weight" ? "model.embed_tokens.weight" : spec.name;
      checkpoint::fill_normal(checkpoint::stream_key(7, stream), 0, values.numel(), 0.5f, values.data_ptr<float>());
      values = values.to(checkpoint::scalar_type_of(options.dtype));
      require((*writer)->append(values.data_ptr(), values.nbytes()));
    }
    require((*writer)->finish());
  }
  if (options.files > 1) write_text(path() + "/model.safetensors.index.json", index.dump());
}

ModelConfig config_of(const TinyFolder& folder) {
  auto config = read_model_config(folder.path());
  require(config.status());
  return *config;
}

ParameterStoreOptions store_options(const std::vector<std::string>& components, int tp, int tp_rank,
                                    at::ScalarType dtype) {
  ParameterStoreOptions o;
  o.components = components;
  o.tp = tp;
  o.tp_rank = tp_rank;
  o.compute_dtype = dtype;
  return o;
}

void write_all_parts(const TinyFolder& folder, const std::string& target, int tp, at::ScalarType dtype,
                     const std::function<void(ParameterStore&)>& change) {
  const auto write = [&](const std::vector<std::string>& components, const Mesh& mesh, int rank) {
    ParameterStore store(config_of(folder), store_options(components, mesh.size(Axis::kTp), rank, dtype));
    require(load_pretrained(store, folder.path()));
    if (change) change(store);
    LoneWorld world(mesh, rank);
    require(write_export_parts(store, world, target));
  };
  write({"vision", "merger"}, Mesh(), 0);
  for (int rank = 0; rank < tp; ++rank) write({"text"}, Mesh().set(Axis::kTp, tp), rank);
}

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string tensor_bytes(const std::string& path, const std::string& name) {
  const auto file = SafetensorsFile::open(path);
  require(file.status());
  const TensorInfo* info = (*file)->find(name);
  if (info == nullptr) throw std::runtime_error(path + " has no " + name);
  return std::string(reinterpret_cast<const char*>((*file)->data(*info)), info->bytes());
}

}  // namespace troupe::testing
