#pragma once

#include <cuda_runtime_api.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "transport/channel/inbox.h"
#include "transport/channel/slab_pool.h"
#include "transport/channel/wire_header.h"
#include "transport/nccl/nccl_comm.h"

namespace troupe {

/// One peer of an NCCL channel: a communicator, a stream and a thread for each direction. The sending thread announces
/// each message over the control channel and sends its bytes; the receiving thread follows the announcements in their
/// order.
class NcclLink {
 public:
  struct Shared {
    SlotId self;
    int device;
    Channel* control;
    Inbox* inbox;
    std::shared_ptr<SlabPool> pool;  // of device memory
  };
  NcclLink(Shared shared, SlotId peer) : shared_(std::move(shared)), peer_(peer) {}
  /// The owner has aborted the control channel before.
  ~NcclLink();
  NcclLink(const NcclLink&) = delete;
  NcclLink& operator=(const NcclLink&) = delete;

  Status connect(const std::string& name, KvStore& store, std::chrono::milliseconds timeout);
  void send(const WireHeader& header, Payload payload);
  /// Waits until the queue is empty; false when the time runs out.
  bool flush(std::chrono::milliseconds timeout);
  std::vector<NcclComm*> communicators() { return {out_.get(), in_.get()}; }
  /// Lets go of what waits to be sent; the caller aborts the communicators.
  void stop();

 private:
  struct Outgoing {
    WireHeader header;
    Payload payload;
  };
  void run_sender();
  void run_receiver();
  Status send_one(const Outgoing& outgoing, int64_t number);
  Status receive_one(const WireHeader& header);
  void fail(const Error& error);

  const Shared shared_;
  const SlotId peer_;
  std::unique_ptr<NcclComm> out_, in_;
  cudaStream_t out_stream_ = nullptr, in_stream_ = nullptr;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Outgoing> queue_;  // the front one is under way
  bool stopped_ = false;
  std::thread sender_, receiver_;
};

}  // namespace troupe
