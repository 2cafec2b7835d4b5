#include "worker/rpc/worker.h"

#include <grpcpp/support/sync_stream.h>
#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <random>

#include "base/loop/owner_loop.h"
#include "base/process_watch.h"
#include "proto/page/progress_page.h"
#include "proto/rpc/channel.h"
#include "proto/rpc/control.grpc.pb.h"
#include "proto/rpc/error_message.h"
#include "worker/supervision/log_file.h"
#include "worker/supervision/process_table.h"
#include "worker/supervision/spawner.h"

namespace troupe::worker {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
constexpr milliseconds kTick{100};
constexpr milliseconds kShutdownGrace{1000};
constexpr milliseconds kRetry{200};
/// A host that stands still so long, or for a lease if that is less, is ended.
constexpr milliseconds kMostStopped{10000};
constexpr milliseconds kBetweenLooks{500};

std::string fresh_incarnation() {
  std::random_device device;
  char text[17];
  std::snprintf(text, sizeof(text), "%08x%08x", device(), device());
  return text;
}

/// One connection to the driver: writes are queued and sent by a thread of their own, so that nobody waits for the
/// network.
class Link {
 public:
  Link(const Connection& connection, std::unique_ptr<wire::WorkerLink::Stub> stub) : stub_(std::move(stub)) {
    connection.sign(context_);
    stream_ = stub_->Attach(&context_);
    writer_ = std::thread([this] { write_loop(); });
  }
  ~Link() {
    {
      std::lock_guard lock(mutex_);
      closing_ = true;
    }
    changed_.notify_all();
    writer_.join();
  }
  void send(wire::WorkerMessage message) {
    {
      std::lock_guard lock(mutex_);
      queue_.push_back(std::move(message));
    }
    changed_.notify_all();
  }
  bool read(wire::WorkerCommand& command) { return stream_->Read(&command); }
  /// `ended`: the driver has closed the stream, and its own status is what counts.
  grpc::Status finish(bool ended) {
    if (!ended) context_.TryCancel();
    return stream_->Finish();
  }
  void cancel() { context_.TryCancel(); }

 private:
  void write_loop() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return closing_ || !queue_.empty(); });
      if (queue_.empty()) return;
      wire::WorkerMessage message = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      const bool written = stream_->Write(message);
      lock.lock();
      if (!written) return;
    }
  }

  std::unique_ptr<wire::WorkerLink::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<wire::WorkerMessage, wire::WorkerCommand>> stream_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<wire::WorkerMessage> queue_;
  bool closing_ = false;
  std::thread writer_;
};

/// What a worker keeps of a process that it started.
struct Running {
  std::unique_ptr<ProgressPage> page;
  std::string log_path;
  std::unique_ptr<LineTail> tail;  // tasks only
};

class WorkerDaemon final : public Worker {
 public:
  explicit WorkerDaemon(WorkerOptions options) : options_(std::move(options)), incarnation_(fresh_incarnation()) {}

  ~WorkerDaemon() override {
    request_stop();
    // Reset on the loop: nobody is using it then. What is still posted afterwards finds no spawner and does nothing.
    loop_.ask([this] { spawner_.reset(); });
  }

  Status start() {
    TROUPE_RETURN_IF_ERROR(check_program(options_.actor_program));
    TROUPE_ASSIGN(spawner_, Spawner::create([this](int pid, int code, int signal) {
                    loop_.post([this, pid, code, signal] { apply(table_.reaped(pid, code, signal)); });
                  }));
    loop_.post([this] { tick(); });
    return {};
  }

  Status run() override {
    Clock::time_point give_up = Clock::now() + options_.connect_timeout;
    while (!stopping_) {
      // Secrets that are not there yet are made by the driver's first start: that is waited for as well.
      auto connection = open_connection(options_.driver_address, options_.secrets);
      Served served;
      if (connection)
        served = serve(*connection);
      else if (connection.error().code == ErrorCode::kUnavailable)
        served.why = connection.error().to_string();
      else
        return connection.error();
      end_processes();
      if (served.refused) return *served.refused;
      if (served.left || stopping_) break;
      if (served.welcomed) {
        give_up = Clock::now() + options_.connect_timeout;
        // The driver has given this incarnation up with its stream.
        incarnation_ = fresh_incarnation();
      }
      if (Clock::now() >= give_up)
        return unavailable("worker of node " + options_.node + ": the driver at " + options_.driver_address +
                           " cannot be reached (" + served.why + ")");
      std::unique_lock lock(mutex_);
      stopped_.wait_for(lock, kRetry, [this] { return stopping_.load(); });
    }
    return {};
  }

