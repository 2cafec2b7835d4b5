#include "transport/nccl/link.h"

#include <algorithm>
#include <cstring>

namespace troupe {
namespace {

/// How long a receiving thread waits for an announcement before it waits again: only so that no wait is without a
/// deadline.
constexpr std::chrono::milliseconds kAnnouncementWait{60000};
constexpr MessageHeader kAnnouncement{1, sizeof(WireHeader), 0, 0};

/// Announcements are numbered in the sender's order; the control channel carries nothing else.
MessageTag announcement_tag(int64_t number) {
  MessageTag tag;
  tag.step = number;
  return tag;
}

Status cuda_status(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return {};
  return internal_error(std::string(what) + ": " + cudaGetErrorString(result));
}

}  // namespace

Status NcclLink::connect(const std::string& name, KvStore& store, std::chrono::milliseconds timeout) {
  TROUPE_RETURN_IF_ERROR(cuda_status(cudaSetDevice(shared_.device), "selecting the CUDA device"));
  TROUPE_RETURN_IF_ERROR(
      cuda_status(cudaStreamCreateWithFlags(&out_stream_, cudaStreamNonBlocking), "creating a stream"));
  TROUPE_RETURN_IF_ERROR(
      cuda_status(cudaStreamCreateWithFlags(&in_stream_, cudaStreamNonBlocking), "creating a stream"));
  const SlotId low = std::min(shared_.self, peer_), high = std::max(shared_.self, peer_);
  // Both ends make the pair's communicators in the same order; rank 0 sends.
  for (const auto& [from, to] : {std::pair(low, high), std::pair(high, low)}) {
    NcclCommOptions options;
    options.name = name + "/" + std::to_string(from.value) + "-" + std::to_string(to.value);
    options.size = 2;
    options.rank = shared_.self == from ? 0 : 1;
    options.device = shared_.device;
    options.timeout = timeout;
    TROUPE_ASSIGN(auto communicator, NcclComm::create(options, store));
    (shared_.self == from ? out_ : in_) = std::move(communicator);
  }
  sender_ = std::thread([this] { run_sender(); });
  receiver_ = std::thread([this] { run_receiver(); });
  return {};
}

void NcclLink::send(const WireHeader& header, Payload payload) {
  {
    std::lock_guard lock(mutex_);
    queue_.push_back({header, std::move(payload)});
  }
  changed_.notify_all();
}

bool NcclLink::flush(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, std::chrono::steady_clock::now() + timeout,
                             [this] { return queue_.empty() || stopped_; });
}

void NcclLink::run_sender() {
  (void)cudaSetDevice(shared_.device);
  for (int64_t number = 0;; ++number) {
    Outgoing outgoing;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stopped_ || !queue_.empty(); });
      if (stopped_) return;
      outgoing = queue_.front();
    }
    const Status sent = send_one(outgoing, number);
    outgoing = {};
    Outgoing done;
    {
      std::lock_guard lock(mutex_);
      if (!queue_.empty()) {
        done = std::move(queue_.front());
        queue_.pop_front();
      }
    }
    changed_.notify_all();
    if (!sent.ok()) return fail(sent.error());
  }
}

Status NcclLink::send_one(const Outgoing& outgoing, int64_t number) {
  auto announcement = std::make_shared<WireHeader>(outgoing.header);
  const Payload payload{reinterpret_cast<const std::byte*>(announcement.get()), sizeof(WireHeader), announcement,
                        nullptr};
  TROUPE_RETURN_IF_ERROR(shared_.control->send(peer_, announcement_tag(number), kAnnouncement, payload));
  if (outgoing.payload.bytes == 0) return {};
  TROUPE_RETURN_IF_ERROR(out_->enqueue([&](ncclComm_t comm) {
    return ncclSend(outgoing.payload.data, outgoing.payload.bytes, ncclUint8, 1, comm, out_stream_);
  }));
  return cuda_status(cudaStreamSynchronize(out_stream_), "sending");
}

void NcclLink::run_receiver() {
  (void)cudaSetDevice(shared_.device);
  for (int64_t number = 0;;) {
    {
      std::lock_guard lock(mutex_);
      if (stopped_) return;
    }
    const auto announced = shared_.control->receive(peer_, announcement_tag(number), kAnnouncement, kAnnouncementWait);
    if (!announced.ok() && announced.error().code == ErrorCode::kDeadlineExceeded) continue;
    if (!announced.ok()) return fail(announced.error());
    WireHeader header;
    std::memcpy(&header, announced->data, sizeof header);
    const Status received = receive_one(header);
    if (!received.ok()) return fail(received.error());
    ++number;
  }
}

/// An unwanted message is received too: its bytes stand in the communicator's order.
Status NcclLink::receive_one(const WireHeader& header) {
  Inbox::Admission admission = shared_.inbox->admit(peer_, header.tag(), header.header());
  SlabPool::Slab slab;
  if (admission.landing.owner && admission.landing.bytes >= header.bytes) {
    // The landing place came from this channel's pool, whose memory is writable; Payload only shows it as read-only.
    slab = {const_cast<std::byte*>(admission.landing.data), admission.landing.bytes,
            std::move(admission.landing.owner)};
  } else {
    try {
      slab = shared_.pool->take(header.bytes);
    } catch (const std::bad_alloc&) {
      return make_error(ErrorCode::kResourceExhausted, "no " + std::to_string(header.bytes) +
                                                           " bytes of device memory for " + header.tag().to_string());
    }
  }
  if (header.bytes > 0) {
    TROUPE_RETURN_IF_ERROR(in_->enqueue(
        [&](ncclComm_t comm) { return ncclRecv(slab.data, header.bytes, ncclUint8, 0, comm, in_stream_); }));
    TROUPE_RETURN_IF_ERROR(cuda_status(cudaStreamSynchronize(in_stream_), "receiving"));
  }
  if (admission.wanted)
    shared_.inbox->complete(peer_, header.tag(), {slab.data, header.bytes, std::move(slab.owner), nullptr});
  return {};
}

void NcclLink::fail(const Error& error) { shared_.inbox->lose(peer_, error.message); }

void NcclLink::stop() {
  std::deque<Outgoing> dropped;
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
    // The front one may be under way: its bytes are held until the thread has let go of them.
    while (queue_.size() > 1) {
      dropped.push_back(std::move(queue_.back()));
      queue_.pop_back();
    }
  }
  changed_.notify_all();
}

NcclLink::~NcclLink() {
  stop();
  if (sender_.joinable()) sender_.join();
  if (receiver_.joinable()) receiver_.join();
  out_.reset();
  in_.reset();
  if (out_stream_ != nullptr) (void)cudaStreamDestroy(out_stream_);
  if (in_stream_ != nullptr) (void)cudaStreamDestroy(in_stream_);
}

}  // namespace troupe
