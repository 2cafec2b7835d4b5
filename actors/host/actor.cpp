#include "actors/host/actor.h"

#include <algorithm>

#include "actors/checkpoint/model_io.h"
#include "actors/host/device.h"
#include "base/program/gradient_buckets.h"

namespace troupe {

std::vector<double> StepSums::to_numbers() const {
  return {norm_squared, non_finite, loss, targets, correct, samples, exact, wire_rows, in_process_rows};
}

StepSums StepSums::from_numbers(const std::vector<double>& n) {
  TROUPE_CHECK(n.size() == kCount);
  return {n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8]};
}

void StepSums::add(const StepSums& other) {
  std::vector<double> mine = to_numbers();
  const std::vector<double> theirs = other.to_numbers();
  for (size_t i = 0; i < kCount; ++i) mine[i] += theirs[i];
  *this = from_numbers(mine);
}

namespace {

ParameterStoreOptions store_options(const JobContext& job, const GroupSpec& group, int rank, at::Device device) {
  ParameterStoreOptions o;
  o.components = group.components;
  for (const std::string& c : group.components)
    if (!job.spec.components.at(c).train) o.frozen.push_back(c);
  o.tp = group.mesh.size(Axis::kTp);
  o.tp_rank = group.mesh.coordinate(rank, Axis::kTp);
  o.tp_sequence = group.tp_sequence && o.tp > 1;
  o.pad_to = group.zero > 0 ? group.mesh.size(kZeroAxes) : 1;
  o.compute_dtype = job.spec.model.dtype == DType::kFp32 ? at::kFloat : at::kBFloat16;
  o.gradients_in_compute_dtype = job.spec.model.dtype == DType::kBf16Pure;
  o.device = device;
  return o;
}

}  // namespace

Status Actor::set_up() {
  const GroupSpec& group = spec();
  const SlotInfo& slot = job_.assignment.slots[static_cast<size_t>(job_.slot_of(group_, rank_).value)];
  job_.control->report_phase("meeting the ranks of group " + group.name);
  WorldOptions options;
  options.name = job_.assignment.job_id + "/g" + std::to_string(job_.assignment.generation.value) + "/" + group.name;
  options.mesh = group.mesh;
  options.rank = rank_;
  options.axes = {kWholeGroup, {Axis::kSp}, {Axis::kTp}};
  const bool training = job_.trained(group_) && trains(job_.assignment.mode);
  if (training) options.posted_axes = {kZeroAxes, {Axis::kTp}};
  if (!slot.data_address.empty()) options.interface_address = slot.data_address;
  options.timeout = std::chrono::minutes(10);
  TROUPE_ASSIGN(world_, create_group_world(std::move(options), job_.device, job_.control->store()));
  job_.control->report_phase("loading the weights of group " + group.name);
  store_ = std::make_unique<ParameterStore>(job_.config, store_options(job_, group, rank_, job_.device));
  if (job_.spec.model.init == ModelInit::kRandom) initialise_random(*store_, job_.spec.training.seed);
  if (training) make_optimizer();
  if (job_.spec.model.init == ModelInit::kPretrained)
    TROUPE_RETURN_IF_ERROR(load_pretrained(*store_, job_.spec.model.path, optimizer_.get()));
  return make_model();
}

void Actor::make_optimizer() {
  const GroupSpec& group = spec();
  optimizer_ = create_group_optimizer(*store_, *world_, job_.spec.training.optimizer, group.zero,
                                      most_bucket_elements(job_.spec, group));
  optimizer_->record(job_.trace.get(), [this](const char* name, int bucket, bool waits) {
    Span span = job_.span(waits ? SpanKind::kPeer : SpanKind::kKernel, name, step_, group_, rank_, bucket);
    if (!waits) span.lane = "collectives";
    return span;
  });
}

void Actor::settle() {
  if (optimizer_) optimizer_->wait_gathered();
}

void Actor::zero_gradients() {
  if (store_) store_->zero_gradients();
}

}  // namespace troupe
