#include "base/model/parameter.h"

#include <algorithm>
#include <utility>

namespace troupe {
namespace {

using Shape = std::vector<int64_t>;

/// Collects declarations of one component; every adder takes the name behind the current prefix.
class Declarer {
 public:
  Declarer(std::vector<ParameterDecl>& out, std::string component) : out_(out), component_(std::move(component)) {}
  void set_prefix(std::string prefix) { prefix_ = std::move(prefix); }

  void replicated(const std::string& name, Shape shape, TpGradient gradient = TpGradient::kSame) {
    add(name, std::move(shape), TpLayout::kReplicated, gradient, 0);
  }
  void cut(const std::string& name, Shape shape, TpLayout layout, int64_t head_dim = 0) {
    add(name, std::move(shape), layout, TpGradient::kOwn, head_dim);
  }

 private:
  void add(const std::string& name, Shape shape, TpLayout layout, TpGradient gradient, int64_t head_dim) {
    ParameterDecl p;
    p.name = prefix_ + name;
    p.decay = shape.size() > 1;
    p.shape = std::move(shape);
    p.component = component_;
    p.tp_layout = layout;
    p.tp_gradient = gradient;
    p.head_dim = head_dim;
    out_.push_back(std::move(p));
  }

  std::vector<ParameterDecl>& out_;
  std::string component_, prefix_;
};

void declare_vision(const VisionConfig& v, std::vector<ParameterDecl>& out) {
  Declarer d(out, "vision");
  d.set_prefix("visual.");
  d.replicated("patch_embed.proj.weight", {v.hidden, v.in_channels, v.temporal_patch_size, v.patch_size, v.patch_size});
  for (int64_t i = 0; i < v.depth; ++i) {
    d.set_prefix("visual.blocks." + std::to_string(i) + ".");
    d.replicated("norm1.weight", {v.hidden});
    d.replicated("attn.qkv.weight", {3 * v.hidden, v.hidden});
    d.replicated("attn.qkv.bias", {3 * v.hidden});
    d.replicated("attn.proj.weight", {v.hidden, v.hidden});
    d.replicated("attn.proj.bias", {v.hidden});
    d.replicated("norm2.weight", {v.hidden});
    d.replicated("mlp.gate_proj.weight", {v.intermediate, v.hidden});
    d.replicated("mlp.up_proj.weight", {v.intermediate, v.hidden});
    d.replicated("mlp.gate_proj.bias", {v.intermediate});
    d.replicated("mlp.up_proj.bias", {v.intermediate});
    d.replicated("mlp.down_proj.weight", {v.hidden, v.intermediate});
    d.replicated("mlp.down_proj.bias", {v.hidden});
  }
}

void declare_merger(const VisionConfig& v, std::vector<ParameterDecl>& out) {
  const int64_t width = v.hidden * v.merge_size * v.merge_size;
  Declarer d(out, "merger");
  d.set_prefix("visual.merger.");
  d.replicated("ln_q.weight", {v.hidden});
  d.replicated("mlp.0.weight", {width, width});
  d.replicated("mlp.0.bias", {width});
  d.replicated("mlp.2.weight", {v.out_hidden, width});
  d.replicated("mlp.2.bias", {v.out_hidden});
}

void declare_text_layer(const TextConfig& t, TpGradient norm, Declarer& d) {
  const int64_t queries = t.heads * t.head_dim, keys = t.kv_heads * t.head_dim;
  d.replicated("input_layernorm.weight", {t.hidden}, norm);
  d.cut("self_attn.q_proj.weight", {queries, t.hidden}, TpLayout::kQueryHeads, t.head_dim);
  d.cut("self_attn.k_proj.weight", {keys, t.hidden}, TpLayout::kKvHeads, t.head_dim);
  d.cut("self_attn.v_proj.weight", {keys, t.hidden}, TpLayout::kKvHeads, t.head_dim);
  d.cut("self_attn.q_proj.bias", {queries}, TpLayout::kQueryHeads, t.head_dim);
  d.cut("self_attn.k_proj.bias", {keys}, TpLayout::kKvHeads, t.head_dim);
  d.cut("self_attn.v_proj.bias", {keys}, TpLayout::kKvHeads, t.head_dim);
  d.cut("self_attn.o_proj.weight", {t.hidden, queries}, TpLayout::kColumns);
  d.replicated("post_attention_layernorm.weight", {t.hidden}, norm);
  d.cut("mlp.gate_proj.weight", {t.intermediate, t.hidden}, TpLayout::kRows);
  d.cut("mlp.up_proj.weight", {t.intermediate, t.hidden}, TpLayout::kRows);
  d.cut("mlp.down_proj.weight", {t.hidden, t.intermediate}, TpLayout::kColumns);
}

void declare_text(const TextConfig& t, bool tp_sequence, std::vector<ParameterDecl>& out) {
  // With tensor-sequence parallelism each tp rank normalises its own rows only, so a norm's gradient is partial on
  // each.
  const TpGradient norm = tp_sequence ? TpGradient::kSum : TpGradient::kSame;
  Declarer d(out, "text");
  d.set_prefix("model.");
  d.cut("embed_tokens.weight", {t.vocabulary, t.hidden}, TpLayout::kVocabulary);
  for (int64_t i = 0; i < t.layers; ++i) {
    d.set_prefix("model.layers." + std::to_string(i) + ".");
    declare_text_layer(t, norm, d);
  }
  d.set_prefix("");
  d.replicated("model.norm.weight", {t.hidden}, norm);
  if (!t.tied) d.cut("lm_head.weight", {t.vocabulary, t.hidden}, TpLayout::kVocabulary);
}

LocalSlice evenly_cut(int dim, int64_t n, int tp, int rank) {
  LocalSlice s;
  s.dim = dim;
  s.begin = s.own_begin = cut_begin(n, tp, rank);
  s.end = s.own_end = cut_begin(n, tp, rank + 1);
  return s;
}

LocalSlice vocabulary_slice(int64_t rows, int tp, int rank) {
  const int64_t each = (rows + tp - 1) / tp;
  LocalSlice s;
  s.begin = s.own_begin = std::min(rows, each * rank);
  s.end = s.own_end = std::min(rows, each * (rank + 1));
  s.padding = each - (s.end - s.begin);
  return s;
}

LocalSlice kv_slice(const ParameterDecl& p, const TextConfig& text, int tp, int rank) {
  const HeadRange held = kv_heads_of_rank(text, tp, rank);
  // Both ends of the ranges grow with the rank, so what lower ranks hold ends where the previous rank's range ends.
  const int64_t taken = rank == 0 ? 0 : kv_heads_of_rank(text, tp, rank - 1).last;
  LocalSlice s;
  s.begin = held.first * p.head_dim;
  s.end = held.last * p.head_dim;
  s.own_begin = std::max(held.first, taken) * p.head_dim;
  s.own_end = s.end;
  return s;
}

}  // namespace

HeadRange kv_heads_of_rank(const TextConfig& text, int tp, int rank) {
  TROUPE_CHECK(text.heads % tp == 0 && text.heads % text.kv_heads == 0);
  const int64_t queries = text.heads / tp, sharing = text.heads / text.kv_heads;
  return {queries * rank / sharing, (queries * (rank + 1) - 1) / sharing + 1};
}

LocalSlice local_slice(const ParameterDecl& p, const ModelConfig& config, int tp, int rank) {
  switch (p.tp_layout) {
    case TpLayout::kRows:
      return evenly_cut(0, p.shape[0], tp, rank);
    case TpLayout::kColumns:
      return evenly_cut(1, p.shape[1], tp, rank);
    case TpLayout::kQueryHeads:
      TROUPE_CHECK(p.shape[0] / p.head_dim % tp == 0);
      return evenly_cut(0, p.shape[0], tp, rank);
    case TpLayout::kKvHeads:
      return kv_slice(p, config.text, tp, rank);
    case TpLayout::kVocabulary:
      return vocabulary_slice(p.shape[0], tp, rank);
    case TpLayout::kReplicated:
      break;
  }
  LocalSlice whole;
  whole.end = p.shape[0];
  if (rank == 0) whole.own_end = p.shape[0];
  return whole;
}

std::vector<ParameterDecl> model_parameters(const ModelConfig& config, bool tp_sequence) {
  std::vector<ParameterDecl> out;
  declare_vision(config.vision, out);
  declare_merger(config.vision, out);
  declare_text(config.text, tp_sequence, out);
  return out;
}

}  // namespace troupe
