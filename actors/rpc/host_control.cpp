#include <grpcpp/support/sync_stream.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "actors/host/control.h"
#include "actors/rpc/host_log.h"
#include "proto/page/progress_page.h"
#include "proto/rpc/control.grpc.pb.h"
#include "proto/rpc/error_message.h"
#include "proto/rpc/store_client.h"

namespace troupe {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
constexpr milliseconds kHelloTimeout{60000};
constexpr milliseconds kAnswerTimeout{30000};
constexpr milliseconds kErrorTimeout{3000};
constexpr milliseconds kClockTimeout{2000};
/// Progress is gathered this long, or, when this host will need another grant soon, hardly at all.
constexpr milliseconds kProgressInterval{100}, kUrgentInterval{1};
/// Grants that will last longer than this leave time to gather.
constexpr milliseconds kGrantReserve{150};
constexpr int kLargestProgressReports = 1024;

/// What the worker put behind the program's name.
struct HostArguments {
  std::string driver, job, incarnation;
  Secrets secrets;
  int slot = -1;
  int page_fd = -1;
};

Result<HostArguments> parse_arguments(int argc, char** argv) {
  std::map<std::string, std::string> values;
  for (int i = 1; i + 1 < argc; ++i) {
    const std::string name = argv[i];
    if (name.rfind("--", 0) == 0) values[name.substr(2)] = argv[++i];
  }
  for (const char* needed : {"driver", "job", "slot", "incarnation"})
    if (!values.contains(needed))
      return invalid_argument(std::string("an actor host is started by a worker: option --") + needed + " is missing");
  HostArguments arguments;
  arguments.driver = values["driver"];
  arguments.job = values["job"];
  arguments.incarnation = values["incarnation"];
  arguments.secrets.token_file = values["token-file"];
  arguments.secrets.certificate_file = values["certificate-file"];
  arguments.slot = std::atoi(values["slot"].c_str());
  if (values.contains("page-fd")) arguments.page_fd = std::atoi(values["page-fd"].c_str());
  return arguments;
}

Result<HostAssignment> to_assignment(const wire::HostCommand& command) {
  const wire::Assignment& from = command.assignment();
  HostAssignment to;
  to.job_id = from.job_id();
  TROUPE_ASSIGN(to.mode, parse_job_mode(from.mode()));
  to.run_folder = from.run_folder();
  to.job_yaml = from.job_yaml();
  to.generation = Generation(command.generation());
  to.term = Term(command.term());
  to.self = SlotId(from.self());
  for (const auto& s : from.slots())
    to.slots.push_back({s.node(), s.index(), s.device(), s.threads(), s.data_address()});
  for (const auto& g : from.groups()) to.group_slots.emplace_back(g.slot().begin(), g.slot().end());
  to.index_path = from.index_path();
  to.eval_index_path = from.eval_index_path();
  to.resume_from = from.resume_from();
  to.command_json = from.command_json().empty() ? "{}" : from.command_json();
  return to;
}

/// One reader and one writer thread around a bidirectional stream; everything else is state under a mutex.
class RpcHostControl final : public HostControl {
 public:
  RpcHostControl(Connection connection, HostArguments arguments, std::unique_ptr<ProgressPage> page)
      : connection_(std::move(connection)),
        arguments_(std::move(arguments)),
        page_(std::move(page)),
        store_(make_store_client(connection_, arguments_.job)),
        stub_(wire::HostLink::NewStub(connection_.channel)) {
    connection_.sign(context_);
    stream_ = stub_->Attach(&context_);
  }

  ~RpcHostControl() override {
    warnings_.reset();
    flush(milliseconds(500));
    {
      std::lock_guard lock(mutex_);
      closing_ = true;
    }
    changed_.notify_all();
    if (writer_.joinable()) writer_.join();
    context_.TryCancel();
    if (reader_.joinable()) reader_.join();
    stream_->Finish();
  }

