#pragma once

#include <ucp/api/ucp.h>

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "transport/channel/inbox.h"
#include "transport/channel/releases.h"
#include "transport/channel/send_gate.h"
#include "transport/channel/sent_counters.h"
#include "transport/channel/slab_pool.h"
#include "transport/segment/shared_segment.h"
#include "transport/ucx/ucx_worker.h"

namespace troupe {

/// A slot's UCX worker and its peers. Every message is one active message with a WireHeader in front. The payload
/// follows it into a slab of the pool, or, between processes of one node, lies in the sender's shared segment, where
/// the receiver reads it in place.
///
/// Who calls UCX: whoever waits. A thread that sends or waits for a message progresses the worker itself, under one
/// lock; a background thread does so when nobody else has for a while, so that transfers go on while others compute.
///
/// Peers that vanish must not take this process with them: a lost peer's endpoint is closed by force, and buffers of
/// transfers that were cut off live until the worker ends. A peer process of this node is watched and lost as soon as
/// it ends.
///
/// start() once, then any thread; the destructor waits briefly for what is still being sent and joins the thread.
class UcxLoop final : public InboxDriver {
 public:
  static Result<std::unique_ptr<UcxLoop>> create(const UcxChannelOptions& options, Inbox& inbox);
  ~UcxLoop() override;
  UcxLoop(const UcxLoop&) = delete;
  UcxLoop& operator=(const UcxLoop&) = delete;

  /// What peers need to connect, in bytes.
  std::string card() const;
  /// Makes an endpoint for each peer from its card and starts the thread.
  Status start(const std::map<SlotId, std::string>& cards);
  /// Waits until nothing of connecting is under way between this slot and any peer. DeadlineExceeded names those that
  /// did not answer. Without it the worker is left behind when the channel ends.
  Status wait_connected(std::chrono::milliseconds timeout);
  /// The peers whose segments this process reads, and the notice of a peer that it reads ours.
  std::vector<SlotId> segments_read() const;
  void segment_is_read_by(SlotId peer);

  SendBuffer buffer_for(SlotId to, size_t bytes);
  Status send(SlotId to, WireHeader header, Payload payload);
  /// Where a message of `bytes` from this peer is to land; empty when it will be read where it is.
  Payload landing(SlotId from, size_t bytes);
  /// Waits until no send is under way. DeadlineExceeded names the peers that hold one up.
  Status flush(std::chrono::milliseconds timeout);
  void close_peer(SlotId peer, const std::string& reason);
  /// The inbox has been aborted before.
  void close_all();
  void count(ChannelCounters& counters) const;
  void drive(SlotId from, const MessageTag& awaited, uint64_t seen,
             std::chrono::steady_clock::time_point until) override;

 private:
  struct Peer;
  struct SendOp;
  struct ReceiveOp;
  /// A thread that may sleep until there is something to do.
  struct Sleeper {
    int event = -1;
    std::atomic<int> asleep{0};
    ~Sleeper();
    Status open();
    void wake();
  };
  enum class Watch { kTransport, kOthers };
  using Clock = std::chrono::steady_clock;
  static int64_t now_ns() { return Clock::now().time_since_epoch().count(); }
  /// By a thread that drives or sends.
  std::chrono::nanoseconds since_progress() const { return std::chrono::nanoseconds(now_ns() - last_drive_.load()); }

  UcxLoop(const UcxChannelOptions& options, Inbox& inbox);
  Status open();
  Status add_peer(SlotId slot, const std::string& card);
  Peer* find(SlotId slot) const;

  // Progress. Functions named _locked are called under mutex_.
  template <typename Done>
  bool drive_until(Clock::time_point until, const Done& done);
  template <typename Done>
  void sleep(Sleeper& sleeper, Watch watch, Clock::time_point until, const Done& done);
  bool progress_locked();
  bool step();
  void run();
  bool background_may_rest() const;
  void reap(const std::vector<SlotId>& ended);
  void shut_down();
  Status wait_for_all(Clock::time_point until, const char* what, bool (*lacks)(const Peer&));

  // Transfers.
  bool pump_locked(Peer& peer);
  void start_locked(Peer& peer, SendGate::Item item);
  void share(Payload& payload);
  void tell_locked(Peer& peer, WireKind kind, const MessageTag& tag, std::vector<uint64_t>* tickets);
  void post_locked(Peer& peer, SendOp* op);
  SendOp* send_op_locked();
  void end_send(SendOp* op, ucs_status_t status);
  ucs_status_t arrive(const void* header, size_t header_bytes, void* data, size_t bytes,
                      const ucp_am_recv_param_t* param);
  void arrive_in_segment(Peer& peer, const WireHeader& wire);
  ucs_status_t arrive_message(Peer& peer, const WireHeader& wire, void* data, const ucp_am_recv_param_t* param);
  void end_receive(ReceiveOp* op, ucs_status_t status);
  void deliver(const WireHeader& wire, Payload payload);

  // Peers.
  void begin_flush_locked(Peer& peer);
  void fail_locked(Peer& peer, const std::string& reason);
  void close_endpoint_locked(Peer& peer, const std::string& reason);
  std::string peers_where(bool (*holds)(const Peer&)) const;
  template <typename Act>
  void for_each_open_peer(const Act& act);

  static ucs_status_t on_message(void* self, const void* header, size_t header_bytes, void* data, size_t bytes,
                                 const ucp_am_recv_param_t* param);
  static void on_sent(void* request, ucs_status_t status, void* op);
  static void on_received(void* request, ucs_status_t status, size_t bytes, void* op);
  static void on_flushed(void* request, ucs_status_t status, void* peer);
  static void on_error(void* peer, ucp_ep_h endpoint, ucs_status_t status);

  const UcxChannelOptions options_;
  Inbox& inbox_;
  std::unique_ptr<UcxWorker> worker_;
  std::shared_ptr<SlabPool> pool_;
  std::shared_ptr<SharedSegment> segment_;  // null: not wanted, or the node has none to give
  std::shared_ptr<Releases> releases_;
  SentCounters sent_;
  std::thread thread_;
  Sleeper driver_, background_;
  std::atomic<int> drivers_{0};
  std::atomic<int64_t> last_drive_{0};  // steady clock, nanoseconds
  std::atomic<bool> stop_{false};
  std::atomic<int64_t> pending_{0};                    // sends under way or waiting for credit
  std::atomic<bool> started_{false}, settled_{false};  // settled: wait_connected has succeeded

  mutable std::mutex mutex_;                          // everything below, and every call of UCX
  std::map<SlotId, std::unique_ptr<Peer>> peers_;     // its keys are fixed after start()
  std::vector<void*> closing_;                        // requests of endpoints that are being closed
  std::vector<std::shared_ptr<const void>> cut_off_;  // memory that a lost peer or a failed transfer may still touch
  // All that were ever made, and those not in use. UCX never gives back some of those that a dead peer had begun to
  // take, so what it holds lives until the worker has ended.
  std::vector<std::unique_ptr<SendOp>> sends_;
  std::vector<std::unique_ptr<ReceiveOp>> receives_;
  std::vector<SendOp*> free_sends_;
  std::vector<ReceiveOp*> free_receives_;
  bool errors_ = false;  // some peer has a reason to be closed
};

}  // namespace troupe
