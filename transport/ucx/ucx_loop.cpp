#include "transport/ucx/ucx_loop.h"

#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "transport/channel/message.h"
#include "transport/ucx/ucx_peer.h"

namespace troupe {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

/// Polling before sleeping: a wake-up through the event descriptor costs about as much as this. The processor is
/// offered to others after the first part.
constexpr microseconds kSpin{50}, kSpinAlone{10};
/// The background thread leaves the worker alone while others have progressed it so recently.
constexpr microseconds kOthersProgress{300};
/// A receiver that has waited so long asks for its message: it may be waiting for credit.
constexpr milliseconds kAskAfter{1};
/// With several sleeping drivers one may take another's wake-up, so none sleeps longer than this.
constexpr milliseconds kSharedSleep{5};
constexpr size_t kRetainedBytes = size_t{512} << 20;
constexpr size_t kSegmentBytes = size_t{2} << 30;
/// What UCX puts into one piece over TCP: its own 8 KiB costs a call of the system for each, and nearly half the speed
/// at 64 KiB.
constexpr const char* kTcpSegment = "256k";
/// Whether UCX goes on while the other side takes its call. It must: when a peer ends between taking a call that was
/// waited for and reading from it, UCX 1.13 aborts in its progress; a call not waited for fails as a message does.
constexpr const char* kTcpGoesOn = "y";
constexpr size_t kReleaseBatch = size_t{1} << 20;
/// Calls of ucp_worker_progress in one hold of the lock.
constexpr int kProgressAtOnce = 64;

}  // namespace

UcxLoop::Sleeper::~Sleeper() {
  if (event >= 0) close(event);
}

Status UcxLoop::Sleeper::open() {
  event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (event >= 0) return {};
  return make_error(ErrorCode::kResourceExhausted, std::string("no event descriptor: ") + std::strerror(errno));
}

void UcxLoop::Sleeper::wake() {
  if (asleep.load() == 0) return;
  const uint64_t one = 1;
  [[maybe_unused]] const auto written = write(event, &one, sizeof one);
}

UcxLoop::UcxLoop(const UcxChannelOptions& options, Inbox& inbox)
    : options_(options), inbox_(inbox), pool_(SlabPool::create(kRetainedBytes)) {
  releases_ = Releases::create(std::min(kReleaseBatch, options.credit_bytes / 4), [this] {
    driver_.wake();
    background_.wake();
  });
}

Result<std::unique_ptr<UcxLoop>> UcxLoop::create(const UcxChannelOptions& options, Inbox& inbox) {
  std::unique_ptr<UcxLoop> loop(new UcxLoop(options, inbox));
  TROUPE_RETURN_IF_ERROR(loop->open());
  return loop;
}

Status UcxLoop::open() {
  TROUPE_RETURN_IF_ERROR(driver_.open());
  TROUPE_RETURN_IF_ERROR(background_.open());
  UcxWorkerOptions worker;
  worker.interface_address = options_.interface_address;
  worker.transports = options_.transports;
  if (options_.transports.empty() || options_.transports.find("tcp") != std::string::npos)
    worker.settings = {{"TX_SEG_SIZE", kTcpSegment}, {"RX_SEG_SIZE", kTcpSegment}, {"CONN_NB", kTcpGoesOn}};
  TROUPE_ASSIGN(worker_, UcxWorker::create(worker));
  ucp_am_handler_param_t handler{};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                       UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  handler.id = kMessageId;
  handler.flags = UCP_AM_FLAG_WHOLE_MSG;
  handler.cb = &UcxLoop::on_message;
  handler.arg = this;
  const ucs_status_t status = ucp_worker_set_am_recv_handler(worker_->get(), &handler);
  if (status != UCS_OK) return ucx_error("setting the message handler", status);
  if (!options_.shared_segment) return {};
  // Without one the messages carry their payloads.
  auto segment = SharedSegment::create(kSegmentBytes, kRetainedBytes);
  if (segment.ok()) segment_ = std::move(*segment);
  return {};
}

