#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "actors/nn/parameter_store.h"
#include "base/config/job_spec.h"
#include "base/trace/trace_log.h"
#include "transport/world/world.h"

/// Gradient reduction, the global norm and AdamW for one group; ZeRO-1 over dp x cp x sp when asked for.
/// Source: AdamW arXiv:1711.05101; ZeRO arXiv:1910.02054, stage 1.
namespace troupe {

/// What one rank adds to the global norm: owned elements only, padding excluded. Summed in fixed order over ranks and
/// groups.
struct NormPart {
  double squared = 0;
  double non_finite = 0;  // count of non-finite gradient elements
};

/// Sharded optimizer state in a layout-free form, for saving: one entry a parameter piece.
struct OptimizerPiece {
  std::string name;                        // parameter
  int64_t begin = 0, end = 0;              // element range of the local (tp-sliced) parameter, row-major
  at::Tensor exp_avg, exp_avg_sq, master;  // fp32 [end - begin], views; `master` is undefined when weights are fp32
};

/// One update of the weights.
struct UpdateStep {
  int64_t number = 1;                // from 1, for the bias correction
  std::map<std::string, double> lr;  // by component
  double gradient_scale = 1;         // the clip factor
};

/// Owner thread only. The same calls on every rank of the group. Gradients and weights move by buckets
/// (base/program/gradient_buckets.h), whose collectives are posted to the world's second line and go on while the owner
/// works. A bucket's gradients may be added to until its reduction is posted, and be read from wait_reduced() on; its
/// weights may be read behind wait_gathered(), which a model's forward pass calls for what it is about to use
/// (PassHooks).
class GroupOptimizer {
 public:
  virtual ~GroupOptimizer() = default;
  virtual int bucket_count() const = 0;
  /// The backward pass that runs while this is on is the last: buckets are reduced as soon as the model says that their
  /// gradients are final.
  virtual void reduce_when_final(bool on) = 0;
  /// Posts what is still to be posted of buckets 0 to `bucket`. Sums gradients: over tp where a declaration says kSum
  /// or a KV head is shared, then over dp x cp x sp (a reduce-scatter with ZeRO-1, an all-reduce without).
  virtual void post_reduce(int bucket) = 0;
  virtual void wait_reduced() = 0;
  virtual NormPart norm_part() = 0;
  /// AdamW.
  virtual void update_bucket(int bucket, const UpdateStep& step) = 0;
  /// ZeRO-1: all-gathers the bucket's updated weights. Else nothing. The last bucket is posted first.
  virtual void post_gather(int bucket) = 0;
  virtual void wait_gathered() = 0;
  /// Each in one go.
  void reduce_gradients();
  void update(int64_t number, const std::map<std::string, double>& lr, double gradient_scale);
  void gather_weights();
  /// Posted collectives and waits for them are recorded in `log` as `span` describes them: of one bucket, in a lane of
  /// their own or (`waits`) of the owner.
  using SpanOf = std::function<Span(const char* name, int bucket, bool waits)>;
  virtual void record(TraceLog* log, SpanOf span) = 0;
  virtual std::vector<OptimizerPiece> pieces() = 0;
  /// Reduced fp32 gradient of a parameter on this rank, for debug dumps: all-gathered over the ZeRO shards. Collective.
  virtual at::Tensor full_local_gradient(const std::string& name) = 0;
};

/// `world` has second-line communicators over {dp, cp, sp} and {tp}. Listens to the store's passes.
/// `most_bucket_elements`: 0 for one bucket a component.
std::unique_ptr<GroupOptimizer> create_group_optimizer(ParameterStore& store, World& world, const OptimizerSpec& spec,
                                                       int zero, int64_t most_bucket_elements = 0);

/// Learning rate of update `step` (from 1) of `steps`: warmup lr*k/w, then the schedule.
double learning_rate(const ScheduleSpec& schedule, double peak, int64_t step, int64_t steps);

}  // namespace troupe
