#include <ATen/ops/zeros.h>
#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <thread>

#include "tests/transport/test_processes.h"
#include "transport/world/world.h"

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;

namespace {

constexpr int kRanks = 4;
const AxisSet kTp{Axis::kTp};

enum ChildResult { kFreed = 0, kNoWorld = 1, kWrongCode = 2, kTooLate = 3, kNotFailed = 4 };

std::unique_ptr<World> make_world(int rank, KvStore& store) {
  WorldOptions options;
  options.name = "g1/processes";
  options.mesh.set(Axis::kTp, kRanks);
  options.rank = rank;
  options.axes = options.posted_axes = {kTp};
  options.timeout = 60s;
  auto world = create_gloo_world(options, store);
  return world.ok() ? std::move(*world) : nullptr;
}

using AllReduce = void (*)(World&, at::Tensor&);
void direct(World& world, at::Tensor& tensor) { world.over(kTp).all_reduce_sum(tensor); }
void posted(World& world, at::Tensor& tensor) {
  world.wait_posted(world.post([&] { world.posted_over(kTp).all_reduce_sum(tensor); }));
}

/// A survivor: enters the collective and is freed by the notice that its own control thread gets, as an actor host
/// would be.
int survive(int rank, KvStore& store, int64_t elements, const AllReduce& all_reduce) {
  auto world = make_world(rank, store);
  if (!world) return kNoWorld;
  std::chrono::steady_clock::time_point noticed;
  std::thread control([&] {
    (void)store.get("lost", 60s);
    noticed = std::chrono::steady_clock::now();
    world->abort();
  });
  at::Tensor tensor = at::zeros({elements});
  ErrorCode code = ErrorCode::kInternal;
  bool failed = false;
  try {
    for (int i = 0; i < 1000000 && !failed; ++i) all_reduce(*world, tensor);
  } catch (const ErrorException& e) {
    failed = true;
    code = e.error.code;
  }
  const auto freed = std::chrono::steady_clock::now();
  control.join();
  world.reset();
  if (!failed) return kNotFailed;
  if (code != ErrorCode::kAborted && code != ErrorCode::kUnavailable) return kWrongCode;
  return freed - noticed < 1s && std::chrono::steady_clock::now() - noticed < 2s ? kFreed : kTooLate;
}

/// The last rank takes part in a few collectives and then goes away by `signal`.
int go_away(KvStore& store, int64_t elements, const AllReduce& all_reduce, int signal) {
  auto world = make_world(kRanks - 1, store);
  if (!world) return kNoWorld;
  at::Tensor tensor = at::zeros({elements});
  for (int i = 0; i < 3; ++i) all_reduce(*world, tensor);
  ::kill(getpid(), signal);
  return kNotFailed;
}

}  // namespace

TEST_CASE("a killed or stopped rank leaves no survivor inside a collective for longer than a second after the notice") {
  const int signal = GENERATE(SIGKILL, SIGSTOP);
  const int64_t elements = GENERATE(1, 1000000);
  const AllReduce all_reduce = GENERATE(direct, posted);
  SharedKvStore store;
  std::vector<int> survivors;
  for (int rank = 0; rank + 1 < kRanks; ++rank)
    survivors.push_back(fork_child([&] { return survive(rank, store, elements, all_reduce); }));
  const int lost = fork_child([&] { return go_away(store, elements, all_reduce, signal); });
  if (signal == SIGKILL) {
    CHECK(wait_for_exit(lost) == -SIGKILL);
  } else {
    CHECK(wait_for_stop(lost));
  }
  REQUIRE(store.set("lost", std::to_string(lost)).ok());
  for (const int pid : survivors) CHECK(wait_for_exit(pid) == kFreed);
  if (signal == SIGSTOP) {
    ::kill(lost, SIGKILL);
    CHECK(wait_for_exit(lost) == -SIGKILL);
  }
}

TEST_CASE("a process with a Gloo world outlives a write to a broken connection") {
  SharedKvStore store;
  std::vector<int> ranks;
  for (int rank = 0; rank < kRanks; ++rank) {
    ranks.push_back(fork_child([&] {
      const auto world = make_world(rank, store);
      ::raise(SIGPIPE);
      return world ? kFreed : kNoWorld;
    }));
  }
  for (const int pid : ranks) CHECK(wait_for_exit(pid) == kFreed);
}
