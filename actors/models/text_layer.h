#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "actors/models/text_parallel.h"
#include "actors/nn/parameter_store.h"

/// One decoder layer of the text model on one tp rank: attention and MLP between their norms.
/// Letters: S tokens, H hidden, h and g this rank's query and key/value heads, d head size, I this rank's MLP features,
/// N rows.
namespace troupe {

/// The views of one layer in the store; q, k, v and gate, up are fused.
struct TextLayerViews {
  TrainedView attention_norm, qkv, qkv_bias, output, mlp_norm, gate_up, down;
};
TrainedView trained_view(ParameterStore& store, const std::string& name);
TextLayerViews text_layer_views(ParameterStore& store, int64_t layer);

/// This rank's heads.
struct LocalHeads {
  int64_t query = 0, kv = 0, head_dim = 0;
  std::vector<int64_t> kv_of_query;  // [h] local key/value head of each local query head; empty: equal shares in order
};
LocalHeads local_heads(const TextConfig& text, int tp, int rank);

/// What all layers of one unit share.
struct TextUnitPlan {
  std::vector<int64_t> sequence_starts;
  at::Tensor cos, sin;         // fp32 [S, d]
  RowSharding tokens;          // the residual stream up to the last layer's attention
  RowSharding loss;            // behind it: loss rows only
  at::Tensor loss_rows;        // int64 [L] among all tokens
  at::Tensor local_loss_rows;  // int64, this rank's loss rows among its tokens
};

/// cos and sin of the three-row rotary positions: feature i of a half turns by the row that mrope_section assigns to
/// it. positions int64 [3, S].
void rotary_tables(const TextConfig& text, const at::Tensor& positions, at::Tensor& cos, at::Tensor& sin);

/// normed [local tokens, H] -> attention behind its output projection, [local rows, H]: of all tokens, or of the loss
/// rows only (`last`).
at::Tensor text_attention(const TextLayerViews& views, const LocalHeads& heads, const TextUnitPlan& plan,
                          const at::Tensor& normed, bool last);

/// normed [local rows, H] -> SwiGLU MLP behind its down projection, [local rows, H].
at::Tensor text_mlp(const TextLayerViews& views, const RowSharding& rows, const at::Tensor& normed);

}  // namespace troupe
