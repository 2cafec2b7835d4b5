#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/model/model_config.h"
#include "base/result.h"
#include "base/safetensors/safetensors_file.h"

/// The weights of a Hugging Face model folder under their classic names, whatever file split and name form the folder
/// uses.
namespace troupe {

/// Where one tensor lies. Pointers and bytes are valid as long as `file`.
struct FolderTensor {
  std::shared_ptr<SafetensorsFile> file;  // shared: one mapping serves all tensors of its file
  const TensorInfo* info = nullptr;       // info->name is the name on disk
  const std::byte* data() const { return file->data(*info); }
};

/// The classic name of a name on disk: "model.visual.x" -> "visual.x", "model.language_model.x" -> "model.x",
/// "language_model.model.x" -> "model.x", "language_model.lm_head.x" -> "lm_head.x"; others unchanged.
std::string classic_tensor_name(const std::string& name_on_disk);

/// Thread-safe after open. Holds the mappings of all files.
class ModelFolder {
 public:
  /// Opens model.safetensors.index.json with its shards (the index decides: files that it does not name are ignored, a
  /// tensor that its shard lacks is refused), or else model.safetensors, or else one *.safetensors. NotFound when there
  /// are no weights.
  static Result<ModelFolder> open(const std::string& folder);
  /// True when the folder has weights at all (index or any *.safetensors).
  static bool has_weights(const std::string& folder);

  const std::string& folder() const { return folder_; }
  /// By classic name.
  const std::map<std::string, FolderTensor>& tensors() const { return tensors_; }
  const FolderTensor* find(const std::string& classic_name) const;
  /// The files in the order of their names, for rewriting with the same split.
  const std::vector<std::shared_ptr<SafetensorsFile>>& files() const { return files_; }

  /// Compares with the model's shapes: missing, unexpected and misshapen tensors are refused, all of them in one error
  /// (the first ten by name). A tied configuration may come with a head equal to the embedding, byte for byte; a
  /// different one is refused.
  Status check(const ModelConfig& config) const;

 private:
  Status add_file(const std::string& path, const std::map<std::string, std::string>* index);
  Status open_indexed(const std::string& index_path);
  Status add_tensor(const std::shared_ptr<SafetensorsFile>& file, const TensorInfo& info);

  std::string folder_;
  std::vector<std::shared_ptr<SafetensorsFile>> files_;
  std::map<std::string, FolderTensor> tensors_;
};

}  // namespace troupe
