#include "client/rpc/call_link.h"

#include <grpcpp/support/async_stream.h>

#include <algorithm>
#include <deque>
#include <mutex>

#include "proto/rpc/call_keys.h"
#include "proto/rpc/calls.grpc.pb.h"
#include "proto/rpc/channel.h"
#include "proto/rpc/error_message.h"
#include "proto/rpc/message_batch.h"
#include "proto/rpc/store_client.h"

namespace troupe::client {
namespace {

using std::chrono::milliseconds;
/// For one look at whether a cancelled stream has ended; it does so at once.
constexpr milliseconds kCancelled{10000};

class GrpcCallLink final : public CallLink {
 public:
  GrpcCallLink(std::string address, Connection connection, EventQueue& queue, LinkEvents events)
      : address_(std::move(address)),
        connection_(std::move(connection)),
        queue_(queue),
        events_(std::move(events)),
        stub_(wire::Calls::NewStub(connection_.channel)) {}

  ~GrpcCallLink() override {
    {
      std::lock_guard lock(mutex_);
      closed_ = true;
    }
    context_.TryCancel();  // ends every operation at once
    while (!queue_.wait(done_, EventQueue::Clock::now() + kCancelled)) {
    }
  }

  void start(const wire::LoopGreeting& greeting) {
    connection_.sign(context_);
    *next_.mutable_greeting() = greeting;
    stream_ = stub_->PrepareAsyncOpen(&context_, queue_.grpc_queue());
    writing_ = true;  // until the stream is there
    stream_->StartCall(&started_);
  }

  void call(wire::Call call) override {
    std::lock_guard lock(mutex_);
    calls_.emplace_back().Swap(&call);
    write_next();
  }
  void renew(const std::vector<uint64_t>& objects) override {
    std::lock_guard lock(mutex_);
    next_.mutable_renewed()->Assign(objects.begin(), objects.end());  // all that are held, each time
    write_next();
  }
  void release(uint64_t object) override {
    std::lock_guard lock(mutex_);
    next_.add_released(object);
    write_next();
  }
  bool behind() override {
    std::lock_guard lock(mutex_);
    return writing_ && something_to_write();
  }

 private:
  bool something_to_write() const {
    return next_.has_greeting() || !calls_.empty() || next_.renewed_size() > 0 || next_.released_size() > 0;
  }
  /// Under the lock.
  void write_next() {
    if (over_) return drop_next();
    if (writing_ || !something_to_write()) return;
    writing_ = true;
    take_batch(calls_, next_.mutable_calls());
    // What is released may still be needed by a call ahead of it.
    google::protobuf::RepeatedField<uint64_t> released;
    if (!calls_.empty()) released.Swap(next_.mutable_released());
    current_.Swap(&next_);
    next_.Clear();
    next_.mutable_released()->Swap(&released);
    stream_->Write(current_, &written_);
  }
  void drop_next() {
    next_.Clear();
    calls_.clear();
  }
  /// Under the lock: nothing more is written or read.
  void finish() {
    over_ = true;
    drop_next();
    stream_->Finish(&status_, &finished_);
  }

  void on_started(bool ok) {
    std::lock_guard lock(mutex_);
    writing_ = false;
    if (!ok) return finish();
    write_next();
    stream_->Read(&incoming_, &read_);
  }
  void on_written(bool ok) {
    {
      std::lock_guard lock(mutex_);
      writing_ = false;
      if (ok) write_next();  // else the read ends too, and says why
    }
    end_when_done();
  }
  void on_read(bool ok) {
    if (!ok) {
      std::lock_guard lock(mutex_);
      return finish();
    }
    if (incoming_.has_refused()) refusal_ = from_message(incoming_.refused());
    for (wire::Answer& answer : *incoming_.mutable_answers()) events_.answered(answer);
    incoming_.Clear();
    stream_->Read(&incoming_, &read_);
  }
  void on_finished() {
    {
      std::lock_guard lock(mutex_);
      status_known_ = true;
    }
    end_when_done();
  }
  /// When no operation is open: the stream has ended.
  void end_when_done() {
    bool closed;
    {
      std::lock_guard lock(mutex_);
      if (!status_known_ || writing_) return;
      closed = closed_;
    }
    if (!closed)
      events_.lost(refusal_       ? *refusal_
                   : status_.ok() ? unavailable("the host at " + address_ + " has ended the stream")
                                  : from_grpc(status_, "the host at " + address_));
    queue_.finish(done_);  // last: the link may be destroyed
  }

  const std::string address_;
  Connection connection_;
  EventQueue& queue_;
  LinkEvents events_;
  std::unique_ptr<wire::Calls::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientAsyncReaderWriter<wire::ToHost, wire::FromHost>> stream_;
  EventHandler started_{[this](bool ok) { on_started(ok); }}, written_{[this](bool ok) { on_written(ok); }},
      read_{[this](bool ok) { on_read(ok); }}, finished_{[this](bool) { on_finished(); }};
  EventQueue::Waiter done_;
  std::mutex mutex_;
  wire::FromHost incoming_;
  wire::ToHost current_, next_;   // next_ is without its calls
  std::deque<wire::Call> calls_;  // on the link, in order
  grpc::Status status_;
  std::optional<Error> refusal_;
  bool writing_ = false, over_ = false, closed_ = false, status_known_ = false;
};

}  // namespace

Result<std::unique_ptr<CallLink>> CallLink::open(const std::string& address, const Secrets& secrets,
                                                 const wire::LoopGreeting& greeting, EventQueue& queue,
                                                 LinkEvents events) {
  quiet_grpc();
  TROUPE_ASSIGN(auto connection, open_connection(address, secrets));
  auto link = std::make_unique<GrpcCallLink>(address, std::move(connection), queue, std::move(events));
  link->start(greeting);
  return std::unique_ptr<CallLink>(std::move(link));
}

Result<Directory> find_hosts(const std::string& driver, const Secrets& secrets, const std::string& job,
                             milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  const auto left = [&] {
    return std::max(milliseconds(1),
                    std::chrono::duration_cast<milliseconds>(deadline - std::chrono::steady_clock::now()));
  };
  TROUPE_ASSIGN(auto connection, open_connection(driver, secrets));
  const auto store = make_store_client(std::move(connection), job);
  Directory directory;
  const auto text = store->get(kCallDirectoryKey, left());
  if (!text.ok()) return wrap(text.error(), "job " + job + " at " + driver + " takes no calls");
  if (!directory.job.ParseFromString(*text)) return data_loss("job " + job + ": its directory of hosts cannot be read");
  for (const auto& group : directory.job.groups())
    for (int32_t slot : group.slot()) {
      if (slot < 0 || slot >= 1 << 20) return data_loss("job " + job + ": slot " + std::to_string(slot));
      const auto at = static_cast<size_t>(slot);
      if (directory.addresses.size() <= at) directory.addresses.resize(at + 1);
      if (!directory.addresses[at].empty()) continue;
      TROUPE_ASSIGN(directory.addresses[at],
                    store->get(call_address_key(Generation(directory.job.generation()), SlotId(slot)), left()));
    }
  return directory;
}

}  // namespace troupe::client