/// Everything that there is to do now, within bounds. True when something was done.
bool UcxLoop::progress_locked() {
  bool worked = false;
  for (int i = 0; i < kProgressAtOnce && ucp_worker_progress(worker_->get()) != 0; ++i) worked = true;
  for (auto& [slot, peer] : peers_) {
    if (peer->endpoint == nullptr) continue;
    if (peer->to_pump) worked |= pump_locked(*peer);
    releases_->take_due(slot, kTicketsAtOnce, peer->tickets);
    if (!peer->tickets.empty()) {
      tell_locked(*peer, WireKind::kRelease, {}, &peer->tickets);
      worked = true;
    }
  }
  if (errors_) {
    errors_ = false;
    for (auto& [slot, peer] : peers_) {
      if (!peer->failure.empty()) close_endpoint_locked(*peer, peer->failure);
    }
  }
  return worked;
}

bool UcxLoop::step() {
  std::lock_guard lock(mutex_);
  return progress_locked();
}

/// Sleeps until a wake-up, the end of a watched process, or (kTransport) something for UCX to do. Whoever makes `done`
/// true afterwards sees that this thread is asleep.
template <typename Done>
void UcxLoop::sleep(Sleeper& sleeper, Watch watch, Clock::time_point until, const Done& done) {
  thread_local std::vector<pollfd> events;
  thread_local std::vector<SlotId> watched;
  events.assign(1, {sleeper.event, POLLIN, 0});
  watched.clear();
  {
    std::lock_guard lock(mutex_);
    if (watch == Watch::kTransport) {
      if (ucp_worker_arm(worker_->get()) != UCS_OK) return;
      events.push_back({worker_->event(), POLLIN, 0});
    }
    for (const auto& [slot, peer] : peers_) {
      if (peer->process < 0) continue;
      watched.push_back(slot);
      events.push_back({peer->process, POLLIN, 0});
    }
    sleeper.asleep.fetch_add(1);
  }
  const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(until - Clock::now()).count();
  if (!done() && left > 0) {
    const timespec wait{left / 1000000000, left % 1000000000};
    ppoll(events.data(), events.size(), &wait, nullptr);
  }
  sleeper.asleep.fetch_sub(1);
  uint64_t count = 0;
  [[maybe_unused]] const auto drained = read(sleeper.event, &count, sizeof count);
  const size_t first = events.size() - watched.size();
  std::vector<SlotId> ended;
  for (size_t i = 0; i < watched.size(); ++i) {
    if ((events[first + i].revents & POLLIN) != 0) ended.push_back(watched[i]);
  }
  if (!ended.empty()) reap(ended);
}

/// Progresses on behalf of the calling thread until `done`, true, or the time is up.
template <typename Done>
bool UcxLoop::drive_until(Clock::time_point until, const Done& done) {
  drivers_.fetch_add(1);
  auto idle_since = Clock::now();
  bool slept = false, ended = done();
  for (auto now = idle_since; !ended && now < until;) {
    const bool worked = step();
    ended = done();
    now = Clock::now();
    if (worked || ended) {
      idle_since = now;
    } else if (now - idle_since > kSpin) {
      const bool alone = drivers_.load() == 1;
      sleep(driver_, Watch::kTransport, alone ? until : std::min(until, now + kSharedSleep), done);
      slept = true;
      ended = done();
      now = idle_since = Clock::now();
    } else if (now - idle_since > kSpinAlone) {
      sched_yield();
    }
  }
  last_drive_.store(now_ns());
  drivers_.fetch_sub(1);
  if (slept) background_.wake();
  return ended;
}

void UcxLoop::drive(SlotId from, const MessageTag& awaited, uint64_t seen, Clock::time_point until) {
  const auto changed = [&] { return inbox_.changes() != seen; };
  const auto ask_at = Clock::now() + kAskAfter;
  if (drive_until(std::min(until, ask_at), changed) || ask_at >= until) return;
  {
    std::lock_guard lock(mutex_);
    Peer* peer = find(from);
    if (peer != nullptr && peer->endpoint != nullptr) tell_locked(*peer, WireKind::kWant, awaited, nullptr);
  }
  (void)drive_until(until, changed);
}

/// True while another thread moves the transport.
bool UcxLoop::background_may_rest() const {
  if (drivers_.load() > 0) return true;
  return since_progress() < kOthersProgress;
}

