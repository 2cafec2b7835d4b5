#include "actors/rpc/call_port.h"

#include <grpc/support/log.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/support/server_callback.h>

#include <condition_variable>
#include <deque>
#include <mutex>

#include "proto/rpc/calls.grpc.pb.h"
#include "proto/rpc/channel.h"
#include "proto/rpc/error_message.h"

namespace troupe {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
constexpr size_t kMostWaiting = 4096;
constexpr milliseconds kShutdown{2000};
/// Leases that a loop may ask for.
constexpr milliseconds kShortestLease{100}, kLongestLease{3600000};

class Stream;

/// What a stream reports to.
class StreamOwner {
 public:
  virtual ~StreamOwner() = default;
  /// False: reading pauses until resume() is called.
  virtual bool received(Stream& stream, wire::ToHost& message) = 0;
  virtual void gone(Stream& stream) = 0;
};

/// A loop's stream. It lives until gRPC is done with it and nobody holds it any more.
class Stream final : public grpc::ServerBidiReactor<wire::ToHost, wire::FromHost>,
                     public std::enable_shared_from_this<Stream> {
 public:
  explicit Stream(StreamOwner& owner) : owner_(owner) {}
  void begin() {
    self_ = shared_from_this();
    StartRead(&incoming_);
  }
  void resume() { StartRead(&incoming_); }
  void answer(wire::Answer answer) {
    std::lock_guard lock(mutex_);
    if (ending_) return;
    next_.add_answers()->Swap(&answer);
    if (!writing_) write_next();
  }
  void end(std::optional<Error> refusal) {
    std::lock_guard lock(mutex_);
    if (ending_) return;
    ending_ = true;
    if (refusal) *next_.mutable_refused() = to_message(*refusal);
    if (writing_) return;
    if (next_.answers_size() > 0 || next_.has_refused())
      write_next();
    else
      finish();
  }

  void OnReadDone(bool ok) override {
    if (!ok) return end(std::nullopt);
    const bool go_on = owner_.received(*this, incoming_);
    if (go_on) StartRead(&incoming_);
  }
  void OnWriteDone(bool ok) override {
    std::lock_guard lock(mutex_);
    writing_ = false;
    if (!ok) {
      next_.Clear();
      ending_ = true;
    }
    if (next_.answers_size() > 0 || next_.has_refused())
      write_next();
    else if (ending_)
      finish();
  }
  void OnCancel() override {
    std::lock_guard lock(mutex_);
    ending_ = true;
    next_.Clear();
    if (!writing_) finish();
  }
  void OnDone() override {
    owner_.gone(*this);
    auto last = std::move(self_);  // may destroy this
  }

  uint64_t session = 0;  // 0: not greeted yet; set and read by the owner

 private:
  void write_next() {
    writing_ = true;
    current_.Swap(&next_);
    next_.Clear();
    StartWrite(&current_);
  }
  void finish() {
    if (!finished_) Finish(grpc::Status::OK);
    finished_ = true;
  }

  StreamOwner& owner_;
  std::mutex mutex_;
  wire::ToHost incoming_;
  wire::FromHost current_, next_;
  bool writing_ = false, ending_ = false, finished_ = false;
  std::shared_ptr<Stream> self_;
};

class GrpcCallPort final : public CallPort, private StreamOwner {
 public:
  explicit GrpcCallPort(LeaseEvents events) : events_(std::move(events)), service_(*this) {}

  ~GrpcCallPort() override {
    std::shared_ptr<Stream> stream;
    {
      std::lock_guard lock(mutex_);
      closing_ = true;
      stream = stream_;
    }
    if (stream) stream->end(std::nullopt);
    server_->Shutdown(std::chrono::system_clock::now() + kShutdown);
  }

