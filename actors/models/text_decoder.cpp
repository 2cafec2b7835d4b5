#include "actors/models/text_decoder.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>

#include "actors/kernels/device_copy.h"
#include "actors/kernels/kernels.h"
#include "actors/models/pass_marks.h"
#include "actors/models/text_head.h"
#include "actors/models/text_layer.h"
#include "actors/models/text_parallel.h"
#include "base/model/parameter.h"

namespace troupe {
namespace {

using Indices = std::vector<int64_t>;

Indices to_host(const at::Tensor& tensor) {
  const at::Tensor host = tensor.to(at::kCPU).contiguous();
  return {host.const_data_ptr<int64_t>(), host.const_data_ptr<int64_t>() + host.numel()};
}

at::Tensor to_device(const Indices& values, at::Device device) {
  at::Tensor host = at::empty({static_cast<int64_t>(values.size())}, at::kLong);
  std::copy(values.begin(), values.end(), host.mutable_data_ptr<int64_t>());
  return copy_to_device(host, device);
}

/// Rows of one list that fall into [begin, end), counted from begin.
Indices rows_between(const Indices& rows, int64_t begin, int64_t end) {
  Indices inside;
  for (const int64_t row : rows)
    if (row >= begin && row < end) inside.push_back(row - begin);
  return inside;
}

/// Tokens whose embedding is looked up on this rank, and where.
struct Lookup {
  at::Tensor rows;     // int64 [n] positions among all S tokens
  at::Tensor indices;  // int64 [n] rows of the local embedding
};

struct DecoderContext : TextContext {
  at::Tensor input;            // leaf [local tokens, H]; undefined when the unit has no loss row
  at::Tensor output;           // [local loss rows, H] behind the final norm
  at::Tensor output_gradient;  // the same shape
  at::Tensor vision_rows;      // int64, this rank's token rows that vision rows fill
  RowSharding tokens;
  Lookup lookup;  // without the tokens that vision rows replace
  std::vector<int64_t> vision_shape;
  at::TensorOptions vision_options;
  explicit DecoderContext(RowSharding t) : tokens(std::move(t)) {}
};

class QwenTextDecoder final : public TextDecoder {
 public:
  QwenTextDecoder(const ModelConfig& config, ParameterStore& store, World& world);
  TextResult forward(const TextUnitBatch& batch, const at::Tensor& vision_rows, double scale, bool keep_context,
                     std::unique_ptr<TextContext>& context) override;
  at::Tensor backward(std::unique_ptr<TextContext> context, bool want_vision_gradient) override;
  at::Tensor next_tokens(const TextUnitBatch& batch, const at::Tensor& vision_rows) override;

 private:
  TextUnitPlan plan_unit(const TextUnitBatch& batch, const Indices& loss_rows) const;
  Lookup lookup(const Indices& ids, const Indices& skipped) const;
  at::Tensor embed(const RowSharding& tokens, const Lookup& lookup, const Indices& vision,
                   const at::Tensor& vision_rows) const;
  TextHeadOutput run_unit(const TextUnitBatch& batch, const TextUnitPlan& plan, const at::Tensor& vision_rows,
                          double scale, bool keep_context, DecoderContext& kept);
  at::Tensor run_layers(const at::Tensor& input, const TextUnitPlan& plan) const;
  void add_embedding_gradient(const DecoderContext& context, const at::Tensor& gradient) const;
  Indices local_vision_rows(const TextUnitBatch& batch, const RowSharding& tokens) const;

