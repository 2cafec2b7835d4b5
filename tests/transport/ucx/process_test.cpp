#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <thread>

#include "tests/transport/channel/channel_contract.h"
#include "tests/transport/test_processes.h"
#include "transport/channel/channel.h"

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;

namespace {

enum ChildResult { kFreed = 0, kNotConnected = 1, kWrongCode = 2, kTooLate = 3, kNoMessage = 4, kSlowEnd = 5 };

/// On an idle machine the wait ends at once and the channel within a second. A busy one adds seconds; a wait that the
/// notice does not end takes a minute.
constexpr std::chrono::seconds kWaitBound{5}, kEndBound{15};

/// Sends a large message, waits for another, and must be freed by the notice: once with its own send cut off, once with
/// a receive.
int survive(KvStore& store) {
  auto channel = create_ucx_channel({"job/g1", SlotId(0), ""});
  if (!channel.ok() || !(*channel)->connect({SlotId(1)}, store, 30s).ok()) return kNotConnected;
  Channel& link = **channel;
  if (!link.receive(SlotId(1), numbered_tag(0), header_of(64 << 20), 30s).ok()) return kNoMessage;
  std::chrono::steady_clock::time_point noticed;
  std::thread control([&] {
    (void)store.get("lost", 60s);
    noticed = std::chrono::steady_clock::now();
    link.peer_lost(SlotId(1));
  });
  for (int i = 0; i < 8; ++i) (void)link.send(SlotId(1), numbered_tag(i), header_of(16 << 20), patterned(16 << 20, 1));
  const auto received = link.receive(SlotId(1), numbered_tag(99), header_of(8), 60s);
  const auto freed = std::chrono::steady_clock::now();
  control.join();
  channel->reset();
  if (received.ok() || received.error().code != ErrorCode::kUnavailable) return kWrongCode;
  if (freed - noticed >= kWaitBound) return kTooLate;
  return std::chrono::steady_clock::now() - noticed < kEndBound ? kFreed : kSlowEnd;
}

/// Sends one message whole, then goes away with several large ones under way in both directions.
int go_away(KvStore& store, int signal) {
  auto channel = create_ucx_channel({"job/g1", SlotId(1), ""});
  if (!channel.ok() || !(*channel)->connect({SlotId(0)}, store, 30s).ok()) return kNotConnected;
  for (int i = 0; i < 4; ++i) {
    (void)(*channel)->send(SlotId(0), numbered_tag(i), header_of(64 << 20), patterned(64 << 20, 1));
  }
  (void)(*channel)->receive(SlotId(0), numbered_tag(0), header_of(16 << 20), 30s);
  ::kill(getpid(), signal);
  return kWrongCode;
}

}  // namespace

TEST_CASE(
    "a peer that is killed or stopped inside large transfers takes nobody with it, and the notice ends the waits for "
    "it") {
  const int signal = GENERATE(SIGKILL, SIGSTOP);
  SharedKvStore store;
  const int survivor = fork_child([&] { return survive(store); });
  const int lost = fork_child([&] { return go_away(store, signal); });
  if (signal == SIGKILL) {
    CHECK(wait_for_exit(lost) == -SIGKILL);
  } else {
    CHECK(wait_for_stop(lost));
  }
  REQUIRE(store.set("lost", "1").ok());
  CHECK(wait_for_exit(survivor) == kFreed);
  if (signal == SIGSTOP) {
    ::kill(lost, SIGKILL);
    CHECK(wait_for_exit(lost) == -SIGKILL);
  }
}