  Status start(const std::string& address) {
    gpr_set_log_function([](gpr_log_func_args*) {});  // what a person needs is in the errors that are returned
    TROUPE_ASSIGN(auto credentials, server_credentials(address, {}));
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, credentials);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5000);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
    builder.SetMaxReceiveMessageSize(kLargestMessageBytes);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    if (!server_) return make_error(ErrorCode::kFailedPrecondition, "cannot listen for calls on " + address);
    return {};
  }

  bool take(IncomingCall& call, milliseconds timeout) override {
    std::shared_ptr<Stream> resumed;
    {
      std::unique_lock lock(mutex_);
      if (!arrived_.wait_for(lock, timeout, [this] { return !queue_.empty(); })) return false;
      call = std::move(queue_.front());
      queue_.pop_front();
      if (paused_ && queue_.size() <= kMostWaiting / 2) resumed = std::exchange(paused_, nullptr);
    }
    if (resumed) resumed->resume();
    return true;
  }

  void answer(uint64_t session, wire::Answer answer) override {
    std::shared_ptr<Stream> stream;
    {
      std::lock_guard lock(mutex_);
      if (session != session_) return;
      stream = stream_;
    }
    if (stream) stream->answer(std::move(answer));
  }

 private:
  class Service final : public wire::Calls::CallbackService {
   public:
    explicit Service(GrpcCallPort& port) : port_(port) {}
    grpc::ServerBidiReactor<wire::ToHost, wire::FromHost>* Open(grpc::CallbackServerContext*) override {
      auto stream = std::make_shared<Stream>(static_cast<StreamOwner&>(port_));
      stream->begin();
      return stream.get();
    }

   private:
    GrpcCallPort& port_;
  };

  /// The first message of a stream. False: refused.
  bool greet(Stream& stream, const wire::ToHost& message) {
    if (!message.has_greeting()) {
      stream.end(invalid_argument("a loop says who it is before it calls"));
      return false;
    }
    const milliseconds lease{message.greeting().lease_ms()};
    if (lease < kShortestLease || lease > kLongestLease) {
      stream.end(
          invalid_argument("a lease of " + std::to_string(lease.count()) + " ms is not valid; valid: 100 to 3600000"));
      return false;
    }
    std::string holder;
    {
      std::lock_guard lock(mutex_);
      if (stream_) {
        holder = holder_;
      } else {
        stream_ = stream.shared_from_this();
        holder_ = message.greeting().name();
        stream.session = ++session_;
        queue_.clear();
      }
    }
    if (stream.session == 0) {
      stream.end(make_error(ErrorCode::kFailedPrecondition,
                            "the job is driven by another loop (" + holder + "); valid: one loop at a time"));
      return false;
    }
    events_.greeted(lease);
    return true;
  }

  bool received(Stream& stream, wire::ToHost& message) override {
    if (stream.session == 0 && !greet(stream, message)) return false;
    if (message.renewed_size() > 0) events_.renewed(message.renewed());
    if (message.calls_size() == 0 && message.released_size() == 0) return true;
    const auto now = Clock::now();
    bool full;
    {
      std::lock_guard lock(mutex_);
      for (wire::Call& call : *message.mutable_calls()) {
        IncomingCall& queued = queue_.emplace_back();
        queued.session = stream.session;
        queued.deadline = now + milliseconds(call.timeout_ms());
        queued.call.Swap(&call);
      }
      if (message.released_size() > 0) {
        IncomingCall& queued = queue_.emplace_back();
        queued.session = stream.session;
        queued.released.Swap(message.mutable_released());
      }
      full = queue_.size() >= kMostWaiting;
      if (full) paused_ = stream.shared_from_this();
    }
    arrived_.notify_one();
    return !full;
  }

  void gone(Stream& stream) override {
    std::lock_guard lock(mutex_);
    if (stream_.get() != &stream) return;
    stream_.reset();
    paused_.reset();
    queue_.clear();  // nobody waits for the answers
  }

  LeaseEvents events_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<IncomingCall> queue_;
  std::shared_ptr<Stream> stream_, paused_;  // gRPC holds them too
  std::string holder_;
  uint64_t session_ = 0;
  bool closing_ = false;
  Service service_;
  std::unique_ptr<grpc::Server> server_;  // last: ends before the service
};

}  // namespace

Result<std::unique_ptr<CallPort>> CallPort::listen(const std::string& address, LeaseEvents events) {
  auto port = std::make_unique<GrpcCallPort>(std::move(events));
  TROUPE_RETURN_IF_ERROR(port->start(address));
  return std::unique_ptr<CallPort>(std::move(port));
}

}  // namespace troupe