  void request_stop() override {
    stopping_ = true;
    stopped_.notify_all();
    std::lock_guard lock(mutex_);
    if (link_) link_->cancel();
  }

 private:
  struct Served {
    bool welcomed = false, left = false;
    std::optional<Error> refused;
    std::string why;
  };

  Served serve(const Connection& connection) {
    Served served;
    auto link = std::make_shared<Link>(connection, wire::WorkerLink::NewStub(connection.channel));
    {
      std::lock_guard lock(mutex_);
      if (stopping_) link->cancel();
      link_ = link;
    }
    wire::WorkerMessage hello;
    hello.mutable_register_()->set_node(options_.node);
    hello.mutable_register_()->set_incarnation(incarnation_);
    hello.mutable_register_()->set_highest_term(highest_term_);
    link->send(std::move(hello));
    wire::WorkerCommand command;
    bool ended = false;
    while (!served.left && !served.refused) {
      ended = !link->read(command);
      if (ended) break;
      if (command.term() < highest_term_) continue;  // an older driver has no say any more
      highest_term_ = command.term();
      if (command.has_welcome()) {
        if (command.welcome().has_error())
          served.refused = from_message(command.welcome().error());
        else
          served.welcomed = true;
        const milliseconds lease(command.welcome().lease_ms());
        loop_.post([this, lease] { stopped_limit_ = std::min(lease, kMostStopped); });
      } else if (command.body_case() == wire::WorkerCommand::kLeave) {
        served.left = true;
      } else {
        loop_.post([this, command] { obey(command); });
      }
    }
    {
      std::lock_guard lock(mutex_);
      link_.reset();
    }
    const grpc::Status status = link->finish(ended);
    served.why = status.error_message();
    if (status.error_code() == grpc::StatusCode::UNAUTHENTICATED && !served.refused)
      served.refused = from_grpc(
          status, "worker of node " + options_.node + ": the driver at " + options_.driver_address + " refused it");
    return served;
  }

  void send(wire::WorkerMessage message) {
    std::shared_ptr<Link> link;
    {
      std::lock_guard lock(mutex_);
      link = link_;
    }
    if (link) link->send(std::move(message));
  }

  void obey(const wire::WorkerCommand& command) {
    if (!spawner_) return;
    if (command.has_spawn())
      spawn(command.spawn());
    else if (command.has_terminate())
      apply(table_.terminate(command.terminate().incarnation(), milliseconds(command.terminate().grace_ms()),
                             Clock::now()));
  }

  void spawn(const wire::Spawn& order) {
    wire::WorkerMessage message;
    message.mutable_spawned()->set_incarnation(order.incarnation());
    Result<int> pid = start_process(order);
    if (pid) {
      message.mutable_spawned()->set_pid(*pid);
    } else {
      *message.mutable_spawned()->mutable_error() = to_message(pid.error());
      running_.erase(order.incarnation());
    }
    send(std::move(message));
    if (pid) table_.spawned(order.incarnation(), *pid);
  }

  Result<int> start_process(const wire::Spawn& order) {
    const bool is_task = order.slot() < 0;
    SpawnSpec spec;
    spec.arguments = {options_.actor_program};
    spec.arguments.insert(spec.arguments.end(), order.arguments().begin(), order.arguments().end());
    spec.environment = options_.environment;
    for (const auto& [name, value] : order.environment()) spec.environment[name] = value;
    if (order.threads() > 0) spec.environment["OMP_NUM_THREADS"] = std::to_string(order.threads());
    spec.output_path = order.output_path();
    spec.standard_output_path = order.task_output_path();
    Running& running = running_[order.incarnation()];
    running.log_path = order.output_path();
    if (is_task) {
      running.tail = std::make_unique<LineTail>(order.task_output_path());
      return spawner_->spawn(spec);
    }
    TROUPE_ASSIGN(running.page, ProgressPage::create());
    spec.inherited_fd = running.page->fd();
    for (const auto& [name, value] :
         std::map<std::string, std::string>{{"--driver", options_.driver_address},
                                            {"--job", order.job_id()},
                                            {"--slot", std::to_string(order.slot())},
                                            {"--incarnation", order.incarnation()},
                                            {"--page-fd", "3"},
                                            {"--token-file", options_.secrets.token_file},
                                            {"--certificate-file", options_.secrets.certificate_file}})
      if (!value.empty()) spec.arguments.insert(spec.arguments.end(), {name, value});
    return spawner_->spawn(spec);
  }

