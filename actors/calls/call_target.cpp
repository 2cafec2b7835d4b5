#include "actors/calls/call_target.h"

#include <cmath>

#include "actors/host/checkpointing.h"
#include "actors/host/memory.h"
#include "base/checkpoint/checkpoint_folder.h"
#include "proto/rpc/error_message.h"
#include "proto/rpc/method_name.h"

namespace troupe {
namespace {

constexpr size_t kMostReadBytes = 1 << 20;

template <typename Reply>
Status put(Result<Reply> reply, Reply* into) {
  if (!reply.ok()) return reply.error();
  into->Swap(&*reply);
  return {};
}

}  // namespace

CallTarget::CallTarget(Host& host, HandleTable& handles)
    : host_(host), job_(host.job()), handles_(handles), batch_(host, handles) {}

wire::Answer CallTarget::carry_out(const wire::Call& call, HandleTable::Clock::time_point deadline) {
  ++calls_;
  wire::Answer answer;
  answer.set_id(call.id());
  const Status status = [&]() -> Status {
    try {
      return dispatch(call, deadline, answer);
    } catch (const ErrorException& e) {
      return e.error;
    } catch (const std::exception& e) {
      return internal_error(e.what());
    }
  }();
  if (status.ok()) return answer;
  Error error = wrap(status.error(), "call " + method_name(call.arguments_case()));
  if (error.origin.empty())
    error.origin = call.group() >= 0 && call.group() < static_cast<int>(job_.spec.groups.size())
                       ? job_.group(call.group()).name + "/" + std::to_string(call.rank())
                       : "slot " + std::to_string(job_.assignment.self.value);
  answer.clear_result();
  *answer.mutable_error() = to_message(error);
  return answer;
}

Status CallTarget::dispatch(const wire::Call& call, HandleTable::Clock::time_point deadline, wire::Answer& answer) {
  if (call.has_echo()) {  // first: what a round trip costs is measured by it
    *answer.mutable_echo()->mutable_payload() = call.echo().payload();
    return {};
  }
  if (call.generation() != job_.assignment.generation.value)
    return make_error(ErrorCode::kAborted, "it is of generation " + std::to_string(call.generation()) +
                                               ", which has ended; the job runs generation " +
                                               std::to_string(job_.assignment.generation.value));
  // What all ranks or hosts do together is done late rather than by some of them.
  if ((call.has_describe() || call.has_read_tensor()) && HandleTable::Clock::now() >= deadline)
    return deadline_exceeded("its time was over before the calls ahead of it were done; it was not carried out");
  if (call.has_finish()) {
    *answer.mutable_finish() = finish(call.finish());
    return {};
  }
  if (is_noop(job_.assignment.mode))
    return make_error(ErrorCode::kFailedPrecondition, "the actors of this bench do nothing but echo");
  switch (call.arguments_case()) {
    case wire::Call::kBeginBatch:
      return put(batch_.begin(call.begin_batch()), answer.mutable_begin_batch());
    case wire::Call::kSave:
      return put(save(call.save()), answer.mutable_save());
    case wire::Call::kExportModel:
      return put(export_model(), answer.mutable_export_model());
    case wire::Call::kReadTensor:
      return put(read(call.read_tensor()), answer.mutable_read_tensor());
    case wire::Call::ARGUMENTS_NOT_SET:
      return invalid_argument("it names no method that this version knows");
    default:
      break;
  }
  TROUPE_ASSIGN(const size_t position, position_of(call));
  Actor& actor = *host_.actors()[position];
  job_.control->publish_progress(batch_.batch(), method_name(call.arguments_case()).c_str(), actor.group(),
                                 actor.rank());
  const AllocationOwner owner(static_cast<int>(position) + 1);
  return dispatch_to(actor, call, deadline, answer);
}

Status CallTarget::dispatch_to(Actor& actor, const wire::Call& call, HandleTable::Clock::time_point deadline,
                               wire::Answer& answer) {
  switch (call.arguments_case()) {
    case wire::Call::kDescribe:
      *answer.mutable_describe() = describe_actor(actor);
      return {};
    case wire::Call::kForward:
      return put(batch_.forward(actor, call.forward(), deadline), answer.mutable_forward());
    case wire::Call::kBackward:
      return put(batch_.backward(actor, call.backward(), deadline), answer.mutable_backward());
    case wire::Call::kSendRows:
      return put(batch_.send_rows(actor, call.send_rows()), answer.mutable_send_rows());
    case wire::Call::kReduce:
      return put(reduce(actor), answer.mutable_reduce());
    case wire::Call::kUpdate:
      return put(update(actor, call.update()), answer.mutable_update());
    default:
      return internal_error("it has no actor's method");
  }
}

Result<size_t> CallTarget::position_of(const wire::Call& call) const {
  const auto& actors = host_.actors();
  for (size_t position = 0; position < actors.size(); ++position)
    if (actors[position]->group() == call.group() && actors[position]->rank() == call.rank()) return position;
  return not_found("group " + std::to_string(call.group()) + " rank " + std::to_string(call.rank()) +
                   " does not live on slot " + std::to_string(job_.assignment.self.value));
}

wire::DescribeReply CallTarget::describe_actor(Actor& actor) const {
  wire::DescribeReply reply;
  const GroupSpec& group = job_.group(actor.group());
  reply.set_group(group.name);
  for (const std::string& component : group.components) reply.add_components(component);
  reply.set_trained(actor.trained());
  int64_t parameters = 0;
  for (const auto& parameter : actor.store().parameters()) parameters += parameter.elements;
  reply.set_parameters(parameters);
  reply.set_steps_done(host_.last_step());
  for (const DataSource& source : job_.spec.data.sources) reply.add_sources()->set_path(source.path);
  if (job_.spec.data.sources.empty()) reply.add_sources()->set_path("synthetic");
  int64_t number = 0;
  for (const SampleView sample : job_.data->index().samples) {
    auto& source = *reply.mutable_sources(sample.source);
    if (source.samples() == 0) source.set_first_sample(number);
    source.set_samples(source.samples() + 1);
    ++number;
  }
  return reply;
}

Result<wire::ReduceReply> CallTarget::reduce(Actor& actor) {
  wire::ReduceReply reply;
  if (actor.trained()) {
    actor.optimizer()->reduce_gradients();
    const NormPart part = actor.optimizer()->norm_part();
    reply.set_norm_squared(part.squared);
    reply.set_non_finite(part.non_finite);
  }
  const StepSums sums = actor.sums();
  reply.set_loss_sum(sums.loss);
  reply.set_targets(sums.targets);
  reply.set_correct(sums.correct);
  return reply;
}

Result<wire::UpdateReply> CallTarget::update(Actor& actor, const wire::UpdateRequest& request) {
  if (!actor.trained())
    return make_error(ErrorCode::kFailedPrecondition,
                      "nothing in group " + job_.group(actor.group()).name + " is trained");
  if (request.number() < 1)
    return invalid_argument("update number " + std::to_string(request.number()) + "; valid: 1 and more");
  if (!(request.gradient_scale() > 0) || !std::isfinite(request.gradient_scale()))
    return invalid_argument("gradient_scale " + std::to_string(request.gradient_scale()) +
                            "; valid: a finite number above 0");
  std::map<std::string, double> rates(request.learning_rate().begin(), request.learning_rate().end());
  for (const std::string& component : job_.group(actor.group()).components)
    if (job_.spec.components.at(component).train && !rates.contains(component))
      return invalid_argument("learning_rate has no entry for component '" + component + "', which is trained");
  for (const auto& [component, rate] : rates)
    if (!(rate >= 0) || !std::isfinite(rate))
      return invalid_argument("learning_rate of component '" + component + "' is " + std::to_string(rate) +
                              "; valid: a finite number from 0");
  actor.optimizer()->update(request.number(), rates, request.gradient_scale());
  actor.optimizer()->gather_weights();
  return wire::UpdateReply();
}

Result<wire::ReadTensorReply> CallTarget::read(const wire::ReadTensorRequest& request) const {
  TROUPE_ASSIGN(const at::Tensor tensor, handles_.find(request.tensor()));
  if (tensor.nbytes() > kMostReadBytes)
    return invalid_argument("tensor handle " + describe(request.tensor()) + " holds " +
                            std::to_string(tensor.nbytes()) + " bytes; a call reads at most " +
                            std::to_string(kMostReadBytes));
  const at::Tensor here = tensor.cpu().contiguous();
  wire::ReadTensorReply reply;
  reply.set_dtype(handle_dtype(tensor));
  for (int64_t size : here.sizes()) reply.add_shape(size);
  reply.set_data(here.const_data_ptr(), here.nbytes());
  return reply;
}

Result<wire::SaveReply> CallTarget::save(const wire::SaveRequest& request) {
  if (request.step() < 1) return invalid_argument("step " + std::to_string(request.step()) + "; valid: 1 and more");
  TROUPE_RETURN_IF_ERROR(save_checkpoint(job_, host_.actors(), {request.step(), 0}));
  wire::SaveReply reply;
  reply.set_folder(job_.assignment.run_folder + "/checkpoints/" + checkpoint_name(request.step()));
  return reply;
}

Result<wire::ExportReply> CallTarget::export_model() {
  wire::ExportReply reply;
  reply.set_folder(job_.assignment.run_folder + "/export");
  TROUPE_RETURN_IF_ERROR(export_checkpoint(job_, host_.actors(), reply.folder()));
  return reply;
}

wire::FinishReply CallTarget::finish(const wire::FinishRequest& request) {
  finished_ = true;
  steps_ = request.steps();
  wire::FinishReply reply;
  reply.set_leaked_handles(static_cast<int32_t>(handles_.held().size()));
  return reply;
}

}  // namespace troupe
