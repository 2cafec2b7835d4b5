#include <ATen/ops/empty.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "actors/host/actor.h"

namespace troupe {

int TextActor::lane() const { return spec().mesh.coordinate(rank_, Axis::kDp); }
int TextActor::tp_rank() const { return spec().mesh.coordinate(rank_, Axis::kTp); }

Status TextActor::make_model() {
  decoder_ = create_text_decoder(job_.config, *store_, *world_);
  return {};
}

void TextActor::begin_step(StepInput& input, size_t member, double scale, bool evaluation) {
  step_ = input.plan.step;
  input_ = &input;
  batches_ = &input.text[member];
  scale_ = scale;
  evaluation_ = evaluation;
  sums_ = {};
  units_.clear();
  sample_losses_.clear();
  vision_rows_.clear();
}

TextActor::UnitState& TextActor::unit_state(int unit) {
  UnitState& state = units_[unit];
  if (!state.stripe.defined())
    state.stripe =
        at::empty({boundary_.consumer_row_count(rank_, unit), job_.config.text.hidden},
                  at::TensorOptions().dtype(store_->options().compute_dtype).device(store_->options().device));
  return state;
}

Status TextActor::wait(const Instruction& i) {
  return boundary_.receive({i.peer_unit, i.unit, false}, rank_, unit_state(i.unit).stripe);
}

std::vector<int64_t> TextActor::stripe_sizes(int unit) {
  std::vector<int64_t> sizes;
  for (int t = 0; t < spec().mesh.size(Axis::kTp); ++t)
    sizes.push_back(boundary_.consumer_row_count(spec().mesh.with(rank_, Axis::kTp, t), unit));
  return sizes;
}

at::Tensor TextActor::gather_rows(int unit, const at::Tensor& stripe) {
  if (spec().mesh.size(Axis::kTp) == 1) return stripe;
  const std::vector<int64_t> sizes = stripe_sizes(unit);
  int64_t total = 0;
  for (int64_t s : sizes) total += s;
  const SpanScope scope(job_.trace.get(), job_.span(SpanKind::kKernel, "gather rows", step_, group_, rank_, unit));
  at::Tensor all = at::empty({total, stripe.size(1)}, stripe.options());
  if (total > 0) world_->over({Axis::kTp}).all_gather_rows(all, stripe, sizes);  // an empty unit is empty on every rank
  return all;
}

Status TextActor::forward(int unit) {
  const TextUnitBatch& batch = (*batches_)[static_cast<size_t>(unit)];
  UnitState& state = unit_state(unit);
  const bool sequence = store_->options().tp_sequence;
  at::Tensor rows = state.stripe;
  if (!sequence) rows = gather_rows(unit, state.stripe);
  if (keep_rows_) keep_sample_rows(unit, sequence ? gather_rows(unit, state.stripe) : rows);
  SpanScope scope(job_.trace.get(), job_.span(SpanKind::kKernel, "decoder", step_, group_, rank_, unit));
  const TextResult result = decoder_->forward(batch, rows, scale_, !evaluation_, state.context);
  scope.end();
  if (tp_rank() == 0) record(batch, result, unit);
  if (evaluation_) units_.erase(unit);
  return {};
}

Status TextActor::backward(int unit) {
  UnitState& state = units_.at(unit);
  const bool wanted = job_.trained(job_.encoder);
  SpanScope scope(job_.trace.get(), job_.span(SpanKind::kKernel, "decoder", step_, group_, rank_, unit));
  at::Tensor gradient = decoder_->backward(std::move(state.context), wanted);
  scope.end();
  if (!wanted) {
    units_.erase(unit);
    return {};
  }
  if (!store_->options().tp_sequence && spec().mesh.size(Axis::kTp) > 1) {
    // Every rank has the gradient of all rows; each sends that of the stripe it received.
    const std::vector<int64_t> sizes = stripe_sizes(unit);
    int64_t first = 0;
    for (int t = 0; t < tp_rank(); ++t) first += sizes[static_cast<size_t>(t)];
    gradient = gradient.narrow(0, first, sizes[static_cast<size_t>(tp_rank())]);
  }
  state.gradient = std::move(gradient);
  state.stripe.reset();
  return {};
}

Status TextActor::post(const Instruction& i) {
  return boundary_.send({i.peer_unit, i.unit, true}, rank_, units_.at(i.unit).gradient);
}

at::Tensor TextActor::outgoing(int unit) const {
  const auto at = units_.find(unit);
  return at == units_.end() ? at::Tensor() : at->second.gradient;
}

void TextActor::record(const TextUnitBatch& batch, const TextResult& result, int unit) {
  const auto& samples = input_->plan.text[static_cast<size_t>(lane())][static_cast<size_t>(unit)].samples;
  sums_.loss += result.loss_sum;
  sums_.targets += static_cast<double>(batch.loss_samples.size());
  sums_.correct += static_cast<double>(result.correct);
  std::vector<int64_t> supervised(samples.size(), 0);
  for (int64_t s : batch.loss_samples) ++supervised[static_cast<size_t>(s)];
  for (size_t s = 0; s < samples.size(); ++s)
    sample_losses_.push_back({samples[s], result.sample_loss.empty() ? 0 : result.sample_loss[s], supervised[s]});
  if (!evaluation_) return;
  const Dataset& data = job_.eval_dataset();
  const auto* targets = batch.targets.const_data_ptr<int64_t>();
  std::vector<ShownAnswer> answers(samples.size());
  for (size_t r = 0; r < batch.loss_samples.size(); ++r) {
    if (targets[r] == data.end_of_turn()) continue;
    ShownAnswer& answer = answers[static_cast<size_t>(batch.loss_samples[r])];
    answer.expected.push_back(targets[r]);
    answer.predicted.push_back(result.predicted[r]);
  }
  for (size_t s = 0; s < samples.size(); ++s) {
    if (answers[s].expected.empty()) continue;
    // Under the true prefix every token is the likeliest exactly when greedy decoding would give this answer.
    sums_.samples += 1;
    sums_.exact += answers[s].expected == answers[s].predicted ? 1 : 0;
    answers[s].sample = input_->plan.samples[static_cast<size_t>(samples[s])];
    if (shown_.size() < show_limit_) shown_.push_back(std::move(answers[s]));
  }
}

void TextActor::keep_sample_rows(int unit, const at::Tensor& all_rows) {
  if (tp_rank() != 0) return;
  int64_t at_row = 0;
  for (int32_t s : input_->plan.text[static_cast<size_t>(lane())][static_cast<size_t>(unit)].samples) {
    int64_t rows = 0;
    for (const StepImage& image : input_->plan.images)
      if (image.sample == s) rows += image.grid.tokens(job_.config.vision.merge_size);
    if (rows > 0) vision_rows_[s] = all_rows.narrow(0, at_row, rows).to(at::kFloat).cpu().clone();
    at_row += rows;
  }
}

}  // namespace troupe
