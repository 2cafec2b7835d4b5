#include "tests/transport/ucx/chaos.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "tests/transport/channel/channel_contract.h"
#include "tests/transport/test_processes.h"
#include "transport/channel/channel.h"

using namespace std::chrono_literals;

namespace troupe::testing {
namespace {

constexpr int kProcesses = 3, kMessages = 24;
constexpr auto kPatience = 30s;
/// A process that ends or stops while it puts a message into another's queue in shared memory blocks that queue for all
/// who write to it. So what survivors exchange may stand still until the control plane ends the generation, here after
/// this time.
constexpr auto kGenerationEnds = 3s;
/// From the death of the victim to the end of the survivors, who have all else to exchange too. Far above what it takes
/// (0.2 s), as the machine may have other work.
constexpr auto kMostTime = 10s;

enum Outcome { kDone = 0, kPeerLost = 10, kWrongRow, kUnnamed, kOtherError, kHung, kNotConnected };

struct Plan {
  int victim = 0, signal = SIGKILL, at = 0;
  UcxChannelOptions options;
  std::chrono::microseconds while_connecting{0};  // after this time instead of `at`, when not 0
};

/// Seeds from here on are of processes that end while they connect.
constexpr uint64_t kConnecting = uint64_t{1} << 32;

Plan plan_of(uint64_t seed) {
  std::mt19937_64 random(seed);
  Plan plan;
  plan.victim = static_cast<int>(random() % kProcesses);
  plan.signal = random() % 2 == 0 ? SIGKILL : SIGSTOP;
  plan.at = static_cast<int>(random() % (2 * kMessages));
  plan.options.name = "chaos/" + std::to_string(seed);
  if (random() % 3 == 0) plan.options.credit_bytes = size_t{8} << 20;
  if (seed >= kConnecting) plan.while_connecting = std::chrono::microseconds(1 + random() % 4000);
  switch (seed % 3) {
    case 0:
      break;
    case 1:
      plan.options.shared_segment = false;
      plan.options.transports = "tcp";
      break;
    default:
      plan.options.shared_segment = false;
      plan.options.transports = "posix";
  }
  return plan;
}

/// Sizes are a function of the message, so that both ends know them.
size_t size_of(uint64_t seed, int number, int from, int to) {
  const uint64_t draw = (seed * 2654435761u + static_cast<uint64_t>(number) * 40503u) >> 7;
  const int victim = plan_of(seed).victim, other = (victim + 1) % kProcesses;
  if (number == 11 && std::minmax(from, to) == std::minmax(victim, other)) return size_t{64} << 20;
  constexpr size_t kSizes[] = {8, 4096, 65536, 300000, size_t{2} << 20};
  return kSizes[draw % 5];
}

Payload rows_of(int number, int from, size_t bytes) {
  auto rows = std::make_shared<std::vector<std::byte>>(bytes, static_cast<std::byte>(number * 7 + from));
  return {rows->data(), bytes, rows, nullptr};
}

bool right(const Payload& payload, int number, int from, size_t bytes) {
  const auto expected = static_cast<std::byte>(number * 7 + from);
  return payload.bytes == bytes &&
         std::all_of(payload.data, payload.data + payload.bytes, [&](std::byte b) { return b == expected; });
}

MessageTag tag_of(int number, int from) {
  MessageTag tag = numbered_tag(number);
  tag.from_rank = from;
  return tag;
}

int judge(const Error& error, const Plan& plan, int self) {
  if (error.code != ErrorCode::kUnavailable) return error.code == ErrorCode::kDeadlineExceeded ? kHung : kOtherError;
  const bool peer = error.message.find("slot " + std::to_string(plan.victim)) != std::string::npos;
  const bool own = error.message.find("slot " + std::to_string(self)) != std::string::npos;
  return peer && own ? kPeerLost : kUnnamed;
}

struct Task {
  bool send;
  int number;
  SlotId peer;
};

Status perform(Channel& channel, const Task& task, uint64_t seed, int self) {
  const int from = task.send ? self : task.peer.value;
  const size_t bytes = size_of(seed, task.number, from, task.send ? task.peer.value : self);
  if (task.send)
    return channel.send(task.peer, tag_of(task.number, self), header_of(bytes), rows_of(task.number, self, bytes));
  const auto received = channel.receive(task.peer, tag_of(task.number, from), header_of(bytes), kPatience);
  if (received.ok() && !right(*received, task.number, from, bytes)) _exit(kWrongRow);
  return received.status();
}

/// A store whose user may be ended at any time but inside of it: one that is gone inside a shared condition variable
/// holds up the others.
class InterruptedStore final : public KvStore {
 public:
  explicit InterruptedStore(KvStore& store) : store_(store) {}
  Status set(const std::string& key, const std::string& value) override {
    const std::lock_guard lock(mutex_);
    return store_.set(key, value);
  }
  Result<std::string> get(const std::string& key, std::chrono::milliseconds timeout) override {
    const auto until = std::chrono::steady_clock::now() + timeout;
    while (true) {
      {
        const std::lock_guard lock(mutex_);
        auto value = store_.get(key, 0ms);
        if (value.ok() || std::chrono::steady_clock::now() >= until) return value;
      }
      std::this_thread::sleep_for(100us);
    }
  }
  Result<int64_t> add(const std::string& key, int64_t amount) override {
    const std::lock_guard lock(mutex_);
    return store_.add(key, amount);
  }
  Result<std::string> compare_set(const std::string& key, const std::string& expected,
                                  const std::string& desired) override {
    const std::lock_guard lock(mutex_);
    return store_.compare_set(key, expected, desired);
  }
  Result<bool> check(const std::vector<std::string>& keys) override {
    const std::lock_guard lock(mutex_);
    return store_.check(keys);
  }
  Result<bool> erase(const std::string& key) override {
    const std::lock_guard lock(mutex_);
    return store_.erase(key);
  }
  void end_with(int signal) {
    const std::lock_guard lock(mutex_);
    ::kill(getpid(), signal);
  }

