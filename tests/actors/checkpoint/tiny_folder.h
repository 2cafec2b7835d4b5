#pragma once

#include <functional>
#include <string>
#include <vector>

#include "actors/nn/parameter_store.h"
#include "base/safetensors/safetensors_file.h"
#include "tests/actors/checkpoint/lone_world.h"

/// A Hugging Face folder of a few thousand elements, made for a test and removed with it.
namespace troupe::testing {

struct TinyFolderOptions {
  bool tied = false;
  int64_t vocabulary = 41;
  FileDType dtype = FileDType::kF32;
  int files = 1;                            // more: shards with an index
  bool with_tied_head = false;              // lm_head.weight written although tied
  std::string leave_out;                    // a tensor that is not written
  std::string extra;                        // a tensor that no model has
  std::function<void(TensorInfo&)> change;  // of name and shape, before writing
};

class TinyFolder {
 public:
  explicit TinyFolder(const TinyFolderOptions& options = {});
  ~TinyFolder();
  TinyFolder(const TinyFolder&) = delete;
  TinyFolder& operator=(const TinyFolder&) = delete;
  /// The model folder.
  std::string path() const { return root_ + "/model"; }
  /// A place beside it that does not exist yet.
  std::string other(const std::string& name) const { return root_ + "/" + name; }

 private:
  void write_weights(const TinyFolderOptions& options);
  std::string root_;
};

ModelConfig config_of(const TinyFolder& folder);
ParameterStoreOptions store_options(const std::vector<std::string>& components, int tp, int tp_rank,
                                    at::ScalarType dtype = at::kFloat);

/// Loads (and changes) every rank of a vision group of one rank and a text group of `tp`, and lets them write their
/// parts for `target`.
void write_all_parts(const TinyFolder& folder, const std::string& target, int tp, at::ScalarType dtype,
                     const std::function<void(ParameterStore&)>& change = {});

std::string bytes_of(const std::string& path);
/// Bytes of a tensor in a safetensors file.
std::string tensor_bytes(const std::string& path, const std::string& name);

}  // namespace troupe::testing
