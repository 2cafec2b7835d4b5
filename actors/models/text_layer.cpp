#include "actors/models/text_layer.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/pow.h>

#include <cmath>

#include "actors/kernels/kernels.h"
#include "base/model/parameter.h"

namespace troupe {
namespace {

TrainedView fused_view(ParameterStore& store, const std::vector<std::string>& names) {
  return {store.fused_weight(names), store.fused_gradient(names)};
}

}  // namespace

TrainedView trained_view(ParameterStore& store, const std::string& name) {
  const LocalParameter& parameter = store.at(name);
  return {parameter.weight, parameter.gradient};
}

TextLayerViews text_layer_views(ParameterStore& store, int64_t layer) {
  const std::string prefix = "model.layers." + std::to_string(layer) + ".";
  const std::string attention = prefix + "self_attn.", mlp = prefix + "mlp.";
  TextLayerViews views;
  views.attention_norm = trained_view(store, prefix + "input_layernorm.weight");
  views.qkv =
      fused_view(store, {attention + "q_proj.weight", attention + "k_proj.weight", attention + "v_proj.weight"});
  views.qkv_bias = fused_view(store, {attention + "q_proj.bias", attention + "k_proj.bias", attention + "v_proj.bias"});
  views.output = trained_view(store, attention + "o_proj.weight");
  views.mlp_norm = trained_view(store, prefix + "post_attention_layernorm.weight");
  views.gate_up = fused_view(store, {mlp + "gate_proj.weight", mlp + "up_proj.weight"});
  views.down = trained_view(store, mlp + "down_proj.weight");
  return views;
}

LocalHeads local_heads(const TextConfig& text, int tp, int rank) {
  const HeadRange kv = kv_heads_of_rank(text, tp, rank);
  LocalHeads heads{text.heads / tp, kv.last - kv.first, text.head_dim, {}};
  const int64_t share = text.heads / text.kv_heads;
  for (int64_t q = 0; q < heads.query; ++q) heads.kv_of_query.push_back((rank * heads.query + q) / share - kv.first);
  if (heads.query % heads.kv != 0) return heads;
  const int64_t local_share = heads.query / heads.kv;
  for (int64_t q = 0; q < heads.query; ++q)
    if (heads.kv_of_query[static_cast<size_t>(q)] != q / local_share) return heads;
  heads.kv_of_query.clear();
  return heads;
}

void rotary_tables(const TextConfig& text, const at::Tensor& positions, at::Tensor& cos, at::Tensor& sin) {
  const auto options = positions.options().dtype(at::kFloat);
  const at::Tensor exponent = at::arange(0, text.head_dim, 2, options).div_(static_cast<double>(text.head_dim));
  const at::Tensor frequency = at::pow(text.rope_theta, exponent).reciprocal_();
  std::vector<at::Tensor> parts;
  int64_t first = 0;
  for (int64_t row = 0; row < 3; ++row) {
    const int64_t width = text.mrope_section[static_cast<size_t>(row)];
    parts.push_back(positions.select(0, row).to(at::kFloat).unsqueeze(1).mul(frequency.narrow(0, first, width)));
    first += width;
  }
  parts.insert(parts.end(), {parts[0], parts[1], parts[2]});
  const at::Tensor angle = at::cat(parts, 1);
  cos = angle.cos();
  sin = angle.sin();
}

at::Tensor text_attention(const TextLayerViews& views, const LocalHeads& heads, const TextUnitPlan& plan,
                          const at::Tensor& normed, bool last) {
  const at::Tensor qkv = column_linear(plan.tokens, normed, views.qkv, views.qkv_bias);
  const auto [q, k, v] = rope_split(qkv, plan.cos, plan.sin, heads.query, heads.kv);
  const double scale = 1.0 / std::sqrt(static_cast<double>(heads.head_dim));
  at::Tensor mixed = varlen_attention(q, k, v, plan.sequence_starts, true, scale, heads.kv_of_query);
  mixed = mixed.view({mixed.size(0), heads.query * heads.head_dim});
  if (last) mixed = take_rows(mixed, plan.loss_rows);
  return row_linear(last ? plan.loss : plan.tokens, mixed, views.output);
}

at::Tensor text_mlp(const TextLayerViews& views, const RowSharding& rows, const at::Tensor& normed) {
  return row_linear(rows, swiglu(column_linear(rows, normed, views.gate_up)), views.down);
}

}  // namespace troupe
