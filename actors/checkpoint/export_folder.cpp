#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "actors/checkpoint/export_carried_files.h"
#include "actors/checkpoint/export_parts.h"
#include "actors/checkpoint/model_io.h"
#include "base/checkpoint/checkpoint_folder.h"
#include "base/safetensors/model_folder.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;
using checkpoint::ExportParts;
using Declarations = std::map<std::string, ParameterDecl>;

constexpr const char* kHead = "lm_head.weight";
constexpr const char* kEmbedding = "model.embed_tokens.weight";

bool is_untouched(const ExportOptions& options, const ParameterDecl& decl) {
  const auto& names = options.untouched_components;
  return std::find(names.begin(), names.end(), decl.component) != names.end();
}

/// What a tensor on disk holds: a parameter, or the tied head, which is the embedding once more.
const ParameterDecl* declaration_of(const Declarations& declarations, const std::string& classic_name, bool tied) {
  const auto found = declarations.find(tied && classic_name == kHead ? kEmbedding : classic_name);
  return found == declarations.end() ? nullptr : &found->second;
}

/// One file of the source, written again with the same tensors in the same order.
Status rewrite_file(const SafetensorsFile& source, const ModelFolder& folder, const Declarations& declarations,
                    bool tied, const ExportOptions& options, const ExportParts& parts, const std::string& target) {
  std::vector<TensorSpec> specs;
  std::vector<const TensorInfo*> kept;
  for (const TensorInfo& info : source.tensors()) {
    const FolderTensor* known = folder.find(classic_tensor_name(info.name));
    if (known == nullptr || known->info != &info) continue;  // an index that names another place for it
    specs.push_back({info.name, info.dtype, info.shape});
    kept.push_back(&info);
  }
  const std::string path = target + "/" + fs::path(source.path()).filename().string();
  TROUPE_ASSIGN(const std::unique_ptr<SafetensorsWriter> writer,
                SafetensorsWriter::create(path, specs, source.metadata()));
  for (const TensorInfo* info : kept) {
    const ParameterDecl* decl = declaration_of(declarations, classic_tensor_name(info->name), tied);
    if (decl == nullptr || is_untouched(options, *decl))
      TROUPE_RETURN_IF_ERROR(writer->append(source.data(*info), info->bytes()));
    else
      TROUPE_RETURN_IF_ERROR(parts.append(*decl, info->dtype, *writer));
  }
  return writer->finish();
}

Status write_like_source(const ModelConfig& config, const Declarations& declarations, const ExportOptions& options,
                         const ExportParts& parts, const std::string& target) {
  TROUPE_ASSIGN(const ModelFolder source, ModelFolder::open(options.source_folder));
  TROUPE_RETURN_IF_ERROR(source.check(config));
  for (const auto& file : source.files())
    TROUPE_RETURN_IF_ERROR(rewrite_file(*file, source, declarations, config.text.tied, options, parts, target));
  const std::string index = "/model.safetensors.index.json";
  std::error_code ec;
  if (fs::exists(options.source_folder + index)) fs::copy_file(options.source_folder + index, target + index, ec);
  if (ec) return invalid_argument(target + index + ": cannot be written: " + ec.message());
  return {};
}

/// Parameters in the order of the model, cut into files of at most `limit` bytes (a larger parameter has a file of its
/// own).
std::vector<std::vector<const ParameterDecl*>> split_files(const std::vector<ParameterDecl>& order,
                                                           const ExportParts& parts, int64_t limit, int64_t& total) {
  std::vector<std::vector<const ParameterDecl*>> files(1);
  int64_t filled = 0;
  for (const ParameterDecl& decl : order) {
    const int64_t bytes = decl.elements() * file_dtype_bytes(parts.dtype(decl.name));
    if (!files.back().empty() && filled + bytes > limit) {
      files.emplace_back();
      filled = 0;
    }
    files.back().push_back(&decl);
    filled += bytes;
    total += bytes;
  }
  return files;
}