 private:
  KvStore& store_;
  std::mutex mutex_;
};

/// What a survivor makes of a peer that ends while they connect; the victim stays until it does.
int connect_only(Channel& channel, const std::vector<SlotId>& peers, KvStore& store, const Plan& plan, int self) {
  std::thread control([&] {
    if (self != plan.victim && store.get("lost", 60s).ok()) channel.peer_lost(SlotId(plan.victim));
  });
  const Status connected = channel.connect(peers, store, kPatience);
  if (self == plan.victim) pause();
  control.join();
  if (connected.ok()) return kDone;
  int judged = judge(connected.error(), plan, self);
  // A survivor that gave up leaves too, and then the other one may have lost it.
  Plan other = plan;
  for (other.victim = 0; judged == kUnnamed && other.victim < kProcesses; ++other.victim)
    if (other.victim != self) judged = judge(connected.error(), other, self);
  if (judged != kPeerLost) std::fprintf(stderr, "slot %d: %s\n", self, connected.error().to_string().c_str());
  return judged;
}

/// Every process sends all its messages to both others, in an order of its own, and takes theirs in another.
int take_part(uint64_t seed, int self, KvStore& store) {
  const Plan plan = plan_of(seed);
  std::mt19937_64 random(seed * 31 + static_cast<uint64_t>(self));
  UcxChannelOptions options = plan.options;
  options.self = SlotId(self);
  auto made = create_ucx_channel(options);
  if (!made.ok()) return kNotConnected;
  Channel& channel = **made;
  std::vector<SlotId> peers;
  for (int slot = 0; slot < kProcesses; ++slot) {
    if (slot != self) peers.emplace_back(slot);
  }
  InterruptedStore interrupted(store);
  std::thread end_of_victim;
  if (plan.while_connecting.count() > 0 && self == plan.victim)
    end_of_victim = std::thread([&] {
      std::this_thread::sleep_for(plan.while_connecting);
      interrupted.end_with(plan.signal);
    });
  if (plan.while_connecting.count() > 0)
    return connect_only(channel, peers, self == plan.victim ? interrupted : store, plan, self);
  if (!channel.connect(peers, store, kPatience).ok()) return kNotConnected;
  std::vector<Task> sends, receives;
  for (int number = 0; number < kMessages; ++number) {
    for (const SlotId peer : peers) {
      sends.push_back({true, number, peer});
      receives.push_back({false, number, peer});
    }
  }
  std::shuffle(sends.begin(), sends.end(), random);
  std::shuffle(receives.begin(), receives.end(), random);
  // The control plane: a notice of a stopped peer comes from its lease, of a killed one from the channel itself.
  // The victim waits for nothing in the store: one that is gone inside a shared condition variable holds up the others.
  std::mutex mutex;
  std::condition_variable changed;
  bool finished = false, aborted = false;  // under mutex
  std::thread control([&] {
    if (self == plan.victim) return;
    const auto lost = store.get("lost", 60s);
    if (lost.ok() && *lost == "stopped") channel.peer_lost(SlotId(plan.victim));
    if (!lost.ok() || plan.options.transports == "tcp") return;
    std::unique_lock lock(mutex);
    aborted = !changed.wait_for(lock, kGenerationEnds, [&] { return finished; });
    lock.unlock();
    if (aborted) channel.abort();
  });
  const auto was_aborted = [&] {
    std::lock_guard lock(mutex);
    return aborted;
  };
  // Sends and receives are two threads: an order of one process alone could wait in a circle with another's.
  std::atomic<int> outcome{kDone}, step{0};
  const auto work = [&](const std::vector<Task>& tasks, uint64_t salt) {
    std::mt19937_64 delays(seed * 97 + static_cast<uint64_t>(self) * 7 + salt);
    for (const Task& task : tasks) {
      if (self == plan.victim && step.fetch_add(1) == plan.at) ::kill(getpid(), plan.signal);
      if (delays() % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds(delays() % 2000));
      const auto begun = std::chrono::steady_clock::now();
      const Status status = perform(channel, task, seed, self);
      if (status.ok()) continue;
      const bool on_victim = task.peer == SlotId(plan.victim);
      // What is aborted is what survivors exchange; on the victim nobody waits that long.
      const bool waited = std::chrono::steady_clock::now() - begun >= kGenerationEnds;
      if (status.error().code == ErrorCode::kAborted && was_aborted() && !(on_victim && waited)) return;
      const int judged = on_victim ? judge(status.error(), plan, self) : kOtherError;
      if (judged != kPeerLost)
        std::fprintf(stderr, "seed %lu, slot %d: %s\n", seed, self, status.error().to_string().c_str());
      if (judged != kPeerLost) _exit(judged);
      outcome = judged;  // the rest goes on: the other survivor waits for it
    }
  };
  std::thread sender([&] { work(sends, 1); });
  work(receives, 2);
  sender.join();
  // Messages to a peer that is gone are nobody's to wait for.
  if (const Status s = channel.flush(kPatience); !s.ok() && s.error().code == ErrorCode::kDeadlineExceeded) {
    std::fprintf(stderr, "seed %lu, slot %d: %s\n", seed, self, s.error().to_string().c_str());
    _exit(kHung);
  }
  {
    std::lock_guard lock(mutex);
    finished = true;
  }
  changed.notify_all();
  control.join();
  (void)store.set("done/" + std::to_string(self), "1");
  for (const SlotId peer : peers) {
    if (peer.value != plan.victim) (void)store.get("done/" + std::to_string(peer.value), 20s);
  }
  made->reset();
  _exit(outcome);
}

/// The exit status of `pid` within the time; a process that is still there is killed and -1000 returned.
int exit_within(int pid, std::chrono::milliseconds timeout) {
  const int descriptor = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  pollfd event{descriptor, POLLIN, 0};
  const bool ended = poll(&event, 1, static_cast<int>(timeout.count())) == 1;
  close(descriptor);
  if (!ended) ::kill(pid, SIGKILL);
  const int status = wait_for_exit(pid);
  return ended ? status : -1000;
}

}  // namespace

std::string chaos_round(uint64_t seed, int* losses) {
  const Plan plan = plan_of(seed);
  SharedKvStore store;
  int pids[kProcesses];
  for (int self = 0; self < kProcesses; ++self) pids[self] = fork_child([&] { return take_part(seed, self, store); });
  std::string wrong;
  if (plan.signal == SIGSTOP) {
    if (!wait_for_stop(pids[plan.victim])) wrong += "the victim was not stopped; ";
    (void)store.set("lost", "stopped");
  } else {
    if (wait_for_exit(pids[plan.victim]) != -SIGKILL) wrong += "the victim was not killed; ";
    (void)store.set("lost", "killed");
  }
  const auto died = std::chrono::steady_clock::now();
  for (int self = 0; self < kProcesses; ++self) {
    if (self == plan.victim) continue;
    const int status = exit_within(pids[self], 60s);
    if (losses != nullptr) *losses += status == kPeerLost;
    if (status != kPeerLost && status != kDone)
      wrong += "survivor " + std::to_string(self) + " ended with " + std::to_string(status) + "; ";
  }
  if (std::chrono::steady_clock::now() - died > kMostTime) wrong += "the survivors took longer than 10 s; ";
  if (plan.signal == SIGSTOP) {
    ::kill(pids[plan.victim], SIGKILL);
    (void)wait_for_exit(pids[plan.victim]);
  }
  return wrong;
}

std::string chaos_of_connecting(uint64_t seed, int* losses) { return chaos_round(kConnecting + seed, losses); }

}  // namespace troupe::testing
