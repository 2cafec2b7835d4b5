#include "actors/checkpoint/export_carried_files.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

namespace troupe::checkpoint {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;  // keeps the order of keys

/// Everything is carried but weights, in whatever format: the ones written here are newer.
bool is_carried(const fs::directory_entry& entry) {
  static const std::set<std::string> kWeights = {".safetensors", ".bin",     ".pt",   ".pth", ".gguf",
                                                 ".h5",          ".msgpack", ".onnx", ".ckpt"};
  const std::string name = entry.path().filename().string();
  return entry.is_regular_file() && name.front() != '.' && !kWeights.contains(entry.path().extension().string()) &&
         !name.ends_with(".index.json");
}

Result<Json> read_json(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  Json json = Json::parse(in, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded() || !json.is_object()) return invalid_argument(path + ": is not a JSON object");
  return json;
}

Status write_json(const std::string& path, const Json& json) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << json.dump(2) << '\n';
  out.close();
  if (!out) return make_error(ErrorCode::kResourceExhausted, path + ": cannot be written");
  return {};
}

/// Both spellings of the limits: the keys of older processors, and the "size" of newer ones.
void set_pixel_limits(Json& processor, const ExportOptions& options) {
  const auto set = [&](const char* key, const char* size_key, int64_t value) {
    if (value <= 0) return;
    const bool by_size = processor.contains("size") && processor["size"].is_object();
    if (by_size) processor["size"][size_key] = value;
    if (!by_size || processor.contains(key)) processor[key] = value;
  };
  set("min_pixels", "shortest_edge", options.min_pixels);
  set("max_pixels", "longest_edge", options.max_pixels);
}

Status write_pixel_limits(const ExportOptions& options, const std::string& target) {
  if (options.min_pixels <= 0 && options.max_pixels <= 0) return {};
  const std::string alone = target + "/preprocessor_config.json", nested = target + "/processor_config.json";
  bool written = false;
  if (fs::exists(alone)) {
    TROUPE_ASSIGN(Json processor, read_json(alone));
    set_pixel_limits(processor, options);
    TROUPE_RETURN_IF_ERROR(write_json(alone, processor));
    written = true;
  }
  if (fs::exists(nested)) {
    TROUPE_ASSIGN(Json processor, read_json(nested));
    if (processor.contains("image_processor") && processor["image_processor"].is_object()) {
      set_pixel_limits(processor["image_processor"], options);
      TROUPE_RETURN_IF_ERROR(write_json(nested, processor));
      written = true;
    }
  }
  if (!written)
    spdlog::warn(
        "export: {} has no preprocessor_config.json, so the pixel limits of training are not in the exported folder",
        options.source_folder);
  return {};
}

Status write_dtype(const std::string& path, FileDType dtype) {
  const char* name = dtype == FileDType::kBf16 ? "bfloat16" : dtype == FileDType::kF16 ? "float16" : "float32";
  TROUPE_ASSIGN(Json config, read_json(path));
  const auto set = [name](Json& object) {
    for (const char* key : {"torch_dtype", "dtype"})
      if (object.contains(key)) object[key] = name;
  };
  set(config);
  for (const char* part : {"text_config", "vision_config"})
    if (config.contains(part) && config[part].is_object()) set(config[part]);
  return write_json(path, config);
}

/// Copies a file; the source may be read-only, the copy belongs to the user.
Status carry_file(const fs::path& from, const std::string& to) {
  std::error_code ec;
  fs::copy_file(from, to, fs::copy_options::overwrite_existing, ec);
  if (ec) return invalid_argument(from.string() + ": cannot be copied to " + to + ": " + ec.message());
  fs::permissions(to, fs::perms::owner_write | fs::perms::owner_read, fs::perm_options::add, ec);
  return {};
}

/// The one folder below a model's that transformers reads.
Status carry_named_templates(const std::string& from, const std::string& to) {
  const std::string name = "/additional_chat_templates";
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(from + name, ec)) {
    if (!entry.is_regular_file() || entry.path().extension() != ".jinja") continue;
    fs::create_directories(to + name, ec);
    TROUPE_RETURN_IF_ERROR(carry_file(entry.path(), to + name + "/" + entry.path().filename().string()));
  }
  return {};
}

}  // namespace

Status carry_files(const ExportOptions& options, const std::string& target, const FileDType* new_dtype) {
  std::set<std::string> names;
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(options.source_folder, ec)) {
    if (!is_carried(entry)) continue;
    const std::string name = entry.path().filename().string();
    TROUPE_RETURN_IF_ERROR(carry_file(entry.path(), target + "/" + name));
    names.insert(name);
  }
  TROUPE_RETURN_IF_ERROR(carry_named_templates(options.source_folder, target));
  if (!names.contains("config.json")) return not_found(options.source_folder + "/config.json: is missing");
  for (const char* optional : {"tokenizer.json", "tokenizer_config.json", "generation_config.json"})
    if (!names.contains(optional))
      spdlog::warn("export: {} has no {}; the exported folder goes without", options.source_folder, optional);
  if (!names.contains("preprocessor_config.json") && !names.contains("processor_config.json"))
    spdlog::warn("export: {} has no preprocessor_config.json; the exported folder goes without", options.source_folder);
  if (new_dtype != nullptr) TROUPE_RETURN_IF_ERROR(write_dtype(target + "/config.json", *new_dtype));
  return write_pixel_limits(options, target);
}

}  // namespace troupe::checkpoint
