#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/rendezvous/memory_kv_store.h"
#include "transport/world/world.h"

namespace troupe::testing {

/// Runs `body` as every rank of a Gloo world, each in its own thread of this process. Returns what the ranks threw,
/// empty if nothing.
inline std::vector<std::string> run_ranks(const Mesh& mesh, const std::vector<AxisSet>& axes,
                                          const std::function<void(World&)>& body) {
  MemoryKvStore store;
  std::mutex mutex;
  std::vector<std::string> errors;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < mesh.ranks(); ++rank) {
    threads.emplace_back([&, rank] {
      std::string error;
      try {
        WorldOptions options;
        options.name = "g1/test";
        options.mesh = mesh;
        options.rank = rank;
        options.axes = options.posted_axes = axes;
        options.timeout = std::chrono::seconds(30);
        auto world = create_gloo_world(options, store);
        if (!world.ok()) throw ErrorException(world.error());
        body(**world);
      } catch (const std::exception& e) {
        error = e.what();
      }
      std::lock_guard lock(mutex);
      if (!error.empty()) errors.push_back("rank " + std::to_string(rank) + ": " + error);
    });
  }
  for (auto& thread : threads) thread.join();
  return errors;
}

/// Thrown out of a rank's body, where Catch's own assertions are not thread-safe.
inline void expect(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error("expected: " + what);
}

}  // namespace troupe::testing