  Status start() {
    reader_ = std::thread([this] { read_loop(); });
    writer_ = std::thread([this] { write_loop(); });
    wire::HostMessage hello;
    hello.mutable_hello()->set_job_id(arguments_.job);
    hello.mutable_hello()->set_slot(arguments_.slot);
    hello.mutable_hello()->set_incarnation(arguments_.incarnation);
    post(std::move(hello));
    std::unique_lock lock(mutex_);
    const bool in_time =
        changed_.wait_for(lock, kHelloTimeout, [this] { return assigned_ || lost_ || refused_.has_value(); });
    if (refused_) return *refused_;
    if (lost_)
      return unavailable("the driver at " + arguments_.driver + " closed the connection before it assigned work");
    if (!in_time) return deadline_exceeded("no assignment from the driver at " + arguments_.driver + " within 60 s");
    lock.unlock();
    open_log();
    return {};
  }

  const HostAssignment& assignment() const override { return assignment_; }
  KvStore& store() override { return *store_; }

  void report_phase(const std::string& phase) override {
    wire::HostMessage message;
    message.set_phase(phase);
    post(std::move(message));
    log_->line(phase);
  }
  void report_ready() override {
    wire::HostMessage message;
    message.set_ready(true);
    post(std::move(message));
    log_->line("ready");
  }
  void report_finishing() override {
    wire::HostMessage message;
    message.set_finishing(true);
    post(std::move(message));
    log_->line("finishing");
  }
  void report_prepared(int64_t step, const std::vector<int64_t>& bad_samples) override {
    std::lock_guard lock(mutex_);
    if (lost_) return;
    progress_.set_prepared(step);
    if (!bad_samples.empty()) {
      wire::StepSamples& bad = *progress_.add_bad();
      bad.set_step(step);
      bad.mutable_samples()->Add(bad_samples.begin(), bad_samples.end());
    }
    schedule_progress();
  }
  void report_step(int64_t step, const std::string& metrics_json, const std::string& local_json) override {
    std::lock_guard lock(mutex_);
    if (lost_) return;
    wire::StepReport& report = *progress_.add_steps();
    report.set_step(step);
    report.set_metrics_json(metrics_json);
    if (local_json != last_local_) report.set_local_json(last_local_ = local_json);
    note_step(step);
    schedule_progress();
  }
  void report_evaluation(int64_t step, const std::string& json) override {
    wire::HostMessage message;
    message.mutable_evaluation()->set_step(step);
    message.mutable_evaluation()->set_json(json);
    post(std::move(message));
    log_->line("evaluation after step " + std::to_string(step));
  }
  void report_event(const std::string& kind, const std::string& json) override {
    wire::HostMessage message;
    message.mutable_event()->set_kind(kind);
    message.mutable_event()->set_json(json);
    post(std::move(message));
    log_->line(kind + " " + json);
  }
  void report_error(const Error& error) override {
    wire::HostMessage message;
    *message.mutable_error() = to_message(error);
    log_->line("error: " + error.to_string());
    // A driver that cannot be told learns of the end from the worker.
    static_cast<void>(post_and_wait(std::move(message), kErrorTimeout));
  }
  Status report_finished(const std::string& result_json) override {
    wire::HostMessage message;
    message.set_finished(result_json);
    const Status told = post_and_wait(std::move(message), kAnswerTimeout);
    log_->line(told.ok() ? "finished" : "finished, but " + told.error().to_string());
    return told;
  }

  Result<Grant> wait_grant(int64_t step, milliseconds timeout) override {
    std::unique_lock lock(mutex_);
    auto decided = [&] {
      return stop_.load() || lost_ || grant_.run_through >= step ||
             (grant_.stop_after >= 0 && grant_.stop_after < step);
    };
    if (!decided()) send_progress();  // what the driver decides by
    if (!changed_.wait_for(lock, timeout, decided))
      return deadline_exceeded("no grant for step " + std::to_string(step) + " within " +
                               std::to_string(timeout.count()) + " ms");
    if (stop_) return cancelled("the job is stopping: " + stop_reason_);
    if (lost_) return unavailable("the driver at " + arguments_.driver + " is lost");
    return grant_;
  }