void UcxLoop::run() {
  constexpr std::chrono::hours kNoTraffic{1};
  auto idle_since = Clock::now();
  const auto stopped = [this] { return stop_.load(); };
  while (!stop_.load()) {
    if (background_may_rest()) {
      // A driver that sleeps wakes this thread when it leaves.
      const bool long_rest = driver_.asleep.load() > 0;
      sleep(background_, Watch::kOthers,
            Clock::now() + (long_rest ? kNoTraffic : std::chrono::nanoseconds(kOthersProgress)),
            [&] { return stopped() || (long_rest && driver_.asleep.load() == 0); });
      idle_since = Clock::now();
      continue;
    }
    const bool worked = step();
    if (worked) driver_.wake();
    const auto now = Clock::now();
    if (worked) {
      idle_since = now;
    } else if (now - idle_since > kSpin) {
      sleep(background_, Watch::kTransport, now + kNoTraffic, [&] { return stopped() || background_may_rest(); });
      idle_since = Clock::now();
    } else if (now - idle_since > kSpinAlone) {
      sched_yield();
    }
  }
  shut_down();
}

template <typename Act>
void UcxLoop::for_each_open_peer(const Act& act) {
  std::lock_guard lock(mutex_);
  for (auto& [slot, peer] : peers_) {
    if (peer->endpoint != nullptr) act(*peer);
  }
}

/// Of connecting, a peer that is lost ends all: nobody waits for the others.
Status UcxLoop::wait_for_all(Clock::time_point until, const char* what, bool (*lacks)(const Peer&)) {
  const std::string self = std::to_string(options_.self.value);
  const auto lost = [&]() -> Status {
    TROUPE_RETURN_IF_ERROR(inbox_.usable(SlotId(-1), {}));
    std::lock_guard lock(mutex_);
    for (const auto& [slot, peer] : peers_) {
      if (peer->endpoint == nullptr)
        return unavailable("slot " + std::to_string(slot.value) + " went away while slot " + self +
                           " connected to it (" + peer->failure + ")");
    }
    return {};
  };
  if (!drive_until(until, [&] { return !lost().ok() || peers_where(lacks).empty(); }))
    return deadline_exceeded("slots " + peers_where(lacks) + " did not " + what + " slot " + self + " in time");
  return lost();
}

/// UCX asks for the peer's number of an endpoint only when something needs it, over TCP with the first large message. A
/// hello that may be replied to needs it. So a peer's hello comes behind its question, which this side has answered
/// then, and the flush waits for that answer to leave. From then on nothing of connecting is under way: UCX 1.13 ends
/// the process when an answer is left over on a connection that a death has cut.
Status UcxLoop::wait_connected(milliseconds timeout) {
  const auto until = Clock::now() + timeout;
  TROUPE_RETURN_IF_ERROR(wait_for_all(until, "answer", [](const Peer& peer) { return !peer.connected; }));
  for_each_open_peer([this](Peer& peer) { tell_locked(peer, WireKind::kHello, {}, nullptr); });
  TROUPE_RETURN_IF_ERROR(wait_for_all(until, "greet", [](const Peer& peer) { return !peer.greeted; }));
  for_each_open_peer([this](Peer& peer) { begin_flush_locked(peer); });
  TROUPE_RETURN_IF_ERROR(wait_for_all(until, "take the greeting of", [](const Peer& peer) { return !peer.settled; }));
  settled_.store(true);
  return {};
}

Status UcxLoop::flush(milliseconds timeout) {
  const auto done = [this] { return pending_.load() == 0 || !inbox_.usable(SlotId(-1), {}).ok(); };
  if (!drive_until(Clock::now() + timeout, done)) {
    return deadline_exceeded(
        "messages of slot " + std::to_string(options_.self.value) + " to slots " +
        peers_where([](const Peer& peer) { return peer.under_way > 0 || peer.gate.queued() > 0; }) +
        " were not taken within " + std::to_string(timeout.count()) + " ms");
  }
  return inbox_.usable(SlotId(-1), {});
}

UcxLoop::~UcxLoop() {
  if (segment_) segment_->leave_to_readers();
  releases_->close();
  if (thread_.joinable()) {
    stop_.store(true);
    background_.wake();
    thread_.join();
  }
  // See wait_connected: what is left of connecting cannot be told from here.
  if (!peers_.empty() && !settled_.load()) worker_->abandon();
  worker_.reset();
}

void UcxLoop::count(ChannelCounters& counters) const {
  sent_.count(counters);
  releases_->count(counters);
  counters.allocations = pool_->allocations() + (segment_ ? segment_->allocations() : 0);
  std::lock_guard lock(mutex_);
  for (const auto& [slot, peer] : peers_) counters.credit_waits += peer->gate.waits();
}

}  // namespace troupe
