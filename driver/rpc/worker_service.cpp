#include "driver/rpc/services.h"
#include "proto/rpc/error_message.h"

namespace troupe::driver {
namespace {

class WorkerStream final : public StreamPeer<wire::WorkerMessage, wire::WorkerCommand>, public WorkerPeer {
 public:
  explicit WorkerStream(Driver& driver) : driver_(driver), term_(driver.term().value) {}

  void spawn(const SpawnOrder& order) override {
    wire::WorkerCommand command = make();
    wire::Spawn& out = *command.mutable_spawn();
    out.set_incarnation(order.incarnation);
    out.set_job_id(order.job_id);
    out.set_slot(order.slot);
    out.set_threads(order.threads);
    for (const auto& argument : order.arguments) out.add_arguments(argument);
    out.mutable_environment()->insert(order.environment.begin(), order.environment.end());
    out.set_output_path(order.output_path);
    out.set_task_output_path(order.task_output_path);
    send(std::move(command));
  }
  void terminate(const std::string& incarnation, std::chrono::milliseconds grace) override {
    wire::WorkerCommand command = make();
    command.mutable_terminate()->set_incarnation(incarnation);
    command.mutable_terminate()->set_grace_ms(static_cast<uint32_t>(grace.count()));
    send(std::move(command));
  }
  void leave() override {
    wire::WorkerCommand command = make();
    command.set_leave(true);
    send(std::move(command));
  }

 protected:
  void received(wire::WorkerMessage& message) override {
    if (message.has_register_()) return enlist(message.register_());
    if (incarnation_.empty()) return close({grpc::StatusCode::FAILED_PRECONDITION, "a worker registers first"});
    switch (message.body_case()) {
      case wire::WorkerMessage::kSpawned: {
        const wire::Spawned& spawned = message.spawned();
        std::optional<Error> error;
        if (spawned.has_error()) error = from_message(spawned.error());
        driver_.process_spawned(spawned.incarnation(), spawned.pid(), std::move(error));
        break;
      }
      case wire::WorkerMessage::kExited: {
        const wire::Exited& exited = message.exited();
        HostExit exit;
        exit.exit_code = exited.exit_code();
        exit.signal = exited.signal();
        exit.page_valid = exited.page_valid();
        exit.step = exited.step();
        exit.instruction = exited.instruction();
        exit.rank = exited.rank();
        exit.stopped_ms = exited.stopped_ms();
        driver_.process_exited(exited.incarnation(), std::move(exit), exited.group());
        break;
      }
      case wire::WorkerMessage::kTaskLine:
        driver_.task_line(message.task_line().incarnation(), message.task_line().line());
        break;
      default:
        driver_.worker_heartbeat(node_, incarnation_);
    }
  }
  void gone() override {
    if (!incarnation_.empty()) driver_.worker_gone(node_, incarnation_);
  }

 private:
  wire::WorkerCommand make() const {
    wire::WorkerCommand command;
    command.set_term(term_);
    return command;
  }

  void enlist(const wire::Register& registration) {
    wire::WorkerCommand command = make();
    auto self = std::static_pointer_cast<WorkerStream>(shared_from_this());
    const Status status =
        driver_.worker_registered(registration.node(), registration.incarnation(), registration.highest_term(), self);
    if (status.ok()) {
      node_ = registration.node();
      incarnation_ = registration.incarnation();
      command.mutable_welcome()->set_lease_ms(static_cast<uint32_t>(driver_.lease().count()));
      send(std::move(command));
    } else {
      *command.mutable_welcome()->mutable_error() = to_message(status.error());
      // A refused worker must hear why even when it has seen a later term.
      command.set_term(std::max(term_, registration.highest_term()));
      send(std::move(command));
      close(grpc::Status::OK);
    }
  }

  Driver& driver_;
  uint64_t term_;
  std::string node_, incarnation_;  // reading callbacks only, which never overlap
};

/// Refuses a stream at once.
template <typename Message, typename Command>
class RefusedStream final : public grpc::ServerBidiReactor<Message, Command> {
 public:
  RefusedStream() { this->Finish(TokenCheck::refusal()); }
  void OnDone() override { delete this; }
};

class WorkerService final : public wire::WorkerLink::CallbackService {
 public:
  WorkerService(Driver& driver, const TokenCheck& token) : driver_(driver), token_(token) {}
  grpc::ServerBidiReactor<wire::WorkerMessage, wire::WorkerCommand>* Attach(
      grpc::CallbackServerContext* context) override {
    if (!token_.passes(*context)) return new RefusedStream<wire::WorkerMessage, wire::WorkerCommand>();
    auto stream = std::make_shared<WorkerStream>(driver_);
    stream->begin();
    return stream.get();
  }

 private:
  Driver& driver_;
  const TokenCheck& token_;
};

}  // namespace

std::unique_ptr<grpc::Service> make_worker_service(Driver& driver, const TokenCheck& token) {
  return std::make_unique<WorkerService>(driver, token);
}

}  // namespace troupe::driver
