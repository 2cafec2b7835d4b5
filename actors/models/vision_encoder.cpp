#include "actors/models/vision_encoder.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/tensor.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "actors/kernels/device_copy.h"
#include "actors/kernels/kernels.h"
#include "actors/models/pass_marks.h"
#include "actors/models/sequence_attention.h"

namespace troupe {
namespace {

constexpr double kRotaryBase = 10000.0;

/// A weight and where its gradient is added; the gradient is undefined when frozen.
struct Weight {
  at::Tensor value, gradient;
};

struct Projection {
  Weight weight, bias;
  at::Tensor operator()(const at::Tensor& x) const {
    return linear(x, weight.value, bias.value, weight.gradient, bias.gradient);
  }
};

struct Block {
  Weight norm1, norm2;
  Projection qkv, proj, gate_up, down;
  LayerMarks marks;
  bool full_attention = false;
};

/// Finds weights in the store by name, under a prefix.
class WeightFinder {
 public:
  WeightFinder(ParameterStore& store, std::string prefix) : store_(store), prefix_(std::move(prefix)) {}
  Weight weight(const std::string& name) const {
    const LocalParameter& p = store_.at(prefix_ + name);
    return {p.weight, p.gradient};
  }
  Projection projection(const std::string& name) const { return {weight(name + ".weight"), weight(name + ".bias")}; }
  /// Two projections of the same input as one product.
  Projection fused(const std::string& first, const std::string& second) const {
    return {fused_weight(first + ".weight", second + ".weight"), fused_weight(first + ".bias", second + ".bias")};
  }

 private:
  Weight fused_weight(const std::string& first, const std::string& second) const {
    const std::vector<std::string> names = {prefix_ + first, prefix_ + second};
    return {store_.fused_weight(names), store_.fused_gradient(names)};
  }
  ParameterStore& store_;
  std::string prefix_;
};

at::Tensor as_matrix(const at::Tensor& t) { return t.defined() ? t.view({t.size(0), -1}) : t; }

struct EncoderContext final : VisionContext {
  at::Tensor rows;  // the root of the graph; undefined for an empty unit
};

/// What every block of a unit uses.
struct UnitTables {
  VisionRankPlan plan;
  at::Tensor cos, sin;  // [P_local, d] fp32
};

class Qwen25VisionEncoder final : public VisionEncoder {
 public:
  Qwen25VisionEncoder(const ModelConfig& config, ParameterStore& store, World& world)
      : config_(config.vision),
        store_(store),
        options_(at::TensorOptions(store.options().compute_dtype).device(store.options().device)),
        sequence_(world.over({Axis::kSp})) {
    TROUPE_CHECK(config_.heads % sequence_.size() == 0 && config_.head_dim() % 4 == 0);
    TROUPE_CHECK(config_.depth > 0);
    const WeightFinder find(store, "visual.");
    const Weight patch = find.weight("patch_embed.proj.weight");
    patch_embedding_.weight = {as_matrix(patch.value), as_matrix(patch.gradient)};
    for (int64_t i = 0; i < config_.depth; ++i) blocks_.push_back(find_block(store, i));
    first_norm_ = store.index_of("visual.blocks.0.norm1.weight");
    merger_norm_ = find.weight("merger.ln_q.weight");
    merger_first_ = find.projection("merger.mlp.0");
    merger_second_ = find.projection("merger.mlp.2");
  }

  at::Tensor forward(const VisionUnitLayout& layout, const at::Tensor& patches, bool keep_context,
                     std::unique_ptr<VisionContext>& context) override {
    context.reset();
    auto kept = std::make_unique<EncoderContext>();
    at::Tensor rows;
    if (layout.images.empty()) {
      rows = at::empty({0, config_.out_hidden}, options_);
    } else {
      const at::AutoGradMode recording(keep_context);
      const at::Tensor root = encode(make_tables(layout), copy_to_device(patches, options_.device()).to(options_));
      if (root.requires_grad()) kept->rows = root;
      rows = root.detach();
    }
    if (keep_context) context = std::move(kept);
    return rows;
  }

  void backward(std::unique_ptr<VisionContext> context, const at::Tensor& grad_rows) override {
    const auto& kept = static_cast<const EncoderContext&>(*context);
    if (!kept.rows.defined()) return;
    torch::autograd::backward({kept.rows}, {grad_rows.to(kept.rows.options())});
  }

