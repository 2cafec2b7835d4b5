#include "actors/rpc/call_port.h"

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/support/async_stream.h>

#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "proto/rpc/calls.grpc.pb.h"
#include "proto/rpc/channel.h"
#include "proto/rpc/error_message.h"
#include "proto/rpc/event_queue.h"
#include "proto/rpc/message_batch.h"

namespace troupe {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
constexpr size_t kMostWaiting = 4096;
/// For the last answer to leave.
constexpr milliseconds kShutdown{2000};
/// Leases that a loop may ask for.
constexpr milliseconds kShortestLease{100}, kLongestLease{3600000};

/// A loop's stream and where its operations stand. Under the port's lock.
struct Stream {
  grpc::ServerContext context;
  grpc::ServerAsyncReaderWriter<wire::FromHost, wire::ToHost> io{&context};
  EventHandler accepted, read, written, finished;
  wire::ToHost incoming;
  wire::FromHost current;         // on its way
  std::deque<wire::Answer> next;  // what follows
  std::optional<wire::ErrorMessage> refusal;
  uint64_t session = 0;  // 0: not greeted yet, or refused
  bool reading = false, writing = false, ending = false, finishing = false, done = false;

  void read_next() {
    reading = true;
    io.Read(&incoming, &read);
  }
  /// Writes what there is to write; then, when the stream is ending, ends it.
  void go_on() {
    if (writing || finishing) return;
    if (!next.empty() || refusal) {
      writing = true;
      current.Clear();
      take_batch(next, current.mutable_answers());
      if (next.empty() && refusal) *current.mutable_refused() = *std::exchange(refusal, std::nullopt);
      io.Write(current, &written);
    } else if (ending) {
      finishing = true;
      io.Finish(grpc::Status::OK, &finished);
    }
  }
  void end(const std::optional<Error>& why = std::nullopt) {
    if (why && !ending) refusal = to_message(*why);
    ending = true;
    go_on();
  }
};

class GrpcCallPort final : public CallPort {
 public:
  explicit GrpcCallPort(LeaseEvents events) : events_(std::move(events)) {}

  ~GrpcCallPort() override {
    if (!queue_) return;
    {
      std::lock_guard lock(mutex_);
      if (loop_)
        loop_->end();
      else
        queue_->finish(ended_);
    }
    queue_->wait(ended_, Clock::now() + kShutdown);
    server_->Shutdown(std::chrono::system_clock::now());
    {
      std::lock_guard lock(mutex_);
      shut_ = true;
    }
    queue_.reset();  // takes back all operations
    streams_.clear();
  }

  Status start(const std::string& address) {
    quiet_grpc();
    grpc::ServerBuilder builder;
    TROUPE_RETURN_IF_ERROR(listen_at(builder, address, {}, nullptr));
    builder.RegisterService(&service_);
    auto queue = builder.AddCompletionQueue();
    grpc_queue_ = queue.get();
    server_ = builder.BuildAndStart();
    if (!server_) {
      queue->Shutdown();
      return make_error(ErrorCode::kFailedPrecondition, "cannot listen for calls on " + address);
    }
    queue_ = std::make_unique<EventQueue>(std::move(queue));
    std::lock_guard lock(mutex_);
    accept_next();
    return {};
  }

  bool take(IncomingCall& call, milliseconds timeout) override {
    std::unique_lock lock(mutex_);
    if (calls_.empty()) {
      queue_->reset(arrived_);
      lock.unlock();
      queue_->wait(arrived_, Clock::now() + timeout);
      lock.lock();
      if (calls_.empty()) return false;
    }
    call = std::move(calls_.front());
    calls_.pop_front();
    if (loop_ && paused_ && calls_.size() <= kMostWaiting / 2) {
      paused_ = false;
      loop_->read_next();
    }
    return true;
  }

  bool full() override {
    std::lock_guard lock(mutex_);
    return paused_;
  }

  void answer(uint64_t session, wire::Answer answer) override {
    {
      std::lock_guard lock(mutex_);
      if (!loop_ || session != loop_->session || loop_->ending) return;
      loop_->next.emplace_back().Swap(&answer);
      loop_->go_on();
    }
    if (behind()) queue_->work_off([this] { return !behind(); });  // the one before has most likely left
  }

