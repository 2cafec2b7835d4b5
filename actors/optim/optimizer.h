#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "actors/nn/parameter_store.h"
#include "base/config/job_spec.h"
#include "transport/world/world.h"

/// Gradient reduction, the global norm and AdamW for one group; ZeRO-1 over dp x cp x sp when asked for.
/// Source: AdamW arXiv:1711.05101; ZeRO arXiv:1910.02054, stage 1.
namespace troupe {

/// What one rank adds to the global norm: owned elements only, padding excluded. Summed in fixed order over ranks and groups.
struct NormPart {
  double squared = 0;
  double non_finite = 0;  // count of non-finite gradient elements
};

/// Sharded optimizer state in a layout-free form, for saving: one entry a parameter piece.
struct OptimizerPiece {
  std::string name;              // parameter
  int64_t begin = 0, end = 0;    // element range of the local (tp-sliced) parameter, row-major
  at::Tensor exp_avg, exp_avg_sq, master;  // fp32 [end - begin], views; `master` is undefined when weights are fp32
};

/// Owner thread only. The same calls on every rank of the group.
class GroupOptimizer {
 public:
  virtual ~GroupOptimizer() = default;
  /// Sums gradients: over dp x cp x sp (one reduce-scatter with ZeRO-1, one all-reduce without), and over tp where a declaration says kSum or
  /// a KV head is shared.
  virtual void reduce_gradients() = 0;
  virtual NormPart norm_part() = 0;
  /// AdamW with bias correction of update number `step` (from 1). `lr` by component; `gradient_scale` is the clip factor.
  virtual void update(int64_t step, const std::map<std::string, double>& lr, double gradient_scale) = 0;
  /// ZeRO-1: all-gathers the updated weights. Else nothing.
  virtual void gather_weights() = 0;
  virtual std::vector<OptimizerPiece> pieces() = 0;
  /// Reduced fp32 gradient of a parameter on this rank, for debug dumps: all-gathered over the ZeRO shards. Collective.
  virtual at::Tensor full_local_gradient(const std::string& name) = 0;
};

std::unique_ptr<GroupOptimizer> create_group_optimizer(ParameterStore& store, World& world, const OptimizerSpec& spec, int zero);

/// Learning rate of update `step` (from 1) of `steps`: warmup lr*k/w, then the schedule.
double learning_rate(const ScheduleSpec& schedule, double peak, int64_t step, int64_t steps);

}  // namespace troupe