  void apply(const std::vector<ProcessEffect>& effects) {
    if (!spawner_) return;
    for (const ProcessEffect& effect : effects) {
      if (const auto* signal = std::get_if<SendSignal>(&effect)) {
        spawner_->signal(signal->pid, signal->signal);
      } else if (const auto* exit = std::get_if<ReportExit>(&effect)) {
        report(*exit);
      }
    }
    if (table_.empty()) {
      std::lock_guard lock(mutex_);
      stopped_.notify_all();
    }
  }

  void report(const ReportExit& exit) {
    const auto at = running_.find(exit.incarnation);
    if (at != running_.end() && at->second.tail) forward_lines(exit.incarnation, *at->second.tail);
    wire::WorkerMessage message;
    wire::Exited& out = *message.mutable_exited();
    out.set_incarnation(exit.incarnation);
    out.set_exit_code(exit.exit_code);
    out.set_signal(exit.signal);
    out.set_stopped_ms(static_cast<uint32_t>(exit.stopped.count()));
    out.set_group(-1);
    if (at != running_.end() && at->second.page) {
      const Progress progress = at->second.page->read();
      out.set_page_valid(progress.valid);
      out.set_step(progress.step);
      out.set_instruction(progress.instruction);
      out.set_group(progress.group);
      out.set_rank(progress.rank);
    }
    running_.erase(exit.incarnation);
    send(std::move(message));
  }

  void forward_lines(const std::string& incarnation, LineTail& tail) {
    for (std::string& line : tail.read_new()) {
      wire::WorkerMessage message;
      message.mutable_task_line()->set_incarnation(incarnation);
      message.mutable_task_line()->set_line(std::move(line));
      send(std::move(message));
    }
  }

  void tick() {
    const auto now = Clock::now();
    apply(table_.tick(now));
    for (auto& [incarnation, running] : running_)
      if (running.tail) forward_lines(incarnation, *running.tail);
    if (now - last_look_ >= kBetweenLooks) {
      last_look_ = now;
      for (const int pid : table_.pids()) apply(table_.looked_at(pid, is_stopped(pid), stopped_limit_, now));
    }
    if (now - last_heartbeat_ >= milliseconds(1000)) {
      last_heartbeat_ = now;
      for (const auto& [incarnation, running] : running_) cap_log(running.log_path, options_.log_cap_bytes);
      wire::WorkerMessage message;
      message.set_heartbeat(true);
      send(std::move(message));
    }
    loop_.post_at(now + kTick, [this] { tick(); });
  }

  /// No host outlives the driver's stream: their work is lost with it.
  void end_processes() {
    loop_.post([this] { apply(table_.terminate_all(kShutdownGrace, Clock::now())); });
    while (!loop_.ask([this] { return table_.empty(); })) {
      std::unique_lock lock(mutex_);
      stopped_.wait_for(lock, kTick);
    }
  }

  WorkerOptions options_;
  std::string incarnation_;
  uint64_t highest_term_ = 0;
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::condition_variable stopped_;
  std::shared_ptr<Link> link_;

  // Owned by the loop.
  ProcessTable table_;
  std::map<std::string, Running> running_;
  Clock::time_point last_heartbeat_, last_look_;
  milliseconds stopped_limit_ = kMostStopped;

  std::unique_ptr<Spawner> spawner_;
  OwnerLoop loop_;  // last: its thread ends before what it owns
};

}  // namespace

Result<std::unique_ptr<Worker>> Worker::create(WorkerOptions options) {
  auto worker = std::make_unique<WorkerDaemon>(std::move(options));
  TROUPE_RETURN_IF_ERROR(worker->start());
  return std::unique_ptr<Worker>(std::move(worker));
}

}  // namespace troupe::worker