 private:
  Block find_block(ParameterStore& store, int64_t index) const {
    const WeightFinder find(store, "visual.blocks." + std::to_string(index) + ".");
    Block b;
    b.norm1 = find.weight("norm1.weight");
    b.norm2 = find.weight("norm2.weight");
    b.qkv = find.projection("attn.qkv");
    b.proj = find.projection("attn.proj");
    b.gate_up = find.fused("mlp.gate_proj", "mlp.up_proj");
    b.down = find.projection("mlp.down_proj");
    const std::string block = "visual.blocks.", next = std::to_string(index + 1) + ".norm1.weight";
    b.marks = layer_marks(store, block + std::to_string(index) + ".attn.qkv.weight",
                          index + 1 < config_.depth ? block + next : "visual.merger.ln_q.weight");
    b.full_attention = std::ranges::find(config_.full_attention_blocks, index) != config_.full_attention_blocks.end();
    return b;
  }

  UnitTables make_tables(const VisionUnitLayout& layout) const {
    TROUPE_CHECK(static_cast<int>(layout.window_cuts.size()) == sequence_.size() + 1);
    UnitTables tables{plan_vision_rank(config_, layout, sequence_.rank()), {}, {}};
    // The first half of the rotated pairs turns with the row, the second with the column, and both halves of the head
    // alike.
    const int64_t axis_dim = config_.head_dim() / 2;
    const at::Tensor exponents =
        at::arange(0, axis_dim, 2, at::TensorOptions(at::kFloat)).div_(static_cast<double>(axis_dim));
    const at::Tensor frequencies = at::pow(at::Scalar(kRotaryBase), exponents).reciprocal_();
    const at::Tensor rows = at::tensor(tables.plan.rows, at::kFloat).unsqueeze(1).mul(frequencies);
    const at::Tensor columns = at::tensor(tables.plan.columns, at::kFloat).unsqueeze(1).mul(frequencies);
    const at::Tensor angles = at::cat({rows, columns, rows, columns}, 1);
    tables.cos = copy_to_device(angles.cos(), options_.device());
    tables.sin = copy_to_device(angles.sin(), options_.device());
    return tables;
  }

  at::Tensor encode(const UnitTables& tables, const at::Tensor& patches) const {
    TROUPE_CHECK(patches.size(0) == tables.cos.size(0) && patches.size(1) == config_.patch_dim());
    store_.about_to_use(first_norm_);
    at::Tensor stream = patch_embedding_(patches);
    at::Tensor normed = rms_norm(stream, blocks_[0].norm1.value, blocks_[0].norm1.gradient, config_.rms_eps);
    for (size_t i = 0; i < blocks_.size(); ++i) {
      const Block& b = blocks_[i];
      mark_layer(store_, b.marks, normed);
      NormedSum s = add_rms_norm(stream, b.proj(attend(b, tables, b.qkv(normed))), b.norm2.value, b.norm2.gradient,
                                 config_.rms_eps);
      const Weight& next_norm = i + 1 < blocks_.size() ? blocks_[i + 1].norm1 : merger_norm_;
      s = add_rms_norm(s.sum, b.down(swiglu(b.gate_up(s.normed))), next_norm.value, next_norm.gradient,
                       config_.rms_eps);
      stream = s.sum;
      normed = s.normed;
    }
    const int64_t merged = config_.merge_size * config_.merge_size;
    store_.about_to_use(static_cast<int>(store_.parameters().size()) - 1);
    return merger_second_(gelu(merger_first_(normed.view({normed.size(0) / merged, merged * config_.hidden}))));
  }

  at::Tensor attend(const Block& block, const UnitTables& tables, const at::Tensor& qkv) const {
    const auto [q, k, v] = rope_split(qkv, tables.cos, tables.sin, config_.heads, config_.heads);
    const double scale = 1.0 / std::sqrt(static_cast<double>(config_.head_dim()));
    const VisionRankPlan& plan = tables.plan;
    at::Tensor out;
    if (!block.full_attention) {
      out = varlen_attention(q, k, v, plan.window_starts, false, scale);
    } else if (sequence_.size() == 1) {
      out = varlen_attention(q, k, v, plan.frame_starts, false, scale);
    } else {
      out = sequence_attention(q, k, v, plan.frame_starts, plan.rank_rows, scale, sequence_);
    }
    return out.view({out.size(0), config_.hidden});
  }

  const VisionConfig config_;
  ParameterStore& store_;
  const at::TensorOptions options_;
  int first_norm_ = 0;
  Communicator& sequence_;
  Projection patch_embedding_;
  std::vector<Block> blocks_;
  Weight merger_norm_;
  Projection merger_first_, merger_second_;
};

}  // namespace

std::unique_ptr<VisionEncoder> create_vision_encoder(const ModelConfig& config, ParameterStore& store, World& world) {
  return std::make_unique<Qwen25VisionEncoder>(config, store, world);
}

}  // namespace troupe