  void publish_progress(int64_t step, const char* instruction, int group, int rank) override {
    if (page_) page_->publish(step, instruction, group, rank);
  }
  Result<ClockOffset> measure_clock() override {
    constexpr int kProbes = 8;
    const auto deadline = Clock::now() + kClockTimeout;
    ClockOffset best;
    int64_t quickest = -1;
    for (int i = 0; i < kProbes; ++i) {
      const int64_t sent = TraceLog::now_ns();
      wire::HostMessage message;
      message.mutable_clock_probe()->set_host_ns(sent);
      post(std::move(message));
      std::unique_lock lock(mutex_);
      const bool in_time = changed_.wait_until(lock, deadline, [&] { return lost_ || clock_answer_.host_ns == sent; });
      if (lost_) return unavailable("the driver at " + arguments_.driver + " is lost");
      if (!in_time) return deadline_exceeded("the driver at " + arguments_.driver + " did not tell its time");
      const int64_t round_trip = clock_answer_.received_ns - sent;
      if (quickest >= 0 && round_trip >= quickest) continue;
      quickest = round_trip;
      best = {clock_answer_.driver_ns - (sent + round_trip / 2), round_trip / 2};
    }
    return best;
  }
  std::string call_address() const override {
    if (arguments_.driver.rfind("unix:", 0) != 0) return {};
    return arguments_.driver.substr(0, arguments_.driver.rfind('/') + 1) + "calls-" + arguments_.incarnation + ".sock";
  }
  bool stop_requested() const override { return stop_.load(std::memory_order_relaxed); }

 private:
  /// Everything that is reported is a line of the log too; steps are in metrics.jsonl.
  void open_log() {
    log_ = std::make_unique<HostLog>(assignment_);
    const SlotInfo& slot = assignment_.slots[static_cast<size_t>(assignment_.self.value)];
    log_->line("job " + assignment_.job_id + ", generation " + std::to_string(assignment_.generation.value) +
               ": node " + slot.node + ", slot " + std::to_string(slot.index) + ", " + slot.device + ", pid " +
               std::to_string(::getpid()));
    warnings_ = std::make_unique<WarningTap>([this](const std::string& text) {
      report_event("warning",
                   nlohmann::json{{"text", text}}.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    });
  }

  /// Under the lock: the pace of steps, by which it is known how long the grants will last.
  void note_step(int64_t step) {
    const auto now = Clock::now();
    if (last_step_ > 0) {
      const std::chrono::duration<double> gap = now - last_step_at_;
      step_seconds_ = step_seconds_ == 0 ? gap.count() : 0.9 * step_seconds_ + 0.1 * gap.count();
    }
    last_step_ = step;
    last_step_at_ = now;
  }

  bool grants_last() const {
    const std::chrono::duration<double> reserve = kGrantReserve;
    return last_step_ > 0 && step_seconds_ > 0 &&
           static_cast<double>(grant_.run_through - last_step_) * step_seconds_ > reserve.count();
  }

  /// Under the lock: progress leaves at once when the grants run out soon, else with the next batch.
  void schedule_progress() {
    const auto now = Clock::now();
    const auto due = progress_sent_ + (grants_last() ? kProgressInterval : kUrgentInterval);
    if (due <= now || progress_.steps_size() >= kLargestProgressReports) return send_progress();
    if (due >= progress_due_) return;
    progress_due_ = due;
    changed_.notify_all();
  }

  /// Under the lock: queues what was gathered.
  void send_progress() {
    progress_due_ = Clock::time_point::max();
    if (progress_.prepared() == 0 && progress_.steps_size() == 0) return;
    wire::HostMessage message;
    message.set_generation(assignment_.generation.value);
    message.mutable_progress()->Swap(&progress_);
    progress_sent_ = Clock::now();
    progress_.Clear();
    queue_.push_back(std::move(message));
    changed_.notify_all();
  }

  void post(wire::HostMessage message) {
    {
      std::lock_guard lock(mutex_);
      if (lost_) return;
      send_progress();  // reports keep their order
      message.set_generation(assignment_.generation.value);
      queue_.push_back(std::move(message));
    }
    changed_.notify_all();
  }

  Status post_and_wait(wire::HostMessage message, milliseconds timeout) {
    uint64_t sequence;
    {
      std::lock_guard lock(mutex_);
      sequence = ++last_sequence_;
    }
    message.set_sequence(sequence);
    post(std::move(message));
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, timeout, [&] { return acknowledged_ >= sequence || lost_; }))
      return deadline_exceeded("the driver at " + arguments_.driver + " did not answer a report");
    if (acknowledged_ < sequence) return unavailable("the driver at " + arguments_.driver + " is lost");
    return {};
  }

  void flush(milliseconds timeout) {
    std::unique_lock lock(mutex_);
    send_progress();
    changed_.wait_for(lock, timeout, [this] { return lost_ || (queue_.empty() && !writing_); });
  }

