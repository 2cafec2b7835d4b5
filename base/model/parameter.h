#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/mesh/mesh.h"
#include "base/model/model_config.h"

/// What a model's parameters are and how each lies on a group's mesh. From these declarations everything else is
/// derived: local shapes, gradient reduction, the ZeRO set, ownership for the global norm, slices of files. Pure data,
/// no tensors.
namespace troupe {

/// How the weight lies along the tp axis.
enum class TpLayout : uint8_t {
  kReplicated,  // the whole tensor on every rank
  kRows,        // dimension 0, cut by cut_begin (column-parallel weights and their biases)
  kColumns,     // dimension 1, cut by cut_begin (row-parallel weights)
  kQueryHeads,  // dimension 0 in blocks of head_dim: the query heads of the rank (heads % tp == 0)
  kKvHeads,  // dimension 0 in blocks of head_dim: every KV head that a query head of the rank uses; ranks may share a
             // head
  kVocabulary,  // dimension 0, ceil(V / tp) rows a rank, the tail padded with zeros that are never saved
};

/// What the gradient still needs over tp, after the backward pass of one rank (over dp, cp and sp it is always a sum).
enum class TpGradient : uint8_t {
  kOwn /* sharded: nothing */,
  kSame /* equal on all ranks */,
  kSum /* partial on each rank */
};

struct ParameterDecl {
  std::string name;            // the classic Hugging Face name, such as "visual.blocks.0.attn.qkv.weight"
  std::vector<int64_t> shape;  // global
  std::string component;       // "vision" | "merger" | "text"
  TpLayout tp_layout = TpLayout::kReplicated;
  TpGradient tp_gradient =
      TpGradient::kOwn;  // kKvHeads: the rows of shared heads are summed over the ranks that hold them
  bool decay = false;    // weight decay applies (more than one dimension)
  int64_t head_dim = 0;  // kQueryHeads, kKvHeads
  int64_t elements() const {
    int64_t n = 1;
    for (int64_t s : shape) n *= s;
    return n;
  }
};

/// The part of a parameter that one tp rank holds: indices [begin, end) of `dim`, then `padding` more zero rows.
struct LocalSlice {
  int dim = 0;
  int64_t begin = 0, end = 0, padding = 0;
  /// Sub-range of [begin, end) that this rank counts in norms and saves: each element of the global tensor has one
  /// owner over tp.
  int64_t own_begin = 0, own_end = 0;
};

/// The slice of `p` on tp rank `rank` of `tp`. Replicated parameters: everything, owned by rank 0.
LocalSlice local_slice(const ParameterDecl& p, const ModelConfig& config, int tp, int rank);

/// KV heads [first, last) that tp rank `rank` holds (every KV head used by one of its query heads).
struct HeadRange {
  int64_t first = 0, last = 0;
};
HeadRange kv_heads_of_rank(const TextConfig& text, int tp, int rank);

/// All parameters of the model in the order of memory: component by component, layer by layer, in forward order, with
/// q, k, v (and gate, up) adjacent so that one matrix product can use them. A tied head is not listed: it is the
/// embedding. `tp_sequence`: norms of the text model get TpGradient::kSum instead of kSame.
std::vector<ParameterDecl> model_parameters(const ModelConfig& config, bool tp_sequence);

}  // namespace troupe
