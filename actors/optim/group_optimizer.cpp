#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <limits>

#include "actors/optim/adamw_device.h"
#include "actors/optim/adamw_kernel.h"
#include "actors/optim/flat_segments.h"
#include "actors/optim/gradient_norm.h"
#include "actors/optim/optimizer.h"
#include "actors/optim/tensor_parallel_gradients.h"
#include "base/program/gradient_buckets.h"

namespace troupe {
namespace {

using optim::AdamwScalars;
using optim::ElementRange;
using optim::ShardSegments;

constexpr AxisSet kReplicaAxes = {Axis::kDp, Axis::kCp, Axis::kSp};

/// What this rank keeps for one bucket: elements [bucket_begin, bucket_end) of a flat buffer, and of these its shard
/// [begin, end) (everything without ZeRO).
struct BucketState {
  GradientBucket parameters;
  int flat = 0;
  int64_t bucket_begin = 0, bucket_end = 0, begin = 0, end = 0;
  bool sharded = false;
  at::Tensor weights, gradients;  // views of the whole bucket
  at::Tensor own_weights;         // view of the shard
  ShardSegments segments;
  std::vector<optim::TensorParallelSum> tp_sums;
  at::Tensor reduced;  // summed gradients of the shard; with one replica or without ZeRO a view of the flat gradients
  at::Tensor exp_avg, exp_avg_sq;
  at::Tensor master;      // fp32, when the weights are bf16 and not bf16-pure; else undefined
  bool gathered = false;  // the whole bucket of the flat gradients holds the sums
  int64_t gather = 0;     // number of the posted gather
};

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

/// Posted work holds its bucket, so that an optimizer may end, on the way out of an error, while a collective is under
/// way.
using SharedBucket = std::shared_ptr<BucketState>;

/// On the world's second line.
void reduce(BucketState& bucket, World& world) {
  if (!bucket.tp_sums.empty()) optim::sum_over_tensor_parallel(bucket.tp_sums, world.posted_over({Axis::kTp}));
  Communicator& replicas = world.posted_over(kReplicaAxes);
  if (replicas.size() == 1) return;
  if (bucket.sharded)
    replicas.reduce_scatter_sum(bucket.reduced, bucket.gradients);
  else
    replicas.all_reduce_sum(bucket.reduced);
}

int64_t round_up(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

class FlatAdamw final : public GroupOptimizer {
 public:
  FlatAdamw(ParameterStore& store, World& world, const OptimizerSpec& spec, int zero, int64_t most_bucket_elements)
      : store_(store), world_(world), spec_(spec), replicas_(world.mesh().size(kReplicaAxes)) {
    sharded_ = zero > 0 && replicas_ > 1;
    position_ = world.mesh().index_among_peers(world.rank(), kReplicaAxes);
    counts_in_norm_ = sharded_ || position_ == 0;
    std::vector<ParameterDecl> parameters;
    for (const LocalParameter& p : store.parameters()) parameters.push_back(p.decl);
    for (const GradientBucket& bucket :
         gradient_buckets(parameters, store.options().frozen, store.options().tp, most_bucket_elements))
      add_bucket(bucket);
    store.listen({[this](int last) { wait_gathered_up_to(last); }, [this](int first) { post_final_from(first); }});
  }
  ~FlatAdamw() override { store_.listen({}); }

  int bucket_count() const override { return static_cast<int>(states_.size()); }

  void reduce_when_final(bool on) override { last_backward_ = on; }

  void post_reduce(int bucket) override {
    for (; posted_ <= bucket; ++posted_) {
      const SharedBucket& state = states_[static_cast<size_t>(posted_)];
      state->gathered = !sharded_;
      if (replicas_ == 1 && state->tp_sums.empty()) continue;
      reduce_ = post("reduce", posted_, [bucket = state, &world = world_] { reduce(*bucket, world); });
    }
  }

  void wait_reduced() override {
    wait(reduce_, "reduce", -1);
    posted_ = 0;
  }

  NormPart norm_part() override {
    NormPart sum;
    if (!counts_in_norm_) return sum;
    for (size_t f = 0; f < store_.buffers().size(); ++f) {
      optim::GradientNorm of_buffer;
      for (auto bucket = states_.rbegin(); bucket != states_.rend(); ++bucket)
        if ((*bucket)->flat == static_cast<int>(f)) of_buffer.add((*bucket)->reduced, (*bucket)->segments.owned);
      const NormPart part = of_buffer.total();
      sum.squared += part.squared;
      sum.non_finite += part.non_finite;
    }
    return sum;
  }

  void update_bucket(int bucket, const UpdateStep& step) override {
    BucketState& state = *states_[static_cast<size_t>(bucket)];
    make_moments(state);
    const auto rate = step.lr.find(flat(state).component);
    TROUPE_CHECK(rate != step.lr.end());
    if (flat(state).weights.is_cpu())
      update_on_cpu(state, step.number, rate->second, step.gradient_scale);
    else
      update_on_device(state, step.number, rate->second, step.gradient_scale);
  }

  void post_gather(int bucket) override {
    if (!sharded_) return;
    const SharedBucket& state = states_[static_cast<size_t>(bucket)];
    state->gather = post("gather", bucket, [state, &world = world_] {
      world.posted_over(kReplicaAxes).all_gather(state->weights, state->own_weights);
    });
    gathering_ = std::max(gathering_, bucket);
  }

  void wait_gathered() override { wait_gathered_up_to(std::numeric_limits<int>::max()); }

  void record(TraceLog* log, SpanOf span) override {
    log_ = log;
    describe_ = std::move(span);
  }

  std::vector<OptimizerPiece> pieces() override {
    std::vector<OptimizerPiece> out;
    for (const SharedBucket& bucket : states_) {
      BucketState& state = *bucket;
      make_moments(state);
      for (const optim::ParameterRange& range : state.segments.parameters) {
        const auto part = [&](const at::Tensor& t) {
          return t.defined() ? t.narrow(0, range.shard_begin, range.end - range.begin) : t;
        };
        const std::string& name = store_.parameters()[static_cast<size_t>(range.parameter)].decl.name;
        out.push_back({name, range.begin, range.end, part(state.exp_avg), part(state.exp_avg_sq), part(state.master)});
      }
    }
    return out;
  }

  at::Tensor full_local_gradient(const std::string& name) override {
    const LocalParameter& parameter = store_.at(name);
    if (!parameter.trained) return {};
    for (const SharedBucket& bucket : states_) {
      BucketState& state = *bucket;
      const bool overlaps =
          state.bucket_begin < parameter.offset + parameter.elements && parameter.offset < state.bucket_end;
      if (state.flat != parameter.buffer || !overlaps || state.gathered) continue;
      world_.wait_posted(world_.post([bucket, &world = world_] {
        world.posted_over(kReplicaAxes).all_gather(bucket->gradients, bucket->reduced);
      }));
      state.gathered = true;
    }
    return parameter.gradient.to(at::kFloat);
  }

 private:
  FlatBuffer& flat(const BucketState& state) { return store_.buffers()[static_cast<size_t>(state.flat)]; }

  /// Buckets of a flat buffer come from its end to its begin. Where one begins is rounded up to a multiple of the
  /// replicas, as neither parameters nor shards may have gaps: the few elements before that are reduced with the next
  /// bucket, later than they could.
  void add_bucket(const GradientBucket& parameters) {
    const LocalParameter& first = store_.parameters()[static_cast<size_t>(parameters.first)];
    const auto made = std::make_shared<BucketState>();
    BucketState& state = *made;
    state.parameters = parameters;
    state.flat = first.buffer;
    state.sharded = sharded_;
    const bool behind_another = !states_.empty() && states_.back()->flat == state.flat;
    const int64_t shards = sharded_ ? replicas_ : 1;
    state.bucket_end = behind_another ? states_.back()->bucket_begin : flat(state).weights.numel();
    state.bucket_begin = std::min(round_up(first.offset, shards), state.bucket_end);
    const int64_t elements = state.bucket_end - state.bucket_begin, shard = elements / shards;
    TROUPE_CHECK(shard * shards == elements);
    state.begin = state.bucket_begin + (sharded_ ? shard * position_ : 0);
    state.end = state.begin + shard;
    state.segments = optim::shard_segments(store_, state.flat, state.begin, state.end);
    if (!first.weight.is_cpu()) {
      state.segments.update = joined(state.segments.update);
      state.segments.owned = joined(state.segments.owned);
    }
    state.tp_sums = optim::tensor_parallel_sums(store_, parameters.first, parameters.last);
    state.weights = flat(state).weights.narrow(0, state.bucket_begin, elements);
    state.own_weights = flat(state).weights.narrow(0, state.begin, shard);
    state.gradients = flat(state).gradients.narrow(0, state.bucket_begin, elements);
    state.reduced = sharded_ ? at::empty({shard}, state.gradients.options()) : state.gradients;
    states_.push_back(made);
  }

  int64_t post(const char* what, int bucket, std::function<void()> work) {
    Span span = span_of(what, bucket, false);
    if (span.name.empty()) return world_.post(std::move(work));
    return world_.post([log = log_, span = std::move(span), work = std::move(work)] {
      const SpanScope scope(log, span);
      work();
    });
  }

  void post_final_from(int first) {
    if (!last_backward_) return;
    while (posted_ < bucket_count() && states_[static_cast<size_t>(posted_)]->parameters.first >= first)
      post_reduce(posted_);
  }

  /// Buckets are gathered from the last one, which holds the first parameters; one wait serves all that came before it.
  void wait_gathered_up_to(int last) {
    int needed = -1;
    for (; gathering_ >= 0 && states_[static_cast<size_t>(gathering_)]->parameters.first <= last; --gathering_)
      needed = gathering_;
    if (needed >= 0) wait(states_[static_cast<size_t>(needed)]->gather, "gather", needed);
  }

  void wait(int64_t number, const char* what, int bucket) {
    const Span span = span_of(what, bucket, true);
    const SpanScope scope(span.name.empty() ? nullptr : log_, span);
    world_.wait_posted(number);
  }

  /// Without a name when nobody records.
  Span span_of(const char* name, int bucket, bool waits) const {
    return log_ != nullptr && log_->on() ? describe_(name, bucket, waits) : Span();
  }

  /// Moments and masters exist from the first use on: masters start as the weights that were loaded until then.
  static void make_moments(BucketState& state) {
    if (state.exp_avg.defined()) return;
    const at::Tensor& weights = state.own_weights;
    state.exp_avg = at::zeros_like(state.reduced);
    state.exp_avg_sq = at::zeros_like(state.reduced);
    if (weights.scalar_type() != state.reduced.scalar_type()) state.master = weights.to(state.reduced.scalar_type());
  }

  AdamwScalars scalars(double decay, int64_t step, double lr, double gradient_scale) const {
    return optim::adamw_scalars(lr, decay, spec_.betas[0], spec_.betas[1], spec_.eps, gradient_scale, step);
  }

  void update_on_cpu(BucketState& state, int64_t step, double lr, double gradient_scale) {
    const AdamwScalars with_decay = scalars(spec_.weight_decay, step, lr, gradient_scale),
                       without_decay = scalars(0, step, lr, gradient_scale);
    const at::Tensor& weights = state.own_weights;
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
    const at::Tensor& weights = state.own_weights;
    optim::adamw_on_device({weights, state.master, state.reduced, state.exp_avg, state.exp_avg_sq},
                           state.segments.update, scalars(spec_.weight_decay, step, lr, gradient_scale),
                           scalars(0, step, lr, gradient_scale));
  }

  ParameterStore& store_;
  World& world_;
  OptimizerSpec spec_;
  int replicas_ = 1, position_ = 0;
  bool sharded_ = false, counts_in_norm_ = true;
  std::vector<SharedBucket> states_;  // in the order in which they are reduced
  bool last_backward_ = false;
  int posted_ = 0;           // buckets whose reduction is posted in this step
  int64_t reduce_ = 0;       // number of the last one
  int gathering_ = -1;       // buckets 0 to this one may be gathering still
  TraceLog* log_ = nullptr;  // may be null
  SpanOf describe_;
};

}  // namespace

void GroupOptimizer::reduce_gradients() {
  post_reduce(bucket_count() - 1);
  wait_reduced();
}

void GroupOptimizer::update(int64_t number, const std::map<std::string, double>& lr, double gradient_scale) {
  wait_gathered();
  for (int bucket = bucket_count() - 1; bucket >= 0; --bucket) update_bucket(bucket, {number, lr, gradient_scale});
}

void GroupOptimizer::gather_weights() {
  for (int bucket = bucket_count() - 1; bucket >= 0; --bucket) post_gather(bucket);
  wait_gathered();
}

std::unique_ptr<GroupOptimizer> create_group_optimizer(ParameterStore& store, World& world, const OptimizerSpec& spec,
                                                       int zero, int64_t most_bucket_elements) {
  return std::make_unique<FlatAdamw>(store, world, spec, zero, most_bucket_elements);
}

}  // namespace troupe