 private:
  bool behind() {
    std::lock_guard lock(mutex_);
    return loop_ && !loop_->next.empty();
  }
  /// Waits for another stream.
  void accept_next() {
    std::erase_if(streams_, [](const auto& stream) { return stream->done && !stream->reading; });
    Stream& stream = *streams_.emplace_back(std::make_unique<Stream>());
    stream.accepted = [&](bool ok) { on_accepted(stream, ok); };
    stream.read = [&](bool ok) { on_read(stream, ok); };
    stream.written = [&](bool ok) { on_written(stream, ok); };
    stream.finished = [&](bool) { on_finished(stream); };
    service_.RequestOpen(&stream.context, &stream.io, grpc_queue_, grpc_queue_, &stream.accepted);
  }
  void on_accepted(Stream& stream, bool ok) {
    std::lock_guard lock(mutex_);
    if (!ok || shut_) return;
    accept_next();
    stream.read_next();
  }
  void on_read(Stream& stream, bool ok) {
    std::lock_guard lock(mutex_);
    stream.reading = false;
    if (shut_) return;
    if (!ok) {
      stream.end();
      return leave_when_done(stream);
    }
    if (stream.session == 0 && !greet(stream)) return;
    if (stream.incoming.renewed_size() > 0) events_.renewed(stream.incoming.renewed());
    receive(stream);
    paused_ = calls_.size() >= kMostWaiting;
    if (!paused_) stream.read_next();
  }
  void on_written(Stream& stream, bool ok) {
    std::lock_guard lock(mutex_);
    stream.writing = false;
    if (shut_) return;
    if (!ok) {
      stream.next.clear();
      stream.refusal.reset();
      stream.ending = true;
    }
    stream.go_on();
  }
  void on_finished(Stream& stream) {
    std::lock_guard lock(mutex_);
    stream.done = true;
    if (shut_) return;
    leave_when_done(stream);
  }

  /// The first message of a stream. False: refused.
  bool greet(Stream& stream) {
    const auto refuse = [&](const Error& error) {
      stream.end(error);
      return false;
    };
    if (!stream.incoming.has_greeting()) return refuse(invalid_argument("a loop says who it is before it calls"));
    const wire::LoopGreeting& greeting = stream.incoming.greeting();
    const milliseconds lease{greeting.lease_ms()};
    if (lease < kShortestLease || lease > kLongestLease)
      return refuse(
          invalid_argument("a lease of " + std::to_string(lease.count()) + " ms is not valid; valid: 100 to 3600000"));
    if (loop_)
      return refuse(make_error(ErrorCode::kFailedPrecondition,
                               "the job is driven by another loop (" + holder_ + "); valid: one loop at a time"));
    loop_ = &stream;
    holder_ = greeting.name();
    stream.session = ++last_session_;
    queue_->reset(ended_);
    events_.greeted(lease);
    return true;
  }

  void receive(Stream& stream) {
    const auto now = Clock::now();
    for (wire::Call& call : *stream.incoming.mutable_calls()) {
      IncomingCall& queued = calls_.emplace_back();
      queued.session = stream.session;
      queued.deadline = now + milliseconds(call.timeout_ms());
      queued.call.Swap(&call);
    }
    if (stream.incoming.released_size() > 0) {
      IncomingCall& queued = calls_.emplace_back();
      queued.session = stream.session;
      queued.released.Swap(stream.incoming.mutable_released());
    }
    if (!calls_.empty()) queue_->finish(arrived_);
  }

  /// When no operation of it is open.
  void leave_when_done(Stream& stream) {
    if (!stream.done || stream.reading || loop_ != &stream) return;
    loop_ = nullptr;
    paused_ = false;
    calls_.clear();  // nobody waits for the answers
    queue_->finish(ended_);
  }

  LeaseEvents events_;
  std::mutex mutex_;
  std::deque<IncomingCall> calls_;
  std::vector<std::unique_ptr<Stream>> streams_;
  Stream* loop_ = nullptr;  // the one that holds the job
  std::string holder_;
  uint64_t last_session_ = 0;
  bool paused_ = false;
  bool shut_ = false;  // nothing is started any more
  EventQueue::Waiter arrived_, ended_;
  wire::Calls::AsyncService service_;
  std::unique_ptr<grpc::Server> server_;
  grpc::ServerCompletionQueue* grpc_queue_ = nullptr;  // the queue's own
  std::unique_ptr<EventQueue> queue_;
};

}  // namespace

Result<std::unique_ptr<CallPort>> CallPort::listen(const std::string& address, LeaseEvents events) {
  auto port = std::make_unique<GrpcCallPort>(std::move(events));
  TROUPE_RETURN_IF_ERROR(port->start(address));
  return std::unique_ptr<CallPort>(std::move(port));
}

}  // namespace troupe
