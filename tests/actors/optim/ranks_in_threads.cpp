#include "tests/actors/optim/ranks_in_threads.h"

#include <exception>
#include <thread>

#include "base/rendezvous/memory_kv_store.h"

namespace troupe::testing {

void on_every_rank(const Mesh& mesh, const std::function<void(World&)>& body) {
  MemoryKvStore store;
  const auto ranks = static_cast<size_t>(mesh.ranks());
  std::vector<std::exception_ptr> failures(ranks);
  std::vector<std::thread> threads;
  for (size_t r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      try {
        WorldOptions options;
        options.name = "test";
        options.mesh = mesh;
        options.rank = static_cast<int>(r);
        options.posted_axes = {{Axis::kTp}, {Axis::kDp, Axis::kCp, Axis::kSp}};
        options.timeout = std::chrono::seconds(30);
        auto world = create_gloo_world(options, store);
        if (!world.ok()) throw ErrorException(world.error());
        body(**world);
      } catch (...) {
        failures[r] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

}  // namespace troupe::testing
