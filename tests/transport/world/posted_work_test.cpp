#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <catch2/catch.hpp>
#include <future>

#include "tests/transport/world/ranks.h"
#include "transport/world/posted_line.h"

using namespace troupe;
using namespace std::chrono_literals;
using troupe::testing::expect;
using troupe::testing::run_ranks;

namespace {

const AxisSet kTp{Axis::kTp};

}  // namespace

TEST_CASE("posted work runs in its order, beside the caller, and its numbers can be waited for in any order") {
  PostedLine line;
  std::vector<int> ran;
  std::promise<void> go;
  const int64_t first = line.post([&, ready = go.get_future().share()] {
    if (ready.wait_for(30s) == std::future_status::ready) ran.push_back(1);
  });
  const int64_t second = line.post([&] { ran.push_back(2); });
  CHECK_FALSE(line.idle());
  go.set_value();  // were posted work not beside its caller, this line would never be reached
  line.wait(second);
  line.wait(first);
  CHECK(line.idle());
  CHECK(ran == std::vector<int>{1, 2});
}

TEST_CASE("work behind one that throws is not run, and every wait says why") {
  PostedLine line;
  bool ran = false;
  line.post([] { throw ErrorException(unavailable("a peer is gone")); });
  const int64_t last = line.post([&] { ran = true; });
  for (int i = 0; i < 2; ++i) {
    try {
      line.wait(last);
      FAIL("nothing was thrown");
    } catch (const ErrorException& e) {
      CHECK(e.error.code == ErrorCode::kUnavailable);
    }
  }
  CHECK_FALSE(ran);
}

TEST_CASE("posted collectives and the caller's go on at once without taking each other's data") {
  const auto errors = run_ranks(Mesh().set(Axis::kTp, 3), {kTp}, [](World& world) {
    constexpr int kRounds = 40;
    std::vector<at::Tensor> posted;
    for (int i = 0; i < kRounds; ++i)
      posted.push_back(at::full({20000}, (world.rank() + 1) * (i + 1), at::TensorOptions().dtype(at::kFloat)));
    int64_t number = 0;
    for (at::Tensor& tensor : posted)
      number = world.post([&world, &tensor] { world.posted_over(kTp).all_reduce_sum(tensor); });
    for (int i = 0; i < kRounds; ++i) {
      at::Tensor mine = at::full({5}, world.rank() + i, at::TensorOptions().dtype(at::kFloat));
      world.over(kTp).all_reduce_sum(mine);
      expect(mine[0].item<float>() == static_cast<float>(3 + 3 * i), "the caller's sum");
    }
    world.wait_posted(number);
    for (int i = 0; i < kRounds; ++i)
      expect(posted[static_cast<size_t>(i)][77].item<float>() == static_cast<float>(6 * (i + 1)), "the posted sum");
  });
  CHECK(errors == std::vector<std::string>());
}

TEST_CASE("a rank may post long before the others do") {
  std::promise<void> posted;
  const auto errors = run_ranks(Mesh().set(Axis::kTp, 2), {kTp}, [&](World& world) {
    at::Tensor tensor = at::full({3}, 1, at::TensorOptions().dtype(at::kFloat));
    const auto sum = [&] { world.posted_over(kTp).all_reduce_sum(tensor); };
    if (world.rank() == 1) expect(posted.get_future().wait_for(30s) == std::future_status::ready, "the other's post");
    const int64_t number = world.post(sum);
    if (world.rank() == 0) posted.set_value();
    world.wait_posted(number);
    expect(tensor[0].item<float>() == 2, "the sum");
  });
  CHECK(errors == std::vector<std::string>());
}

TEST_CASE("a gather may take its own place in the output as input") {
  const auto errors = run_ranks(Mesh().set(Axis::kTp, 3), {kTp}, [](World& world) {
    at::Tensor all = at::zeros({6});
    const at::Tensor own = all.narrow(0, 2 * world.rank(), 2).fill_(world.rank() + 1);
    world.over(kTp).all_gather(all, own);
    for (int r = 0; r < 3; ++r) expect(all[2 * r + 1].item<float>() == static_cast<float>(r + 1), "every rank's place");
  });
  CHECK(errors == std::vector<std::string>());
}

TEST_CASE("abort ends posted work under way, what is queued behind it and the wait for it within a second") {
  const auto errors = run_ranks(Mesh().set(Axis::kTp, 2), {kTp}, [](World& world) {
    if (world.rank() == 1) return;  // never posts
    at::Tensor first = at::zeros({100000}), second = at::zeros({100});
    world.post([&] { world.posted_over(kTp).all_reduce_sum(first); });
    const int64_t number = world.post([&] { world.posted_over(kTp).all_reduce_sum(second); });
    std::thread aborter([&] { world.abort(); });
    const auto begin = std::chrono::steady_clock::now();
    try {
      world.wait_posted(number);
      expect(false, "an exception");
    } catch (const ErrorException& e) {
      expect(e.error.code == ErrorCode::kAborted || e.error.code == ErrorCode::kUnavailable, e.error.to_string());
    }
    expect(std::chrono::steady_clock::now() - begin < 1s, "an end within a second");
    aborter.join();
  });
  CHECK(errors == std::vector<std::string>());
}

TEST_CASE("a world that is destroyed with posted work under way does not wait for its peers") {
  const auto errors = run_ranks(Mesh().set(Axis::kTp, 2), {kTp}, [&](World& world) {
    // The tensor belongs to the work: what is posted outlives whoever posted it.
    if (world.rank() == 0)
      world.post([&world, tensor = at::zeros({100000})]() mutable { world.posted_over(kTp).all_reduce_sum(tensor); });
  });
  CHECK(errors == std::vector<std::string>());
}
