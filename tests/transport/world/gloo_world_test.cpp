#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <catch2/catch.hpp>
#include <future>

#include "tests/transport/world/ranks.h"

using namespace troupe;
using namespace std::chrono_literals;
using troupe::testing::expect;
using troupe::testing::run_ranks;

TEST_CASE("communicators over several axes of one mesh join the right ranks") {
  const Mesh mesh = Mesh().set(Axis::kDp, 2).set(Axis::kTp, 3);
  const AxisSet dp{Axis::kDp}, tp{Axis::kTp}, both{Axis::kDp, Axis::kTp};
  const auto errors = run_ranks(mesh, {dp, tp, both}, [&](World& world) {
    for (const AxisSet axes : {dp, tp, both, tp, dp}) {
      Communicator& over = world.over(axes);
      at::Tensor tensor = at::full({2}, world.rank() + 1, at::TensorOptions().dtype(at::kLong));
      over.all_reduce_sum(tensor);
      int64_t sum = 0;
      for (const int peer : mesh.peers(world.rank(), axes)) sum += peer + 1;
      expect(tensor[0].item<int64_t>() == sum, "the sum over " + axes.to_string());
      expect(over.rank() == mesh.index_among_peers(world.rank(), axes), "the position in the communicator");
    }
    expect(world.over({Axis::kSp}).size() == 1, "an axis of size 1 to be a communicator of one");
  });
  CHECK(errors == std::vector<std::string>());
}

TEST_CASE("a communicator that was not asked for is refused by name") {
  const auto errors = run_ranks(Mesh().set(Axis::kDp, 2), {}, [](World& world) {
    try {
      world.over({Axis::kDp});
    } catch (const ErrorException& e) {
      expect(e.error.message.find("over dp") != std::string::npos, "the axes' names");
      return;
    }
    expect(false, "a refusal");
  });
  CHECK(errors == std::vector<std::string>());
}

TEST_CASE("a rank outside of the mesh is refused") {
  MemoryKvStore store;
  WorldOptions options;
  options.rank = 1;
  CHECK(create_gloo_world(options, store).error().code == ErrorCode::kInvalidArgument);
}

TEST_CASE("a peer that never comes to the rendezvous is a deadline, not a hang") {
  MemoryKvStore store;
  WorldOptions options;
  options.name = "g1/lonely";
  options.mesh.set(Axis::kTp, 2);
  options.axes = {AxisSet{Axis::kTp}};
  options.timeout = 200ms;
  const auto world = create_gloo_world(options, store);
  REQUIRE_FALSE(world.ok());
  CHECK(world.error().code == ErrorCode::kDeadlineExceeded);
  CHECK(world.error().to_string().find("g1/lonely") != std::string::npos);
}

TEST_CASE("a rank that leaves as soon as it is connected fails nobody who is still connecting") {
  for (int round = 0; round < 20; ++round) {
    const auto errors = run_ranks(Mesh().set(Axis::kTp, 4), {AxisSet{Axis::kTp}}, [](World&) {});
    REQUIRE(errors == std::vector<std::string>());
  }
}

TEST_CASE("abort from another thread frees a rank inside a collective, and every later call") {
  const auto errors = run_ranks(Mesh().set(Axis::kTp, 2), {AxisSet{Axis::kTp}}, [](World& world) {
    if (world.rank() == 1) return;  // never takes part; its world ends, but the other's end must not depend on that
    std::thread aborter([&] { world.abort(); });
    for (int call = 0; call < 2; ++call) {
      const auto begin = std::chrono::steady_clock::now();
      try {
        at::Tensor tensor = at::zeros({100});
        world.over({Axis::kTp}).all_reduce_sum(tensor);
        expect(false, "an exception");
      } catch (const ErrorException& e) {
        // The end of the peer's world may be seen before the abort is.
        expect(e.error.code == ErrorCode::kAborted || (call == 0 && e.error.code == ErrorCode::kUnavailable),
               e.error.to_string());
      }
      expect(std::chrono::steady_clock::now() - begin < 1s, "an end within a second");
      if (call == 0) aborter.join();
    }
  });
  CHECK(errors == std::vector<std::string>());
}