  TextConfig text_;
  ParameterStore& store_;
  Communicator& tp_;
  bool sequence_;
  at::Device device_;
  TrainedView embedding_, final_norm_, head_;
  std::vector<TextLayerViews> layers_;
  std::vector<LayerMarks> marks_;  // of each layer
  LocalHeads heads_;
  int64_t first_token_ = 0, tokens_ = 0;  // this rank's real vocabulary rows
};

QwenTextDecoder::QwenTextDecoder(const ModelConfig& config, ParameterStore& store, World& world)
    : text_(config.text),
      store_(store),
      tp_(world.over({Axis::kTp})),
      sequence_(store.options().tp_sequence && tp_.size() > 1),
      device_(store.options().device),
      embedding_(trained_view(store, "model.embed_tokens.weight")),
      final_norm_(trained_view(store, "model.norm.weight")),
      head_(text_.tied ? embedding_ : trained_view(store, "lm_head.weight")),
      heads_(local_heads(text_, tp_.size(), tp_.rank())) {
  TROUPE_CHECK(store.options().tp == tp_.size() && store.options().tp_rank == tp_.rank());
  const std::string prefix = "model.layers.", norm = ".input_layernorm.weight";
  for (int64_t layer = 0; layer < text_.layers; ++layer) {
    layers_.push_back(text_layer_views(store, layer));
    marks_.push_back(
        layer_marks(store, prefix + std::to_string(layer) + ".self_attn.q_proj.weight",
                    layer + 1 < text_.layers ? prefix + std::to_string(layer + 1) + norm : "model.norm.weight"));
  }
  const LocalSlice& slice = store.at("model.embed_tokens.weight").slice;
  first_token_ = slice.begin;
  tokens_ = slice.end - slice.begin;
}

TextUnitPlan QwenTextDecoder::plan_unit(const TextUnitBatch& batch, const Indices& loss_rows) const {
  const int64_t total = batch.ids.size(0), loss_total = static_cast<int64_t>(loss_rows.size());
  RowSharding tokens = RowSharding::replicated(tp_, total), loss = RowSharding::replicated(tp_, loss_total);
  if (sequence_) {
    Indices token_counts, loss_counts;
    for (int rank = 0; rank < tp_.size(); ++rank) {
      const int64_t begin = std::min(token_cut(total, tp_.size(), rank), total),
                    end = std::min(token_cut(total, tp_.size(), rank + 1), total);
      token_counts.push_back(end - begin);
      loss_counts.push_back(static_cast<int64_t>(rows_between(loss_rows, begin, end).size()));
    }
    tokens = RowSharding::sharded(tp_, token_counts);
    loss = RowSharding::sharded(tp_, loss_counts);
  }
  const int64_t first = tokens.first_row();
  TextUnitPlan plan{batch.sequence_starts,
                    {},
                    {},
                    tokens,
                    loss,
                    to_device(loss_rows, device_),
                    to_device(rows_between(loss_rows, first, first + tokens.local_rows()), device_)};
  rotary_tables(text_, copy_to_device(batch.positions, device_), plan.cos, plan.sin);
  return plan;
}

Lookup QwenTextDecoder::lookup(const Indices& ids, const Indices& skipped) const {
  std::vector<bool> skip(ids.size(), false);
  for (const int64_t row : skipped) skip[static_cast<size_t>(row)] = true;
  Indices rows, indices;
  for (size_t row = 0; row < ids.size(); ++row) {
    const int64_t index = ids[row] - first_token_;
    if (skip[row] || index < 0 || index >= tokens_) continue;
    rows.push_back(static_cast<int64_t>(row));
    indices.push_back(index);
  }
  return {to_device(rows, device_), to_device(indices, device_)};
}

Indices QwenTextDecoder::local_vision_rows(const TextUnitBatch& batch, const RowSharding& tokens) const {
  Indices rows = to_host(batch.vision_positions);
  if (!sequence_) return rows;
  std::sort(rows.begin(), rows.end());
  return rows_between(rows, tokens.first_row(), tokens.first_row() + tokens.local_rows());
}

at::Tensor QwenTextDecoder::embed(const RowSharding& tokens, const Lookup& lookup, const Indices& vision,
                                  const at::Tensor& vision_rows) const {
  at::Tensor partial = at::zeros({tokens.total_rows(), text_.hidden}, embedding_.weight.options());
  partial.index_copy_(0, lookup.rows, embedding_.weight.index_select(0, lookup.indices));
  at::Tensor rows = tokens.reduce(partial);
  if (vision.empty()) return rows;
  TROUPE_CHECK(vision_rows.defined() && vision_rows.size(0) == static_cast<int64_t>(vision.size()));
  return rows.index_copy_(0, to_device(vision, device_), vision_rows.detach().to(rows.scalar_type()));
}

at::Tensor QwenTextDecoder::run_layers(const at::Tensor& input, const TextUnitPlan& plan) const {
  at::Tensor residual = input;
  at::Tensor normed =
      rms_norm(input, layers_.front().attention_norm.weight, layers_.front().attention_norm.gradient, text_.rms_eps);
  for (size_t i = 0; i < layers_.size(); ++i) {
    const TextLayerViews& layer = layers_[i];
    const bool last = i + 1 == layers_.size();
    mark_layer(store_, marks_[i], normed);
    const at::Tensor attended = text_attention(layer, heads_, plan, normed, last);
    if (last) residual = take_rows(residual, plan.local_loss_rows);
    const NormedSum middle =
        add_rms_norm(attended, residual, layer.mlp_norm.weight, layer.mlp_norm.gradient, text_.rms_eps);
    const TrainedView& next = last ? final_norm_ : layers_[i + 1].attention_norm;
    const at::Tensor fed = text_mlp(layer, last ? plan.loss : plan.tokens, middle.normed);
    const NormedSum end = add_rms_norm(fed, middle.sum, next.weight, next.gradient, text_.rms_eps);
    residual = end.sum;
    normed = end.normed;
  }
  return normed;
}

TextHeadOutput QwenTextDecoder::run_unit(const TextUnitBatch& batch, const TextUnitPlan& plan,
                                         const at::Tensor& vision_rows, double scale, bool keep_context,
                                         DecoderContext& kept) {
  const Indices vision = local_vision_rows(batch, plan.tokens);
  kept.vision_rows = to_device(vision, device_);
  kept.lookup = lookup(to_host(batch.ids), to_host(batch.vision_positions));
  at::AutoGradMode graph(keep_context);
  store_.about_to_use(store_.index_of("model.layers.0.input_layernorm.weight"));
  kept.input = embed(plan.tokens, kept.lookup, vision, vision_rows).requires_grad_(keep_context);
  kept.output = run_layers(kept.input, plan);
  at::NoGradGuard no_graph;
  store_.about_to_use(static_cast<int>(store_.parameters().size()) - 1);
  TextHeadInput head;
  head.hidden = plan.loss.gather(kept.output.detach());
  head.targets = copy_to_device(batch.targets, device_);
  if (batch.loss_weights.defined()) head.loss_weights = copy_to_device(batch.loss_weights, device_);
  head.weight = head_;
  head.first_token = first_token_;
  head.tokens = tokens_;
  head.scale = scale;
  if (device_.is_cuda()) head.chunk_bytes = int64_t{1} << 30;
  head.want_gradient = keep_context;
  head.want_predictions = !keep_context;
  TextHeadOutput losses = text_head(head, tp_);
  if (keep_context) kept.output_gradient = plan.loss.reduce(losses.hidden_gradient);
  return losses;
}

TextResult QwenTextDecoder::forward(const TextUnitBatch& batch, const at::Tensor& vision_rows, double scale,
                                    bool keep_context, std::unique_ptr<TextContext>& context) {
  const Indices loss_rows = to_host(batch.loss_rows);
  const TextUnitPlan plan = plan_unit(batch, loss_rows);
  auto kept = std::make_unique<DecoderContext>(plan.tokens);
  kept->vision_shape = vision_rows.defined() ? vision_rows.sizes().vec() : Indices{0, text_.hidden};
  kept->vision_options = vision_rows.defined() ? vision_rows.options() : embedding_.weight.options();
  TextResult result;
  result.sample_loss.assign(std::max<size_t>(batch.sequence_starts.size(), 1) - 1, 0.0);
  // Without a loss row nothing has a gradient; every tp rank knows it from the batch and leaves alike.
  if (!loss_rows.empty()) {
    TextHeadOutput losses = run_unit(batch, plan, vision_rows, scale, keep_context, *kept);
    for (size_t i = 0; i < losses.losses.size(); ++i) {
      result.loss_sum += losses.losses[i];
      result.sample_loss[static_cast<size_t>(batch.loss_samples[i])] += losses.losses[i];
    }
    result.correct = losses.correct;
    result.predicted = std::move(losses.predicted);
  }
  if (keep_context) context = std::move(kept);
  return result;
}

void QwenTextDecoder::add_embedding_gradient(const DecoderContext& context, const at::Tensor& gradient) const {
  const at::Tensor rows = context.tokens.gather(gradient).index_select(0, context.lookup.rows);
  // Accumulating index_put_ adds repeated tokens in a fixed order on every device, which index_add_ does not.
  at::Tensor target = embedding_.gradient;
  target.index_put_({context.lookup.indices}, rows.to(target.scalar_type()), /*accumulate=*/true);
}

at::Tensor QwenTextDecoder::backward(std::unique_ptr<TextContext> context, bool want_vision_gradient) {
  auto& kept = static_cast<DecoderContext&>(*context);
  if (!embedding_.gradient.defined() && !want_vision_gradient) return {};
  if (!kept.input.defined())
    return want_vision_gradient ? at::zeros(kept.vision_shape, kept.vision_options) : at::Tensor();
  kept.output.backward(kept.output_gradient);
  kept.output.reset();
  at::NoGradGuard no_graph;
  const at::Tensor gradient = kept.input.grad();
  if (embedding_.gradient.defined()) add_embedding_gradient(kept, gradient);
  if (!want_vision_gradient) return {};
  return gradient.index_select(0, kept.vision_rows).to(kept.vision_options.dtype());
}

at::Tensor QwenTextDecoder::next_tokens(const TextUnitBatch& batch, const at::Tensor& vision_rows) {
  TextUnitBatch ends = batch;
  Indices rows;
  ends.loss_samples.clear();
  ends.loss_weights = at::Tensor();
  for (size_t i = 0; i + 1 < batch.sequence_starts.size(); ++i) {
    TROUPE_CHECK(batch.sequence_starts[i] < batch.sequence_starts[i + 1]);
    rows.push_back(batch.sequence_starts[i + 1] - 1);
    ends.loss_samples.push_back(static_cast<int64_t>(i));
  }
  ends.loss_rows = to_device(rows, at::kCPU);
  ends.targets = at::zeros({static_cast<int64_t>(rows.size())}, at::kLong);
  std::unique_ptr<TextContext> none;
  return to_device(forward(ends, vision_rows, 1.0, /*keep_context=*/false, none).predicted, at::kCPU);
}

}  // namespace

int64_t token_cut(int64_t tokens, int tp, int rank) { return (tokens + tp - 1) / tp * rank; }

std::unique_ptr<TextDecoder> create_text_decoder(const ModelConfig& config, ParameterStore& store, World& world) {
  return std::make_unique<QwenTextDecoder>(config, store, world);
}

}  // namespace troupe
