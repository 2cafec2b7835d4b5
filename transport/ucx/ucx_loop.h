#pragma once

#include <ucp/api/ucp.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "transport/channel/inbox.h"
#include "transport/channel/slab_pool.h"
#include "transport/channel/wire_header.h"

namespace troupe {

/// The one owner of a slot's UCX worker: a thread that alone calls UCX and progresses transfers while others compute.
/// Others post commands to it. A message is one active message, its WireHeader in front; the bytes land in a slab of
/// the pool and in the inbox.
///
/// Peers that vanish must not take this process with them: endpoints have UCP_ERR_HANDLING_MODE_PEER, shared memory
/// transports are told to support it, and a lost peer's endpoint is closed by force. Buffers of transfers that were cut
/// off live until the worker ends.
///
/// start() once, then any thread; the destructor waits briefly for what is still being sent and joins the thread.
class UcxLoop {
 public:
  static Result<std::unique_ptr<UcxLoop>> create(const UcxChannelOptions& options, Inbox& inbox);
  ~UcxLoop();
  UcxLoop(const UcxLoop&) = delete;
  UcxLoop& operator=(const UcxLoop&) = delete;

  /// The worker's address, for the peers.
  const std::string& address() const { return address_; }
  /// Makes an endpoint for each peer from its address and starts the thread.
  Status start(const std::map<SlotId, std::string>& addresses);
  /// Waits until every peer has answered. DeadlineExceeded names those that did not.
  Status wait_connected(std::chrono::milliseconds timeout);

  Status send(SlotId to, const WireHeader& header, Payload payload);
  /// Waits until no send is under way. DeadlineExceeded names the peers that hold one up.
  Status flush(std::chrono::milliseconds timeout);
  void close_peer(SlotId peer);
  void close_all();
  SlabPool::Slab take_slab(size_t bytes) { return pool_->take(bytes); }

 private:
  struct Peer;
  struct SendOp;
  struct ReceiveOp;
  struct Command {
    enum class Kind { kSend, kClosePeer, kCloseAll, kStop } kind;
    SlotId peer;
    WireHeader header;
    Payload payload;
  };
  UcxLoop(const UcxChannelOptions& options, Inbox& inbox);
  Status open();
  Status open_context();
  Status open_worker();
  void post(Command command);
  void run();
  bool run_commands();
  void wait_for_work();
  void start_send(Command& command);
  void end_send(SendOp* op, ucs_status_t status);
  void begin_flush(Peer& peer);
  void close_endpoint(Peer& peer, ucs_status_t reason);
  void lose(Peer& peer, ucs_status_t status);
  void shut_down();
  ucs_status_t arrive(const void* header, size_t header_bytes, void* data, size_t bytes,
                      const ucp_am_recv_param_t* param);
  void end_receive(ReceiveOp* op, ucs_status_t status);
  std::string peers_where(bool Peer::*flag, bool value) const;

  static ucs_status_t on_message(void* self, const void* header, size_t header_bytes, void* data, size_t bytes,
                                 const ucp_am_recv_param_t* param);
  static void on_sent(void* request, ucs_status_t status, void* op);
  static void on_received(void* request, ucs_status_t status, size_t bytes, void* op);
  static void on_flushed(void* request, ucs_status_t status, void* peer);
  static void on_error(void* peer, ucp_ep_h endpoint, ucs_status_t status);

  const UcxChannelOptions options_;
  Inbox& inbox_;
  std::shared_ptr<SlabPool> pool_;
  std::string address_;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  int worker_event_ = -1, wake_event_ = -1;
  std::thread thread_;

  std::mutex command_mutex_;
  std::vector<Command> commands_;
  std::vector<Command> running_;  // loop thread only; kept for its capacity
  std::atomic<bool> sleeping_{false};
  bool stop_ = false;  // loop thread only

  std::map<SlotId, std::unique_ptr<Peer>> peers_;    // fixed after start()
  std::vector<void*> closing_;                       // loop thread only: requests of endpoints that are being closed
  std::vector<SlabPool::Slab> cut_off_;              // loop thread only: landing places of transfers that failed
  std::vector<std::unique_ptr<SendOp>> free_sends_;  // loop thread only
  std::vector<std::unique_ptr<ReceiveOp>> free_receives_;  // loop thread only

  mutable std::mutex state_mutex_;
  std::condition_variable state_changed_;  // sends that end, peers that answer or close
};

}  // namespace troupe
