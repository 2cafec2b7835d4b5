#include "actors/calls/batch_calls.h"

#include <algorithm>
#include <cmath>

namespace troupe {
namespace {

using Clock = HandleTable::Clock;
constexpr int kMostSamples = 1 << 20;

BatchPlanOptions options_of(const JobContext& job) {
  return batch_plan_options(job.spec, job.config.vision, job.epoch_samples);
}

std::string list(const std::set<int>& units) {
  std::string text;
  for (int unit : units) text += (text.empty() ? "" : ", ") + std::to_string(unit);
  return text.empty() ? "none" : text;
}

}  // namespace

BatchCalls::BatchCalls(Host& host, HandleTable& handles)
    : host_(host),
      job_(host.job()),
      handles_(handles),
      planner_(job_.data->index(), job_.training_samples, options_of(job_)) {
  if (!job_.eval_data) held_out_ = {job_.eval_samples.begin(), job_.eval_samples.end()};
}

std::string BatchCalls::name(const Actor& actor, int unit) const {
  return job_.group(actor.group()).name + "/" + std::to_string(actor.rank()) + ", batch " + std::to_string(batch_) +
         ", unit " + std::to_string(unit);
}

Status BatchCalls::check_samples(const wire::BeginBatchRequest& request) const {
  const auto known = static_cast<int64_t>(job_.data->index().samples.size());
  if (request.batch() <= batch_)
    return invalid_argument("batch " + std::to_string(request.batch()) + " does not follow batch " +
                            std::to_string(batch_) + "; valid: a larger number");
  if (request.samples_size() == 0 || request.samples_size() > kMostSamples)
    return invalid_argument("a batch of " + std::to_string(request.samples_size()) + " samples; valid: 1 to " +
                            std::to_string(kMostSamples));
  for (int64_t sample : request.samples()) {
    if (sample < 0 || sample >= known)
      return invalid_argument("sample " + std::to_string(sample) + " is not in the data; valid: 0 to " +
                              std::to_string(known - 1));
    if (held_out_.contains(sample))
      return invalid_argument("sample " + std::to_string(sample) + " is held out for evaluation (eval.split)");
  }
  if (!(request.scale() >= 0) || !std::isfinite(request.scale()))
    return invalid_argument("scale " + std::to_string(request.scale()) + "; valid: a finite number from 0");
  return {};
}

Result<wire::BeginBatchReply> BatchCalls::begin(const wire::BeginBatchRequest& request) {
  TROUPE_RETURN_IF_ERROR(check_samples(request));
  std::vector<FeedMember> members;
  for (const auto& actor : host_.actors()) members.push_back({actor->group(), actor->rank()});
  StepPlan plan = planner_.plan_samples(request.batch(), {request.samples().begin(), request.samples().end()});
  TROUPE_ASSIGN(StepInput input, make_step_input(job_, *job_.data, std::move(plan), members, {}));
  input_ = std::move(input);
  batch_ = request.batch();
  stages_.clear();
  feeds_ = input_.plan.feeds();
  host_.boundary().begin_step(input_.plan, job_.data->index(), false);
  const double own_scale = 1.0 / static_cast<double>(std::max<int64_t>(input_.plan.supervised, 1));
  for (size_t m = 0; m < members.size(); ++m) {
    Actor& actor = *host_.actors()[m];
    actor.begin_step(input_, m, request.scale() > 0 ? request.scale() : own_scale, false);
    if (!request.accumulate()) actor.zero_gradients();
  }
  wire::BeginBatchReply reply;
  reply.set_encoder_units(input_.plan.vision_units());
  reply.set_decoder_units(input_.plan.text_units());
  reply.set_supervised(input_.plan.supervised);
  reply.set_tokens(input_.plan.tokens);
  reply.set_rows(input_.plan.rows);
  for (const auto& fed : feeds_) reply.add_feeds()->mutable_decoder_unit()->Add(fed.begin(), fed.end());
  return reply;
}

Status BatchCalls::check_unit(const Actor& actor, int unit, Stage expected, const char* verb) {
  if (batch_ == 0) return make_error(ErrorCode::kFailedPrecondition, std::string(verb) + ": no batch was begun");
  const int units = is_encoder(actor) ? input_.plan.vision_units() : input_.plan.text_units();
  if (unit < 0 || unit >= units)
    return invalid_argument(std::string(verb) + " of " + name(actor, unit) + ": valid units: 0 to " +
                            std::to_string(units - 1));
  const Stage stage = stages_[{actor.group(), actor.rank(), unit}];
  if (stage == expected) return {};
  const char* done = stage == Stage::kFresh       ? "its forward comes first"
                     : stage == Stage::kForwarded ? "its forward was called before"
                                                  : "its backward was called before";
  return make_error(ErrorCode::kFailedPrecondition, std::string(verb) + " of " + name(actor, unit) + ": " + done);
}

Status BatchCalls::check_batch(const wire::TensorHandle& handle) const {
  if (handle.batch() == batch_) return {};
  return make_error(ErrorCode::kFailedPrecondition, "tensor handle " + describe(handle) + " is not of batch " +
                                                        std::to_string(batch_) + ", which is under way");
}

std::set<int> BatchCalls::peers_of(const Actor& actor, int unit) const {
  if (is_encoder(actor)) {
    const auto& fed = feeds_[static_cast<size_t>(unit)];
    return {fed.begin(), fed.end()};
  }
  std::set<int> peers;
  for (size_t u = 0; u < feeds_.size(); ++u)
    if (std::find(feeds_[u].begin(), feeds_[u].end(), unit) != feeds_[u].end()) peers.insert(static_cast<int>(u));
  return peers;
}

Status BatchCalls::place(Actor& actor, int unit, const google::protobuf::RepeatedPtrField<wire::TensorHandle>& handles,
                         bool gradient, Clock::time_point deadline) {
  const int producer = gradient ? job_.decoder : job_.encoder;
  const auto layout = gradient ? wire::TensorHandle::ROW_GRADIENTS : wire::TensorHandle::ROWS;
  std::set<int> named;
  for (const wire::TensorHandle& handle : handles) {
    TROUPE_RETURN_IF_ERROR(check_generation(handle, job_.assignment.generation));
    if (handle.group() != producer || handle.layout() != layout)
      return invalid_argument("tensor handle " + describe(handle) + " cannot go into " + name(actor, unit) +
                              "; valid: " + (gradient ? "row gradients of group " : "rows of group ") +
                              job_.group(producer).name);
    TROUPE_RETURN_IF_ERROR(check_batch(handle));
    named.insert(handle.unit());
  }
  const std::set<int> peers = peers_of(actor, unit);
  if (named != peers)
    return invalid_argument(name(actor, unit) + " wants the " + (gradient ? "row gradients" : "rows") + " of units " +
                            list(peers) + " of group " + job_.group(producer).name + ", but the handles are of " +
                            list(named));
  for (int peer : peers) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    host_.boundary().wait_at_most(std::max(left, std::chrono::milliseconds(1)));
    Instruction wait;
    wait.op = Op::kWait;
    wait.group = actor.group();
    wait.unit = unit;
    wait.edge = 0;
    wait.peer_unit = peer;
    wait.gradient = gradient;
    TROUPE_RETURN_IF_ERROR(actor.wait(wait));
  }
  return {};
}

