#include <ATen/ops/zeros_like.h>

#include "actors/host/actor.h"

namespace troupe {

Status VisionActor::make_model() {
  encoder_ = create_vision_encoder(job_.config, *store_, *world_);
  return {};
}

void VisionActor::begin_step(StepInput& input, size_t member, double, bool evaluation) {
  step_ = input.plan.step;
  inputs_ = &input.vision[member];
  keep_context_ = !evaluation && trained();
  units_.clear();
}

Status VisionActor::forward(int unit) {
  VisionUnitInput& input = (*inputs_)[static_cast<size_t>(unit)];
  UnitState& state = units_[unit];
  const SpanScope scope(job_.trace.get(), job_.span(SpanKind::kKernel, "encoder", step_, group_, rank_, unit));
  state.rows = encoder_->forward(input.layout, input.patches, keep_context_, state.context);
  input.patches.reset();
  return {};
}

Status VisionActor::post(const Instruction& i) {
  return boundary_.send({i.unit, i.peer_unit, false}, rank_, units_.at(i.unit).rows);
}

at::Tensor VisionActor::outgoing(int unit) const {
  const auto at = units_.find(unit);
  return at == units_.end() ? at::Tensor() : at->second.rows;
}

Status VisionActor::wait(const Instruction& i) {
  UnitState& state = units_.at(i.unit);
  if (!state.gradient.defined()) state.gradient = at::zeros_like(state.rows);
  return boundary_.receive({i.unit, i.peer_unit, true}, rank_, state.gradient);
}

Status VisionActor::backward(int unit) {
  UnitState state = std::move(units_.at(unit));
  units_.erase(unit);
  if (!state.gradient.defined()) state.gradient = at::zeros_like(state.rows);  // a unit without images
  const SpanScope scope(job_.trace.get(), job_.span(SpanKind::kKernel, "encoder", step_, group_, rank_, unit));
  encoder_->backward(std::move(state.context), state.gradient);
  return {};
}

}  // namespace troupe
