#include "actors/checkpoint/export_carried_files.h"

#include <spdlog/spdlog.h>

#include <filesystem>
#include <set>

#include "actors/checkpoint/export_processors.h"
#include "actors/checkpoint/json_file.h"

namespace troupe::checkpoint {
namespace {

namespace fs = std::filesystem;

/// Everything is carried but weights, in whatever format: the ones written here are newer.
bool is_carried(const fs::directory_entry& entry) {
  static const std::set<std::string> kWeights = {".safetensors", ".bin",     ".pt",   ".pth", ".gguf",
                                                 ".h5",          ".msgpack", ".onnx", ".ckpt"};
  const std::string name = entry.path().filename().string();
  return entry.is_regular_file() && name.front() != '.' && !kWeights.contains(entry.path().extension().string()) &&
         !name.ends_with(".index.json");
}

Status write_dtype(const std::string& path, FileDType dtype) {
  const char* name = dtype == FileDType::kBf16 ? "bfloat16" : dtype == FileDType::kF16 ? "float16" : "float32";
  TROUPE_ASSIGN(OrderedJson config, read_json_object(path));
  const auto set = [name](OrderedJson& object) {
    for (const char* key : {"torch_dtype", "dtype"})
      if (object.contains(key)) object[key] = name;
  };
  set(config);
  for (const char* part : {"text_config", "vision_config"})
    if (config.contains(part) && config[part].is_object()) set(config[part]);
  return write_json_file(path, config);
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
  return write_processor_settings(options, target);
}

}  // namespace troupe::checkpoint
