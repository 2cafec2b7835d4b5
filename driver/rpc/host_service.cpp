#include <chrono>

#include "driver/rpc/services.h"
#include "proto/rpc/error_message.h"

namespace troupe::driver {
namespace {

HostProgress to_progress(wire::Progress& from) {
  HostProgress progress;
  progress.prepared = from.prepared();
  for (const wire::StepSamples& bad : from.bad())
    progress.bad[bad.step()] = {bad.samples().begin(), bad.samples().end()};
  progress.steps.reserve(static_cast<size_t>(from.steps_size()));
  for (wire::StepReport& step : *from.mutable_steps())
    progress.steps.push_back(
        {step.step(), std::move(*step.mutable_metrics_json()), std::move(*step.mutable_local_json())});
  return progress;
}

class HostStream final : public StreamPeer<wire::HostMessage, wire::HostCommand>, public HostPeer {
 public:
  explicit HostStream(Driver& driver) : driver_(driver), term_(driver.term().value) {}

  void assign(const AssignmentOrder& order) override {
    wire::HostCommand command = make(order.generation);
    wire::Assignment& out = *command.mutable_assignment();
    out.set_job_id(order.job_id);
    out.set_mode(job_mode_name(order.job->mode));
    out.set_run_folder(order.job->run_folder);
    out.set_job_yaml(order.job->job_yaml);
    out.set_self(order.self);
    for (const PlannedSlot& slot : order.job->slots) {
      wire::Slot& to = *out.add_slots();
      to.set_node(slot.node);
      to.set_index(slot.index);
      to.set_device(slot.device);
      to.set_threads(slot.threads);
      to.set_data_address(slot.data_address);
    }
    for (const auto& group : order.job->group_slots) {
      wire::RankSlots& to = *out.add_groups();
      for (int slot : group) to.add_slot(slot);
    }
    out.set_index_path(order.index_path);
    out.set_eval_index_path(order.eval_index_path);
    out.set_resume_from(order.resume_from);
    out.set_command_json(order.job->command_json);
    send(std::move(command));
  }
  void grant(Generation generation, const GrantState& grant) override {
    wire::HostCommand command = make(generation);
    command.mutable_grant()->set_run_through(grant.run_through);
    command.mutable_grant()->set_stop_after(grant.stop_after);
    command.mutable_grant()->set_save_at(grant.save_at);
    for (const auto& [step, samples] : grant.left_out) {
      wire::StepSamples& out = *command.mutable_grant()->add_left_out();
      out.set_step(step);
      out.mutable_samples()->Add(samples.begin(), samples.end());
    }
    send(std::move(command));
  }
  void stop(const std::string& reason) override {
    wire::HostCommand command = make(Generation());
    command.set_stop(reason);
    send(std::move(command));
  }
  void acknowledge(uint64_t sequence) override {
    wire::HostCommand command = make(Generation());
    command.set_acknowledged(sequence);
    send(std::move(command));
  }
  void refuse(const Error& error) override {
    wire::HostCommand command = make(Generation());
    *command.mutable_refused() = to_message(error);
    send(std::move(command));
    close(grpc::Status::OK);
  }

 protected:
  void received(wire::HostMessage& incoming) override {
    const auto taken = std::make_shared<wire::HostMessage>();  // shared: a task of the owner loop can be copied
    taken->Swap(&incoming);
    const wire::HostMessage& message = *taken;
    if (message.has_hello()) {
      if (!job_.empty()) return;
      job_ = message.hello().job_id();
      slot_ = message.hello().slot();
      driver_.host_hello(job_, slot_, message.hello().incarnation(),
                         std::static_pointer_cast<HostStream>(shared_from_this()));
      return;
    }
    if (message.has_clock_probe()) return answer_clock(message.clock_probe().host_ns());
    if (job_.empty()) return close({grpc::StatusCode::FAILED_PRECONDITION, "a host says hello first"});
    auto self = std::static_pointer_cast<HostStream>(shared_from_this());
    driver_.host_report(job_, [self, taken](JobRunner& runner) { self->deliver(runner, *taken); });
  }
  void gone() override {
    if (job_.empty()) return;
    auto self = std::static_pointer_cast<HostStream>(shared_from_this());
    driver_.host_report(job_, [self](JobRunner& runner) {
      if (runner.peer(self->slot_) == self.get()) runner.handle(job_event::LinkLost{self->slot_});
    });
  }

