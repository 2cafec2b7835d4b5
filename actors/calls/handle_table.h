#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "proto/rpc/calls.pb.h"

/// The tensors that a host keeps for a custom loop, each under a handle with a lease.
namespace troupe {

/// Thread-safe. An object lives until it is released or its lease runs out; leases begin anew when they are renewed.
/// The table is the generation's own: a rebuilt job begins with an empty one.
class HandleTable {
 public:
  using Clock = std::chrono::steady_clock;
  explicit HandleTable(Generation generation) : generation_(generation) {}

  /// How long a lease lasts from now on.
  void set_lease(std::chrono::milliseconds lease);
  /// Keeps `tensor`; fills in the handle's generation, dtype and shape. The rest of `handle` is the caller's.
  /// InvalidArgument: its group and rank hold an object of that number, or it is 0.
  Status add(wire::TensorHandle& handle, at::Tensor tensor, Clock::time_point now);
  /// The tensor of a handle of this host. Aborted: of another generation; NotFound: released, never made here, or
  /// expired (it says which); InvalidArgument: the handle's batch, unit or layout is not that of the object.
  Result<at::Tensor> find(const wire::TensorHandle& handle) const;
  /// All of them.
  void renew_all(Clock::time_point now);
  void renew(const google::protobuf::RepeatedField<uint64_t>& objects, Clock::time_point now);
  void release(const google::protobuf::RepeatedField<uint64_t>& objects);
  /// Lets go of what was not renewed in time.
  void expire(Clock::time_point now);
  /// "vision/0 #3 (batch 2, unit 0, rows [64, 24])" of everything that is still held, oldest first.
  std::vector<std::string> held() const;
  int64_t expired_count() const;

 private:
  struct Object {
    wire::TensorHandle handle;
    at::Tensor tensor;
    Clock::time_point ends;
  };
  const Generation generation_;
  mutable std::mutex mutex_;
  std::chrono::milliseconds lease_{30000};
  std::map<std::tuple<uint64_t, int, int>, Object> objects_;  // [object, group, rank]
  std::deque<uint64_t> expired_;                              // the latest of them
  int64_t expired_count_ = 0;
};

/// "fp32" or "bf16"; what c10 calls it for others.
const char* handle_dtype(const at::Tensor& tensor);
/// Aborted when the handle is of another generation.
Status check_generation(const wire::TensorHandle& handle, Generation running);
/// How messages name a handle: "group 0 rank 1 #3 (batch 2, unit 0)".
std::string describe(const wire::TensorHandle& handle);

}  // namespace troupe