Result<wire::TensorHandle> BatchCalls::keep(const Actor& actor, int unit, uint64_t object, at::Tensor tensor) {
  wire::TensorHandle handle;
  handle.set_object(object);
  handle.set_group(actor.group());
  handle.set_rank(actor.rank());
  handle.set_batch(batch_);
  handle.set_unit(unit);
  handle.set_layout(is_encoder(actor) ? wire::TensorHandle::ROWS : wire::TensorHandle::ROW_GRADIENTS);
  int64_t rows = 0;
  const auto ranks = static_cast<int>(job_.assignment.group_slots[static_cast<size_t>(actor.group())].size());
  for (int r = 0; r < ranks; ++r)
    rows +=
        is_encoder(actor) ? host_.boundary().producer_row_count(r, unit) : host_.boundary().consumer_row_count(r, unit);
  handle.add_global_shape(rows);
  handle.add_global_shape(tensor.size(1));
  TROUPE_RETURN_IF_ERROR(handles_.add(handle, std::move(tensor), Clock::now()));
  return handle;
}

Result<wire::ForwardReply> BatchCalls::forward(Actor& actor, const wire::ForwardRequest& request,
                                               Clock::time_point deadline) {
  const int unit = request.unit();
  TROUPE_RETURN_IF_ERROR(check_unit(actor, unit, Stage::kFresh, "forward"));
  if (is_encoder(actor) && request.rows_size() > 0)
    return invalid_argument("forward of " + name(actor, unit) + ": an encoder takes no rows");
  if (!is_encoder(actor)) TROUPE_RETURN_IF_ERROR(place(actor, unit, request.rows(), false, deadline));
  const double before = actor.sums().loss;
  TROUPE_RETURN_IF_ERROR(actor.forward(unit));
  stages_[{actor.group(), actor.rank(), unit}] = Stage::kForwarded;
  wire::ForwardReply reply;
  if (is_encoder(actor)) {
    TROUPE_ASSIGN(*reply.mutable_rows(), keep(actor, unit, request.object(), actor.outgoing(unit)));
  } else {
    reply.set_loss_sum(actor.sums().loss - before);
  }
  return reply;
}

