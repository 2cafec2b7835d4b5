#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>

#include "driver/rpc/server.h"
#include "proto/rpc/control.grpc.pb.h"

/// The pieces of the server; private to this room.
namespace troupe::driver {

/// Whether a caller holds the cluster's token; compared in constant time.
class TokenCheck {
 public:
  explicit TokenCheck(std::string token) : token_(std::move(token)) {}
  bool passes(const grpc::ServerContextBase& context) const;
  static grpc::Status refusal() {
    return {grpc::StatusCode::UNAUTHENTICATED, "the cluster's token is missing or wrong"};
  }

 private:
  std::string token_;  // empty: a Unix socket in a private folder
};

std::unique_ptr<grpc::Service> make_client_service(Driver& driver, Planner planner, const TokenCheck& token,
                                                   const std::atomic<bool>& closing);
std::unique_ptr<grpc::Service> make_worker_service(Driver& driver, const TokenCheck& token);
std::unique_ptr<grpc::Service> make_host_service(Driver& driver, const TokenCheck& token);
std::unique_ptr<grpc::Service> make_store_service(Driver& driver, const TokenCheck& token);

/// A bidirectional stream whose writes are queued. It lives until gRPC is done with it and nobody holds it any more.
template <typename Message, typename Command>
class StreamPeer : public grpc::ServerBidiReactor<Message, Command>,
                   public std::enable_shared_from_this<StreamPeer<Message, Command>> {
 public:
  /// Starts reading; keeps itself alive until OnDone.
  void begin() {
    self_ = this->shared_from_this();
    this->StartRead(&incoming_);
  }
  void send(Command command) {
    std::lock_guard lock(mutex_);
    if (finished_) return;
    queue_.push_back(std::move(command));
    if (queue_.size() == 1) this->StartWrite(&queue_.front());
  }
  void close(const grpc::Status& status) {
    std::lock_guard lock(mutex_);
    if (finished_) return;
    if (queue_.empty()) {
      finished_ = true;
      this->Finish(status);
    } else {
      finish_after_ = status;
    }
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      close(grpc::Status::OK);
      return;
    }
    received(incoming_);  // may take its contents
    incoming_.Clear();
    this->StartRead(&incoming_);
  }
  void OnWriteDone(bool ok) override {
    std::lock_guard lock(mutex_);
    queue_.pop_front();
    if (!ok) queue_.clear();
    if (finished_) return;
    if (!queue_.empty()) {
      this->StartWrite(&queue_.front());
    } else if (finish_after_ || !ok) {
      finished_ = true;
      this->Finish(finish_after_.value_or(grpc::Status::CANCELLED));
    }
  }
  void OnCancel() override { close(grpc::Status::CANCELLED); }
  void OnDone() override {
    gone();
    auto last = std::move(self_);  // may destroy this
  }

 protected:
  virtual void received(Message& message) = 0;
  virtual void gone() = 0;

 private:
  std::mutex mutex_;
  std::deque<Command> queue_;
  std::optional<grpc::Status> finish_after_;
  bool finished_ = false;
  Message incoming_;
  std::shared_ptr<StreamPeer> self_;
};

}  // namespace troupe::driver
