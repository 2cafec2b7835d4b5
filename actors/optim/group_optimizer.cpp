#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>

#include "actors/kernels/row_functions.h"
#include "actors/optim/adamw_device.h"
#include "actors/optim/adamw_kernel.h"
#include "actors/optim/flat_segments.h"
#include "actors/optim/optimizer.h"
#include "actors/optim/tensor_parallel_gradients.h"

namespace troupe {
namespace {

using optim::AdamwScalars;
using optim::ElementRange;
using optim::ShardSegments;

constexpr AxisSet kReplicaAxes = {Axis::kDp, Axis::kCp, Axis::kSp};

/// What this rank keeps for one trained bucket: its shard [begin, end) of the flat buffers (everything without ZeRO).
struct BucketState {
  int bucket = 0;
  int64_t begin = 0, end = 0;
  ShardSegments segments;
  at::Tensor reduced;            // summed gradients of the shard; with one replica or without ZeRO a view of the bucket's gradients
  at::Tensor exp_avg, exp_avg_sq;
  at::Tensor master;             // fp32, when the weights are bf16 and not bf16-pure; else undefined
  bool gathered = false;         // the bucket's whole gradient buffer holds the sums
};

/// Squared sum and count of non-finite values over `ranges`; `partial` results are added in the order of the ranges, whatever the threads.
template <typename Load>
NormPart norm_on_cpu(const std::vector<ElementRange>& ranges, const Load& load) {
  std::vector<NormPart> partial(ranges.size());
  at::parallel_for(0, static_cast<int64_t>(ranges.size()), 1, [&](int64_t first, int64_t last) {
    for (int64_t t = first; t < last; ++t) {
      const ElementRange range = ranges[static_cast<size_t>(t)];
      double a = 0, b = 0, c = 0, d = 0;  // four chains: the additions do not wait for each other
      const auto square = [&load](int64_t i) {
        const auto x = static_cast<double>(load(i));
        return x * x;
      };
      int64_t at = range.begin;
      for (; at + 4 <= range.end; at += 4) {
        a += square(at);
        b += square(at + 1);
        c += square(at + 2);
        d += square(at + 3);
      }
      for (; at < range.end; ++at) a += square(at);
      NormPart& part = partial[static_cast<size_t>(t)];
      part.squared = (a + b) + (c + d);
      if (std::isfinite(part.squared)) continue;
      for (int64_t i = range.begin; i < range.end; ++i) part.non_finite += std::isfinite(static_cast<double>(load(i))) ? 0 : 1;
    }
  });
  NormPart sum;
  for (const NormPart& part : partial) {
    sum.squared += part.squared;
    sum.non_finite += part.non_finite;
  }
  return sum;
}

/// Neighbouring ranges of the same kind joined: few, long tensors for devices that launch a kernel for each.
std::vector<ElementRange> joined(const std::vector<ElementRange>& ranges) {
  std::vector<ElementRange> out;
  for (const ElementRange& r : ranges) {
    if (!out.empty() && out.back().end == r.begin && out.back().decay == r.decay)
      out.back().end = r.end;
    else
      out.push_back(r);
  }
  return out;
}

class FlatAdamw final : public GroupOptimizer {
 public:
  FlatAdamw(ParameterStore& store, World& world, const OptimizerSpec& spec, int zero)
      : store_(store), world_(world), spec_(spec), replicas_(world.mesh().size(kReplicaAxes)) {
    sharded_ = zero > 0 && replicas_ > 1;
    const int position = world.mesh().index_among_peers(world.rank(), kReplicaAxes);
    counts_in_norm_ = sharded_ || position == 0;
    for (size_t b = 0; b < store.buckets().size(); ++b) {
      const FlatBucket& bucket = store.buckets()[b];
      if (!bucket.trained) continue;
      const int64_t n = bucket.weights.numel();
      TROUPE_CHECK(!sharded_ || n % replicas_ == 0);
      BucketState state;
      state.bucket = static_cast<int>(b);
      state.begin = sharded_ ? n / replicas_ * position : 0;
      state.end = sharded_ ? state.begin + n / replicas_ : n;
      state.segments = optim::shard_segments(store, state.bucket, state.begin, state.end);
      if (!bucket.weights.is_cpu()) {
        state.segments.update = joined(state.segments.update);
        state.segments.owned = joined(state.segments.owned);
      }
      state.reduced = sharded_ ? at::empty({state.end - state.begin}, bucket.gradients.options()) : bucket.gradients;
      states_.push_back(std::move(state));
    }
  }

