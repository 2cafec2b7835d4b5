#include "client/rpc/call_link.h"

#include <grpc/support/log.h>
#include <grpcpp/support/client_callback.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>

#include "proto/rpc/call_keys.h"
#include "proto/rpc/calls.grpc.pb.h"
#include "proto/rpc/channel.h"
#include "proto/rpc/error_message.h"
#include "proto/rpc/store_client.h"

namespace troupe::client {
namespace {

using std::chrono::milliseconds;

class GrpcCallLink final : public CallLink, private grpc::ClientBidiReactor<wire::ToHost, wire::FromHost> {
 public:
  GrpcCallLink(std::string address, Connection connection, LinkEvents events)
      : address_(std::move(address)),
        connection_(std::move(connection)),
        events_(std::move(events)),
        stub_(wire::Calls::NewStub(connection_.channel)) {}

  ~GrpcCallLink() override {
    {
      std::lock_guard lock(mutex_);
      closed_ = true;
    }
    context_.TryCancel();
    release_hold();
    std::unique_lock lock(mutex_);
    done_changed_.wait(lock, [this] { return done_; });  // gRPC ends a cancelled stream at once
  }

  void start(const wire::LoopGreeting& greeting) {
    connection_.sign(context_);
    stub_->async()->Open(&context_, this);
    AddHold();  // calls come from outside the reactor's own events
    *current_.mutable_greeting() = greeting;
    writing_ = true;
    StartWrite(&current_);
    StartRead(&incoming_);
    StartCall();
  }

  void call(wire::Call call) override {
    std::lock_guard lock(mutex_);
    if (over_) return;
    next_.add_calls()->Swap(&call);
    write_next();
  }
  void renew(const std::vector<uint64_t>& objects) override {
    std::lock_guard lock(mutex_);
    if (over_ || objects.empty()) return;
    next_.mutable_renewed()->Add(objects.begin(), objects.end());
    write_next();
  }
  void release(uint64_t object) override {
    std::lock_guard lock(mutex_);
    if (over_) return;
    next_.add_released(object);
    write_next();
  }

 private:
  /// Under the lock.
  void write_next() {
    if (writing_ || over_) return;
    if (next_.calls_size() == 0 && next_.renewed_size() == 0 && next_.released_size() == 0) return;
    writing_ = true;
    current_.Swap(&next_);
    next_.Clear();
    StartWrite(&current_);
  }
  void release_hold() {
    {
      std::lock_guard lock(mutex_);
      if (std::exchange(over_, true)) return;
    }
    RemoveHold();
  }

  void OnWriteDone(bool ok) override {
    std::lock_guard lock(mutex_);
    writing_ = false;
    if (ok) write_next();
  }
  void OnReadDone(bool ok) override {
    if (!ok) return release_hold();
    if (incoming_.has_refused()) refusal_ = from_message(incoming_.refused());
    for (wire::Answer& answer : *incoming_.mutable_answers()) events_.answered(answer);
    incoming_.Clear();
    StartRead(&incoming_);
  }
  void OnDone(const grpc::Status& status) override {
    bool closed;
    {
      std::lock_guard lock(mutex_);
      closed = closed_;
    }
    if (!closed) {
      Error error = refusal_      ? *refusal_
                    : status.ok() ? unavailable("the host at " + address_ + " has ended the stream")
                                  : from_grpc(status, "the host at " + address_);
      events_.lost(error);
    }
    std::lock_guard lock(mutex_);
    done_ = true;
    done_changed_.notify_all();
  }

  const std::string address_;
  Connection connection_;
  LinkEvents events_;
  std::unique_ptr<wire::Calls::Stub> stub_;
  grpc::ClientContext context_;
  std::mutex mutex_;
  std::condition_variable done_changed_;
  wire::FromHost incoming_;
  wire::ToHost current_, next_;
  std::optional<Error> refusal_;
  bool writing_ = false, over_ = false, closed_ = false, done_ = false;
};

}  // namespace

Result<std::unique_ptr<CallLink>> CallLink::open(const std::string& address, const Secrets& secrets,
                                                 const wire::LoopGreeting& greeting, LinkEvents events) {
  gpr_set_log_function([](gpr_log_func_args*) {});  // what a person needs is in the errors that are returned
  TROUPE_ASSIGN(auto connection, open_connection(address, secrets));
  auto link = std::make_unique<GrpcCallLink>(address, std::move(connection), std::move(events));
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