  void write_loop() {
    std::unique_lock lock(mutex_);
    for (;;) {
      const auto wanted = [this] { return closing_ || lost_ || !queue_.empty(); };
      if (progress_due_ == Clock::time_point::max())
        changed_.wait(lock, [&] { return wanted() || progress_due_ != Clock::time_point::max(); });
      else if (!changed_.wait_until(lock, progress_due_, wanted))
        send_progress();
      if (closing_ || lost_) return;
      if (queue_.empty()) continue;
      wire::HostMessage message = std::move(queue_.front());
      queue_.pop_front();
      writing_ = true;
      lock.unlock();
      const bool written = stream_->Write(message);
      lock.lock();
      writing_ = false;
      if (!written) lost_ = true;
      changed_.notify_all();
    }
  }

  void read_loop() {
    wire::HostCommand command;
    while (stream_->Read(&command)) {
      std::lock_guard lock(mutex_);
      apply(command);
      changed_.notify_all();
    }
    std::lock_guard lock(mutex_);
    lost_ = true;
    changed_.notify_all();
  }

  void apply(const wire::HostCommand& command) {
    acknowledged_ = std::max(acknowledged_, command.acknowledged());
    if (command.has_clock()) {
      clock_answer_ = {command.clock().host_ns(), command.clock().driver_ns(), TraceLog::now_ns()};
    } else if (command.has_assignment() && !assigned_) {
      Result<HostAssignment> assignment = to_assignment(command);
      if (!assignment.ok()) {
        refused_ = assignment.error();
        return;
      }
      assignment_ = std::move(*assignment);
      grant_.generation = assignment_.generation;
      assigned_ = true;
    } else if (command.has_grant() && command.generation() == assignment_.generation.value) {
      const auto& grant = command.grant();
      grant_.run_through = std::max(grant_.run_through, grant.run_through());
      grant_.stop_after = grant.stop_after();
      grant_.save_at = grant.save_at();
      grant_.left_out.clear();  // every grant names those of all steps that are under way
      for (const auto& of_step : grant.left_out())
        grant_.left_out[of_step.step()] = {of_step.samples().begin(), of_step.samples().end()};
    } else if (command.body_case() == wire::HostCommand::kStop) {
      stop_reason_ = command.stop();
      stop_ = true;
    } else if (command.has_refused()) {
      refused_ = from_message(command.refused());
    }
  }

  Connection connection_;
  HostArguments arguments_;
  std::unique_ptr<ProgressPage> page_;
  std::unique_ptr<KvStore> store_;
  std::unique_ptr<HostLog> log_;  // from the assignment on
  std::unique_ptr<WarningTap> warnings_;
  std::unique_ptr<wire::HostLink::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<wire::HostMessage, wire::HostCommand>> stream_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<wire::HostMessage> queue_;
  wire::Progress progress_;  // gathered; at most what the grants allow
  Clock::time_point progress_due_ = Clock::time_point::max(), progress_sent_, last_step_at_;
  std::string last_local_;
  int64_t last_step_ = 0;
  double step_seconds_ = 0;
  HostAssignment assignment_;
  Grant grant_;
  std::optional<Error> refused_;
  std::string stop_reason_;
  struct ClockAnswer {
    int64_t host_ns = -1, driver_ns = 0, received_ns = 0;
  } clock_answer_;  // the latest
  uint64_t last_sequence_ = 0, acknowledged_ = 0;
  bool assigned_ = false, lost_ = false, closing_ = false, writing_ = false;
  std::atomic<bool> stop_{false};
  std::thread reader_, writer_;
};

}  // namespace

Result<std::unique_ptr<HostControl>> connect_host_control(int argc, char** argv) {
  TROUPE_ASSIGN(auto arguments, parse_arguments(argc, argv));
  std::unique_ptr<ProgressPage> page;
  if (arguments.page_fd >= 0) {
    TROUPE_ASSIGN(page, ProgressPage::open(arguments.page_fd));
  }
  TROUPE_ASSIGN(auto connection, open_connection(arguments.driver, arguments.secrets));
  auto control = std::make_unique<RpcHostControl>(std::move(connection), std::move(arguments), std::move(page));
  TROUPE_RETURN_IF_ERROR(control->start());
  return std::unique_ptr<HostControl>(std::move(control));
}

}  // namespace troupe