  void reduce_gradients() override {
    if (world_.mesh().size(Axis::kTp) > 1) optim::sum_over_tensor_parallel(store_, world_.over({Axis::kTp}));
    for (BucketState& state : states_) {
      FlatBucket& bucket = flat(state);
      if (sharded_)
        world_.over(kReplicaAxes).reduce_scatter_sum(state.reduced, bucket.gradients);
      else if (replicas_ > 1)
        world_.over(kReplicaAxes).all_reduce_sum(bucket.gradients);
      state.gathered = !sharded_;
    }
  }

  NormPart norm_part() override {
    NormPart sum;
    if (!counts_in_norm_) return sum;
    for (const BucketState& state : states_) {
      const NormPart part = norm_of(state);
      sum.squared += part.squared;
      sum.non_finite += part.non_finite;
    }
    return sum;
  }

  void update(int64_t step, const std::map<std::string, double>& lr, double gradient_scale) override {
    make_states();
    for (BucketState& state : states_) {
      const auto rate = lr.find(flat(state).component);
      TROUPE_CHECK(rate != lr.end());
      if (flat(state).weights.is_cpu())
        update_on_cpu(state, step, rate->second, gradient_scale);
      else
        update_on_device(state, step, rate->second, gradient_scale);
    }
  }

  void gather_weights() override {
    if (!sharded_) return;
    for (BucketState& state : states_) {
      FlatBucket& bucket = flat(state);
      // A copy: the communicator does not promise that input and output may overlap.
      const at::Tensor own = bucket.weights.narrow(0, state.begin, state.end - state.begin).clone();
      world_.over(kReplicaAxes).all_gather(bucket.weights, own);
    }
  }

  std::vector<OptimizerPiece> pieces() override {
    make_states();
    std::vector<OptimizerPiece> out;
    for (const BucketState& state : states_) {
      for (const optim::ParameterRange& range : state.segments.parameters) {
        const auto part = [&](const at::Tensor& t) { return t.defined() ? t.narrow(0, range.shard_begin, range.end - range.begin) : t; };
        const std::string& name = store_.parameters()[static_cast<size_t>(range.parameter)].decl.name;
        out.push_back({name, range.begin, range.end, part(state.exp_avg), part(state.exp_avg_sq), part(state.master)});
      }
    }
    return out;
  }

  at::Tensor full_local_gradient(const std::string& name) override {
    const LocalParameter& parameter = store_.at(name);
    if (!parameter.trained) return {};
    for (BucketState& state : states_) {
      if (state.bucket != parameter.bucket || state.gathered) continue;
      world_.over(kReplicaAxes).all_gather(flat(state).gradients, state.reduced);
      state.gathered = true;
    }
    return parameter.gradient.to(at::kFloat);
  }

 private:
  FlatBucket& flat(const BucketState& state) { return store_.buckets()[static_cast<size_t>(state.bucket)]; }

  /// Moments and masters exist from the first use on: masters start as the weights that were loaded until then.
  void make_states() {
    for (BucketState& state : states_) {
      if (state.exp_avg.defined()) continue;
      const at::Tensor weights = flat(state).weights.narrow(0, state.begin, state.end - state.begin);
      state.exp_avg = at::zeros_like(state.reduced);
      state.exp_avg_sq = at::zeros_like(state.reduced);
      if (weights.scalar_type() != state.reduced.scalar_type()) state.master = weights.to(state.reduced.scalar_type());
    }
  }

