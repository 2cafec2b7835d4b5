#include "base/safetensors/model_folder.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/json_text.h"
#include "base/mapped_file.h"
#include "base/model/parameter.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::vector<std::string> weight_files(const std::string& folder) {
  std::vector<std::string> out;
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(folder, ec))
    if (entry.path().extension() == ".safetensors") out.push_back(entry.path().string());
  std::sort(out.begin(), out.end());
  return out;
}

Result<std::map<std::string, std::string>> read_index(const std::string& path) {
  TROUPE_ASSIGN(const auto mapped, MappedFile::open(path));
  const Result<Json> parsed = parse_json(mapped->bytes());
  if (!parsed.ok()) return invalid_argument(path + ": " + parsed.error().message);
  try {
    const Json& j = *parsed;
    std::map<std::string, std::string> out;
    for (const auto& [name, file] : j.at("weight_map").items()) {
      const std::string shard = file.get<std::string>();
      // A shard lies in the folder itself; a path out of it would read files that nobody named.
      if (shard.empty() || shard.find('/') != std::string::npos)
        return invalid_argument(path + ": tensor '" + name + "' names file '" + shard +
                                "'; valid: a file in the same folder");
      out[name] = shard;
    }
    if (out.empty()) return invalid_argument(path + ": its weight_map is empty");
    return out;
  } catch (const Json::exception& e) {
    return invalid_argument(path + ": is not a weight index: " + json_complaint(e));
  }
}

/// Joins the first ten of a list of complaints.
std::string join_first(const std::vector<std::string>& problems) {
  std::string text;
  for (size_t i = 0; i < problems.size() && i < 10; ++i) text += (i ? "; " : "") + problems[i];
  if (problems.size() > 10) text += "; and " + std::to_string(problems.size() - 10) + " more";
  return text;
}

std::string starts_swapped(const std::string& name, const std::string& from, const std::string& to) {
  return name.compare(0, from.size(), from) == 0 ? to + name.substr(from.size()) : std::string();
}

}  // namespace

std::string classic_tensor_name(const std::string& name_on_disk) {
  static const std::pair<const char*, const char*> kForms[] = {{"model.visual.", "visual."},
                                                               {"model.language_model.", "model."},
                                                               {"language_model.model.", "model."},
                                                               {"language_model.lm_head.", "lm_head."},
                                                               {"model.lm_head.", "lm_head."}};
  for (const auto& [from, to] : kForms)
    if (std::string swapped = starts_swapped(name_on_disk, from, to); !swapped.empty()) return swapped;
  return name_on_disk;
}

bool ModelFolder::has_weights(const std::string& folder) {
  return fs::exists(folder + "/model.safetensors.index.json") || !weight_files(folder).empty();
}

Result<ModelFolder> ModelFolder::open(const std::string& folder) {
  ModelFolder out;
  out.folder_ = folder;
  const std::string index = folder + "/model.safetensors.index.json";
  std::error_code ec;
  if (fs::exists(index, ec)) {
    TROUPE_RETURN_IF_ERROR(out.open_indexed(index));
    return out;
  }
  const std::vector<std::string> files = weight_files(folder);
  if (files.empty())
    return not_found(folder +
                     ": has no weights; expected model.safetensors or model.safetensors.index.json with its shards");
  std::string single = folder + "/model.safetensors";
  if (!fs::exists(single, ec)) {
    if (files.size() > 1)
      return not_found(folder + ": has " + std::to_string(files.size()) +
                       " safetensors files but no model.safetensors.index.json that says which tensor is where");
    single = files[0];
  }
  TROUPE_RETURN_IF_ERROR(out.add_file(single, nullptr));
  return out;
}

Status ModelFolder::open_indexed(const std::string& index_path) {
  TROUPE_ASSIGN(const auto index, read_index(index_path));
  std::set<std::string> shards;
  for (const auto& [name, shard] : index) shards.insert(shard);
  std::vector<std::string> missing;
  for (const std::string& shard : shards)
    if (!fs::exists(folder_ + "/" + shard)) missing.push_back("'" + shard + "'");
  if (!missing.empty()) return not_found(index_path + ": names files that are not there: " + join_first(missing));
  for (const std::string& shard : shards) TROUPE_RETURN_IF_ERROR(add_file(folder_ + "/" + shard, &index));
  for (const auto& [name, shard] : index) {
    const FolderTensor* t = find(classic_tensor_name(name));
    if (!t || t->info->name != name)
      return not_found(index_path + ": says that tensor '" + name + "' is in '" + shard +
                       "', but that file does not hold it");
  }
  return {};
}

Status ModelFolder::add_file(const std::string& path, const std::map<std::string, std::string>* index) {
  TROUPE_ASSIGN(std::shared_ptr<SafetensorsFile> file, SafetensorsFile::open(path));
  const std::string name = fs::path(path).filename().string();
  for (const TensorInfo& info : file->tensors()) {
    if (index) {
      const auto it = index->find(info.name);
      if (it == index->end() || it->second != name) continue;
    }
    TROUPE_RETURN_IF_ERROR(add_tensor(file, info));
  }
  files_.push_back(std::move(file));
  return {};
}

Status ModelFolder::add_tensor(const std::shared_ptr<SafetensorsFile>& file, const TensorInfo& info) {
  const auto [it, fresh] = tensors_.emplace(classic_tensor_name(info.name), FolderTensor{file, &info});
  if (fresh) return {};
  const FolderTensor& first = it->second;
  return invalid_argument(folder_ + ": tensor '" + it->first + "' occurs twice: as '" + first.info->name + "' in " +
                          first.file->path() + " and as '" + info.name + "' in " + file->path());
}

const FolderTensor* ModelFolder::find(const std::string& classic_name) const {
  auto it = tensors_.find(classic_name);
  return it == tensors_.end() ? nullptr : &it->second;
}

Status ModelFolder::check(const ModelConfig& config) const {
  std::vector<std::string> problems;
  std::set<std::string> expected;
  for (const ParameterDecl& p : model_parameters(config, false)) {
    expected.insert(p.name);
    const FolderTensor* t = find(p.name);
    if (!t)
      problems.push_back("tensor '" + p.name + "' is missing");
    else if (t->info->shape != p.shape)
      problems.push_back("tensor '" + t->info->name + "' has shape " + Json(t->info->shape).dump() +
                         ", config.json asks for " + Json(p.shape).dump());
    else if (t->info->dtype == FileDType::kI64)
      problems.push_back("tensor '" + t->info->name + "' has dtype I64; valid: F32, BF16, F16");
  }
  const FolderTensor* head = find("lm_head.weight");
  const FolderTensor* embedding = find("model.embed_tokens.weight");
  if (config.text.tied && head && embedding) {
    expected.insert("lm_head.weight");
    const bool equal = head->info->dtype == embedding->info->dtype && head->info->shape == embedding->info->shape &&
                       std::memcmp(head->data(), embedding->data(), head->info->bytes()) == 0;
    if (!equal)
      problems.push_back("tensor '" + head->info->name + "' differs from '" + embedding->info->name +
                         "', but config.json ties them (tie_word_embeddings: true)");
  }
  for (const auto& [name, t] : tensors_)
    if (!expected.contains(name)) problems.push_back("tensor '" + t.info->name + "' is unexpected");
  if (problems.empty()) return {};
  return invalid_argument(folder_ + ": the weights do not match config.json: " + join_first(problems));
}

}  // namespace troupe
