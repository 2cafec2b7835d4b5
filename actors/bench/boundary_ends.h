#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/rendezvous/kv_store.h"
#include "base/result.h"

/// One end of what the boundary bench compares: a channel or raw tag sends, used alike. One thread.
namespace troupe {

class BenchEnd {
 public:
  virtual ~BenchEnd() = default;
  /// Starts sending `bytes` of this end's memory; at most `window` are under way.
  virtual Status send(size_t bytes) = 0;
  /// Announces the next receive of `bytes`, so that the transport may place it.
  virtual Status expect(size_t bytes) = 0;
  /// Takes the oldest message announced.
  virtual Status take(size_t bytes) = 0;
  /// Waits until everything sent has left.
  virtual Status flush() = 0;
};

struct BenchEndOptions {
  std::string label;       // names it at the rendezvous
  int self = 0;            // 0 or 1
  std::string transports;  // UCX's list
  bool shared_segment = false, raw = false, eager = false;
  size_t most_bytes = 0;
};
inline constexpr int kBenchWindow = 8;

/// Meets the other end through `store`.
Result<std::unique_ptr<BenchEnd>> create_bench_end(const BenchEndOptions& options, KvStore& store);

/// Rows moved from `producers` to `consumers` ranks, each with a UCX channel of its own, by the reshard plan.
struct LayoutPairBytes {
  int producers = 0, consumers = 0;
  size_t tensor_bytes = 0, wire_bytes = 0;
  double largest_rank_ratio = 0;  // bytes that a rank sent or received over those of its rows, the largest of all ranks
};
Result<LayoutPairBytes> measure_layout_pair(int producers, int consumers);

}  // namespace troupe