  NormPart norm_of(const BucketState& state) const {
    const at::Tensor& g = state.reduced;
    const auto& ranges = state.segments.owned;
    if (g.is_cpu() && g.scalar_type() == at::kFloat) {
      const float* data = g.const_data_ptr<float>();
      return norm_on_cpu(ranges, [data](int64_t i) { return data[i]; });
    }
    if (g.is_cpu()) {
      const at::BFloat16* data = g.const_data_ptr<at::BFloat16>();
      return norm_on_cpu(ranges, [data](int64_t i) { return static_cast<float>(data[i]); });
    }
    at::Tensor sum = at::zeros({2}, g.options().dtype(at::kDouble));
    for (const ElementRange& range : ranges) sum.add_(squares_and_non_finite(g.narrow(0, range.begin, range.end - range.begin)));
    const at::Tensor host = sum.cpu();
    return {host.data_ptr<double>()[0], host.data_ptr<double>()[1]};
  }

  AdamwScalars scalars(double decay, int64_t step, double lr, double gradient_scale) const {
    return optim::adamw_scalars(lr, decay, spec_.betas[0], spec_.betas[1], spec_.eps, gradient_scale, step);
  }

  void update_on_cpu(BucketState& state, int64_t step, double lr, double gradient_scale) {
    const AdamwScalars with_decay = scalars(spec_.weight_decay, step, lr, gradient_scale), without_decay = scalars(0, step, lr, gradient_scale);
    const at::Tensor weights = flat(state).weights.narrow(0, state.begin, state.end - state.begin);
    void* w = weights.data_ptr();
    void* master = state.master.defined() ? state.master.data_ptr() : nullptr;
    void *m = state.exp_avg.data_ptr(), *v = state.exp_avg_sq.data_ptr();
    const void* g = state.reduced.const_data_ptr();
    const bool pure = weights.scalar_type() == at::kBFloat16 && master == nullptr;
    const auto run = [&](const ElementRange& range) {
      const AdamwScalars& s = range.decay ? with_decay : without_decay;
      const int64_t i = range.begin, n = range.end - range.begin;
      const auto f = [i](void* p) { return static_cast<float*>(p) + i; };
      const auto h = [i](void* p) { return static_cast<uint16_t*>(p) + i; };
      if (pure)
        optim::adamw_bf16(h(w), static_cast<const uint16_t*>(g) + i, h(m), h(v), n, s);
      else if (master != nullptr)
        optim::adamw_master_bf16(h(w), f(master), static_cast<const float*>(g) + i, f(m), f(v), n, s);
      else
        optim::adamw_fp32(f(w), static_cast<const float*>(g) + i, f(m), f(v), n, s);
    };
    const auto& tasks = state.segments.update;
    at::parallel_for(0, static_cast<int64_t>(tasks.size()), 1, [&](int64_t first, int64_t last) {
      for (int64_t t = first; t < last; ++t) run(tasks[static_cast<size_t>(t)]);
    });
  }

  void update_on_device(BucketState& state, int64_t step, double lr, double gradient_scale) {
    const at::Tensor weights = flat(state).weights.narrow(0, state.begin, state.end - state.begin);
    optim::adamw_on_device({weights, state.master, state.reduced, state.exp_avg, state.exp_avg_sq}, state.segments.update,
                           scalars(spec_.weight_decay, step, lr, gradient_scale), scalars(0, step, lr, gradient_scale));
  }

  ParameterStore& store_;
  World& world_;
  OptimizerSpec spec_;
  int replicas_ = 1;
  bool sharded_ = false, counts_in_norm_ = true;
  std::vector<BucketState> states_;
};

}  // namespace

std::unique_ptr<GroupOptimizer> create_group_optimizer(ParameterStore& store, World& world, const OptimizerSpec& spec, int zero) {
  return std::make_unique<FlatAdamw>(store, world, spec, zero);
}

}  // namespace troupe
