#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/mesh/mesh.h"
#include "base/model/parameter.h"

/// The local parameters of one actor: one flat weight buffer and one flat fp32 gradient buffer for each (trained,
/// component) set, and views into them by name. Modules read weights and add gradients in place; the optimizer and the
/// ZeRO code see flat buffers only.
namespace troupe {

/// A parameter's place: weight and gradient are views into flat buffers, [local rows, ...] as local_slice says, padding
/// rows included.
struct LocalParameter {
  ParameterDecl decl;
  LocalSlice slice;
  at::Tensor weight;    // compute dtype
  at::Tensor gradient;  // fp32 (compute dtype in bf16-pure); undefined for frozen parameters
  bool trained = true;
  int buffer = 0;      // which FlatBuffer
  int64_t offset = 0;  // element offset in the buffer
  int64_t elements = 0;
};

/// Parameters that are reduced, sharded and updated alike: same component (so same learning rate) and same `trained`
/// flag.
struct FlatBuffer {
  std::string component;
  bool trained = true;
  at::Tensor weights;           // [n], compute dtype; n is a multiple of `padded_to`, the tail is zero
  at::Tensor gradients;         // [n], fp32 (or compute dtype in bf16-pure); undefined when frozen
  std::vector<int> parameters;  // indices into ParameterStore::parameters(), in memory order
};

struct ParameterStoreOptions {
  std::vector<std::string> components;  // of this group
  std::vector<std::string> frozen;      // components that are not trained
  int tp = 1, tp_rank = 0;
  bool tp_sequence = false;
  int64_t pad_to = 1;  // flat buffers are padded to a multiple of this (ZeRO shards)
  at::ScalarType compute_dtype = at::kFloat;
  bool gradients_in_compute_dtype = false;  // bf16-pure
  at::Device device = at::kCPU;
};

/// What a model's passes tell whoever moves its weights and gradients, by index into ParameterStore::parameters().
/// Called on the thread that the pass runs on.
struct PassHooks {
  std::function<void(int last)> before_use;   // the forward pass is about to use parameters up to `last`
  std::function<void(int first)> after_last;  // this backward pass adds nothing more to parameters from `first` on
};

/// Owner thread only.
class ParameterStore {
 public:
  ParameterStore(const ModelConfig& config, const ParameterStoreOptions& options);
  const ModelConfig& config() const { return config_; }
  const ParameterStoreOptions& options() const { return options_; }
  std::vector<LocalParameter>& parameters() { return parameters_; }
  std::vector<FlatBuffer>& buffers() { return buffers_; }
  /// By the classic Hugging Face name; a missing name is a broken invariant.
  LocalParameter& at(const std::string& name);
  int index_of(const std::string& name) const;
  bool contains(const std::string& name) const { return by_name_.contains(name); }
  /// One weight (or gradient) view over parameters that lie adjacent, concatenated along dimension 0:
  /// {"...q_proj.weight", "...k_proj.weight", ...}.
  at::Tensor fused_weight(const std::vector<std::string>& names);
  at::Tensor fused_gradient(const std::vector<std::string>& names);  // undefined when frozen
  void zero_gradients();
  /// One listener at a time; empty hooks end it.
  void listen(PassHooks hooks) { hooks_ = std::move(hooks); }
  /// Models call these where a layer begins.
  void about_to_use(int last) const {
    if (hooks_.before_use) hooks_.before_use(last);
  }
  void gradients_final_from(int first) const {
    if (hooks_.after_last) hooks_.after_last(first);
  }

 private:
  ModelConfig config_;
  ParameterStoreOptions options_;
  std::vector<LocalParameter> parameters_;
  std::vector<FlatBuffer> buffers_;
  std::unordered_map<std::string, int> by_name_;
  PassHooks hooks_;
};

}  // namespace troupe