 private:
  /// On gRPC's thread: behind the owner loop's work the answer would be late.
  void answer_clock(int64_t host_ns) {
    wire::HostCommand command = make(Generation());
    command.mutable_clock()->set_host_ns(host_ns);
    command.mutable_clock()->set_driver_ns(
        std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
    send(std::move(command));
  }
  wire::HostCommand make(Generation generation) const {
    wire::HostCommand command;
    command.set_term(term_);
    command.set_generation(generation.value);
    return command;
  }

  /// On the owner loop. A stream that was refused, or whose slot has a newer holder, has no say.
  void deliver(JobRunner& runner, wire::HostMessage& message) {
    if (slot_ < 0 || slot_ >= static_cast<int>(runner.job().slots.size()) || runner.peer(slot_) != this) return;
    switch (message.body_case()) {
      case wire::HostMessage::kPhase:
        runner.handle(job_event::HostPhase{slot_, message.phase()});
        break;
      case wire::HostMessage::kReady:
        runner.handle(job_event::HostReady{slot_});
        break;
      case wire::HostMessage::kProgress:
        runner.host_progress(slot_, to_progress(*message.mutable_progress()));
        break;
      case wire::HostMessage::kEvaluation:
        runner.host_evaluation(slot_, message.evaluation().step(), message.evaluation().json());
        break;
      case wire::HostMessage::kEvent:
        runner.host_event(slot_, message.event().kind(), message.event().json());
        break;
      case wire::HostMessage::kFinishing:
        runner.handle(job_event::HostFinishing{slot_});
        break;
      case wire::HostMessage::kError:
        runner.handle(job_event::HostError{slot_, from_message(message.error())});
        break;
      case wire::HostMessage::kFinished:
        runner.host_finished(slot_, message.finished());
        break;
      default:
        break;
    }
    if (message.sequence() > 0) acknowledge(message.sequence());
  }

  Driver& driver_;
  uint64_t term_;
  std::string job_;
  int slot_ = -1;
};

class RefusedHost final : public grpc::ServerBidiReactor<wire::HostMessage, wire::HostCommand> {
 public:
  RefusedHost() { Finish(TokenCheck::refusal()); }
  void OnDone() override { delete this; }
};

class HostService final : public wire::HostLink::CallbackService {
 public:
  HostService(Driver& driver, const TokenCheck& token) : driver_(driver), token_(token) {}
  grpc::ServerBidiReactor<wire::HostMessage, wire::HostCommand>* Attach(grpc::CallbackServerContext* context) override {
    if (!token_.passes(*context)) return new RefusedHost();
    auto stream = std::make_shared<HostStream>(driver_);
    stream->begin();
    return stream.get();
  }

 private:
  Driver& driver_;
  const TokenCheck& token_;
};

StoreCall to_call(const wire::StoreRequest& request) {
  StoreCall call;
  switch (request.kind()) {
    case wire::StoreRequest::GET:
      call.kind = StoreKind::kGet;
      break;
    case wire::StoreRequest::ADD:
      call.kind = StoreKind::kAdd;
      break;
    case wire::StoreRequest::COMPARE_SET:
      call.kind = StoreKind::kCompareSet;
      break;
    case wire::StoreRequest::CHECK:
      call.kind = StoreKind::kCheck;
      break;
    case wire::StoreRequest::ERASE:
      call.kind = StoreKind::kErase;
      break;
    default:
      call.kind = StoreKind::kSet;
      break;
  }
  call.keys.assign(request.keys().begin(), request.keys().end());
  call.value = request.value();
  call.expected = request.expected();
  call.amount = request.amount();
  call.timeout = std::chrono::milliseconds(request.timeout_ms());
  return call;
}

class StoreService final : public wire::Store::CallbackService {
 public:
  StoreService(Driver& driver, const TokenCheck& token) : driver_(driver), token_(token) {}
  grpc::ServerUnaryReactor* Call(grpc::CallbackServerContext* context, const wire::StoreRequest* request,
                                 wire::StoreReply* reply) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    if (!token_.passes(*context)) {
      reactor->Finish(TokenCheck::refusal());
      return reactor;
    }
    driver_.store_call(request->job_id(), to_call(*request), [reactor, reply](const StoreAnswer& answer) {
      if (answer.error) *reply->mutable_error() = to_message(*answer.error);
      reply->set_value(answer.value);
      reply->set_number(answer.number);
      reply->set_flag(answer.flag);
      reactor->Finish(grpc::Status::OK);
    });
    return reactor;
  }

 private:
  Driver& driver_;
  const TokenCheck& token_;
};

}  // namespace

std::unique_ptr<grpc::Service> make_host_service(Driver& driver, const TokenCheck& token) {
  return std::make_unique<HostService>(driver, token);
}
std::unique_ptr<grpc::Service> make_store_service(Driver& driver, const TokenCheck& token) {
  return std::make_unique<StoreService>(driver, token);
}

}  // namespace troupe::driver
