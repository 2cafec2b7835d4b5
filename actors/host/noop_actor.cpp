#include "actors/host/noop_actor.h"

#include <ATen/ops/empty.h>

#include <algorithm>

namespace troupe {

void NoopActor::begin_step(StepInput& input, size_t, double, bool) {
  step_ = input.plan.step;
  sent_.clear();
  received_.clear();
}

at::Tensor NoopActor::make_rows(int64_t count) const { return at::empty({count, job_.config.text.hidden}, at::kFloat); }

Status NoopActor::check(const at::Tensor& rows, float expected, const char* what) const {
  const float* values = rows.const_data_ptr<float>();
  const float* wrong = std::find_if(values, values + rows.numel(), [&](float value) { return value != expected; });
  if (wrong == values + rows.numel()) return {};
  return data_loss("step " + std::to_string(step_) + ": " + what + " of " + job_.group(group_).name + "/" +
                   std::to_string(rank_) + " holds " + std::to_string(*wrong) + ", not " + std::to_string(expected));
}

Status NoopActor::forward(int unit) {
  if (!with_rows_) return {};
  if (!produces()) {
    const auto rows = received_.find(unit);
    return rows == received_.end() ? Status() : check(rows->second, static_cast<float>(step_), "a row");
  }
  at::Tensor made = make_rows(boundary_.producer_row_count(rank_, unit));
  std::fill_n(made.data_ptr<float>(), made.numel(), static_cast<float>(step_));
  sent_[unit] = std::move(made);
  return {};
}

Status NoopActor::backward(int unit) {
  if (!with_rows_) return {};
  const auto received = received_.find(unit);
  if (received == received_.end()) return {};
  if (produces()) return check(received->second, static_cast<float>(step_ + 1), "a gradient");
  at::Tensor gradient = make_rows(received->second.size(0));
  std::fill_n(gradient.data_ptr<float>(), gradient.numel(), static_cast<float>(step_ + 1));
  sent_[unit] = std::move(gradient);
  return {};
}

Status NoopActor::post(const Instruction& i) {
  if (!with_rows_) return {};
  if (produces()) return boundary_.send({i.unit, i.peer_unit, false}, rank_, sent_.at(i.unit));
  return boundary_.send({i.peer_unit, i.unit, true}, rank_, sent_.at(i.unit));
}

at::Tensor NoopActor::outgoing(int unit) const {
  const auto made = sent_.find(unit);
  return made == sent_.end() ? at::Tensor() : made->second;
}

Status NoopActor::wait(const Instruction& i) {
  if (!with_rows_) return {};
  at::Tensor& into = received_[i.unit];
  if (!into.defined())
    into = make_rows(produces() ? boundary_.producer_row_count(rank_, i.unit)
                                : boundary_.consumer_row_count(rank_, i.unit));
  if (produces()) return boundary_.receive({i.unit, i.peer_unit, true}, rank_, into);
  return boundary_.receive({i.peer_unit, i.unit, false}, rank_, into);
}

}  // namespace troupe