Result<wire::BackwardReply> BatchCalls::backward(Actor& actor, const wire::BackwardRequest& request,
                                                 Clock::time_point deadline) {
  const int unit = request.unit();
  if (!actor.trained())
    return make_error(ErrorCode::kFailedPrecondition,
                      "backward of " + name(actor, unit) + ": nothing in this group is trained");
  TROUPE_RETURN_IF_ERROR(check_unit(actor, unit, Stage::kForwarded, "backward"));
  if (!is_encoder(actor) && request.gradients_size() > 0)
    return invalid_argument("backward of " + name(actor, unit) + ": a decoder takes no gradients");
  if (is_encoder(actor)) TROUPE_RETURN_IF_ERROR(place(actor, unit, request.gradients(), true, deadline));
  TROUPE_RETURN_IF_ERROR(actor.backward(unit));
  stages_[{actor.group(), actor.rank(), unit}] = Stage::kDone;
  wire::BackwardReply reply;
  if (is_encoder(actor)) return reply;
  if (at::Tensor gradient = actor.outgoing(unit); gradient.defined()) {
    TROUPE_ASSIGN(*reply.mutable_gradients(), keep(actor, unit, request.object(), std::move(gradient)));
  }
  return reply;
}

Result<wire::SendRowsReply> BatchCalls::send_rows(Actor& actor, const wire::SendRowsRequest& request) {
  const wire::TensorHandle& handle = request.rows();
  TROUPE_ASSIGN(const at::Tensor rows, handles_.find(handle));
  if (handle.group() != actor.group() || handle.rank() != actor.rank())
    return invalid_argument("tensor handle " + describe(handle) + " is not of " + name(actor, handle.unit()));
  TROUPE_RETURN_IF_ERROR(check_batch(handle));
  const std::set<int> peers = peers_of(actor, handle.unit());
  if (!peers.contains(request.to_unit()))
    return invalid_argument("tensor handle " + describe(handle) + " has no row for unit " +
                            std::to_string(request.to_unit()) + "; valid: " + list(peers));
  const Crossing crossing = is_encoder(actor) ? Crossing{handle.unit(), request.to_unit(), false}
                                              : Crossing{request.to_unit(), handle.unit(), true};
  TROUPE_RETURN_IF_ERROR(host_.boundary().send(crossing, actor.rank(), rows));
  return wire::SendRowsReply();
}

}  // namespace troupe
