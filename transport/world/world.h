#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/mesh/mesh.h"
#include "base/rendezvous/kv_store.h"
#include "base/result.h"

/// The communicators of one group: one for each set of mesh axes in use, NCCL on GPUs and Gloo on CPUs.
namespace troupe {

/// One communicator: the ranks that share all mesh coordinates with this one except along the communicator's axes, in
/// mesh order. Calls block the calling thread on CPUs and are stream-ordered on the current stream on GPUs. Owner
/// thread only (the host's executor thread). Every rank of the communicator makes the same calls in the same order.
/// Tensors are contiguous, on the world's device, dtype fp32, bf16, fp64 or int64. A communicator of size 1 does
/// nothing (out is a copy of in). Failures throw ErrorException (they surface inside autograd): kAborted after
/// World::abort, kUnavailable when a peer is gone.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int size() const = 0;
  virtual int rank() const = 0;  // position in the communicator
  /// In-place sum. All ranks end with bitwise equal values.
  virtual void all_reduce_sum(at::Tensor& tensor) = 0;
  /// In-place maximum.
  virtual void all_reduce_max(at::Tensor& tensor) = 0;
  /// out [size * n, ...] = the in [n, ...] of rank 0, 1, ... `in` may be its own place in `out`.
  virtual void all_gather(at::Tensor& out, const at::Tensor& in) = 0;
  /// Ragged along dimension 0: rows[i] rows come from rank i (known to all); out [sum rows, ...], in [rows[rank], ...].
  /// Zero rows are legal.
  virtual void all_gather_rows(at::Tensor& out, const at::Tensor& in, const std::vector<int64_t>& rows) = 0;
  /// out [n, ...] = this rank's part of the sum of in [size * n, ...].
  virtual void reduce_scatter_sum(at::Tensor& out, const at::Tensor& in) = 0;
  /// Ragged along dimension 0: rank i gets rows[i] rows of the sum.
  virtual void reduce_scatter_rows_sum(at::Tensor& out, const at::Tensor& in, const std::vector<int64_t>& rows) = 0;
  /// Ragged along dimension 0: sends send_rows[i] rows of in to rank i, receives receive_rows[i] rows from rank i, both
  /// in rank order.
  virtual void all_to_all_rows(at::Tensor& out, const at::Tensor& in, const std::vector<int64_t>& receive_rows,
                               const std::vector<int64_t>& send_rows) = 0;
  virtual void broadcast(at::Tensor& tensor, int root) = 0;
};

class World {
 public:
  virtual ~World() = default;
  virtual const Mesh& mesh() const = 0;
  virtual int rank() const = 0;
  /// The communicator over `axes`; all that a group uses are made in create(). The reference lives as long as the
  /// world.
  virtual Communicator& over(AxisSet axes) = 0;
  /// The second line of the world, for collectives beside the caller's work. Its communicators are others than those of
  /// over(), so that neither waits for the other; only posted work uses them.
  virtual Communicator& posted_over(AxisSet axes) = 0;
  /// Carries out `work` behind all that was posted before it while the caller goes on: on a thread of the world on
  /// CPUs; on GPUs its calls go to a stream of their own, behind what the caller's current stream holds by now. Owner
  /// thread only; every rank posts the same work in the same order. What `work` refers to stays until it is waited for.
  /// Returns its number.
  virtual int64_t post(std::function<void()> work) = 0;
  /// Work up to `number` has been done before what the caller does next: blocks on CPUs, is stream-ordered on GPUs.
  /// Throws what any posted work threw.
  virtual void wait_posted(int64_t number) = 0;
  /// From any thread: every call under way or to come on this member ends within 1 s with kAborted, posted work
  /// included.
  virtual void abort() = 0;
};

struct WorldOptions {
  std::string name;  // key prefix in the store: job, generation and group
  Mesh mesh;
  int rank = 0;
  std::vector<AxisSet> axes;              // communicators to make, same list on all ranks
  std::vector<AxisSet> posted_axes = {};  // those of the second line
  std::string interface_address =
      "127.0.0.1";                           // the address that Gloo listens on: the manifest's, never all interfaces
  std::chrono::milliseconds timeout{60000};  // of rendezvous and of each collective
  int device_index = -1;                     // CUDA device; -1: CPU
};

/// Meets the other ranks through `store` and connects; returns when all of them have. `store` outlives the world. With
/// peers the process ignores SIGPIPE from here on: a write to a dead rank's socket fails instead of ending the writer.
Result<std::unique_ptr<World>> create_gloo_world(const WorldOptions& options, KvStore& store);
#ifdef TROUPE_WITH_CUDA
Result<std::unique_ptr<World>> create_nccl_world(const WorldOptions& options, KvStore& store);
#endif
/// A world of one rank, without any connection: all communicators have size 1.
std::unique_ptr<World> create_solo_world();

}  // namespace troupe