std::string shard_name(size_t file, size_t files) {
  if (files == 1) return "model.safetensors";
  char name[64];
  std::snprintf(name, sizeof name, "model-%05zu-of-%05zu.safetensors", file + 1, files);
  return name;
}

Status write_fresh(const std::vector<ParameterDecl>& order, const ExportOptions& options, const ExportParts& parts,
                   const std::string& target) {
  int64_t total = 0;
  const auto files = split_files(order, parts, options.max_file_bytes, total);
  nlohmann::ordered_json index = {{"metadata", {{"total_size", total}}},
                                  {"weight_map", nlohmann::ordered_json::object()}};
  for (size_t f = 0; f < files.size(); ++f) {
    std::vector<TensorSpec> specs;
    for (const ParameterDecl* decl : files[f]) specs.push_back({decl->name, parts.dtype(decl->name), decl->shape});
    const std::string name = shard_name(f, files.size());
    TROUPE_ASSIGN(const std::unique_ptr<SafetensorsWriter> writer,
                  SafetensorsWriter::create(target + "/" + name, specs));
    for (const ParameterDecl* decl : files[f]) {
      TROUPE_RETURN_IF_ERROR(parts.append(*decl, parts.dtype(decl->name), *writer));
      index["weight_map"][decl->name] = name;
    }
    TROUPE_RETURN_IF_ERROR(writer->finish());
  }
  if (files.size() == 1) return {};
  std::ofstream out(target + "/model.safetensors.index.json", std::ios::binary);
  out << index.dump(2) << '\n';
  out.close();
  if (!out) return make_error(ErrorCode::kResourceExhausted, target + ": the weight index cannot be written");
  return {};
}

/// Puts the finished folder where an earlier export was.
Status move_into_place(const std::string& finished, const std::string& target) {
  std::error_code ec;
  const std::string old = target + ".old";
  fs::remove_all(old, ec);
  if (fs::exists(target)) fs::rename(target, old, ec);
  if (!ec) fs::rename(finished, target, ec);
  if (ec)
    return invalid_argument(target + ": the exported folder " + finished + " cannot be moved there: " + ec.message());
  fs::remove_all(old, ec);
  return {};
}

}  // namespace

Status assemble_export(const ExportOptions& options) {
  TROUPE_ASSIGN(const ModelConfig config, read_model_config(options.source_folder));
  TROUPE_ASSIGN(ExportParts parts, ExportParts::open(options.target_folder));
  const std::vector<ParameterDecl> order = model_parameters(config, false);
  const bool like_source = !options.random_init && ModelFolder::has_weights(options.source_folder);
  Declarations declarations;
  for (const ParameterDecl& decl : order) {
    if (!like_source || !is_untouched(options, decl)) TROUPE_RETURN_IF_ERROR(parts.check(decl));
    declarations.emplace(decl.name, decl);
  }
  const std::string partial = export_partial_folder(options.target_folder);
  std::error_code ec;
  fs::remove_all(partial, ec);
  fs::create_directories(partial, ec);
  if (ec) return invalid_argument(partial + ": cannot be created: " + ec.message());
  std::optional<FileDType> new_dtype;
  if (!like_source) new_dtype = parts.dtype(order.front().name);
  TROUPE_RETURN_IF_ERROR(checkpoint::carry_files(options, partial, new_dtype ? &*new_dtype : nullptr));
  TROUPE_RETURN_IF_ERROR(like_source ? write_like_source(config, declarations, options, parts, partial)
                                     : write_fresh(order, options, parts, partial));
  TROUPE_RETURN_IF_ERROR(move_into_place(partial, options.target_folder));
  fs::remove_all(export_parts_folder(options.target_folder), ec);
  if (ec) return invalid_argument(export_parts_folder(options.target_folder) + ": cannot be removed: " + ec.message());
  return {};
}

}  // namespace troupe
