#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <mutex>

#include "actors/optim/optimizer.h"
#include "tests/actors/nn/tiny_model.h"
#include "tests/actors/optim/ranks_in_threads.h"

using namespace troupe;

namespace {

const std::map<std::string, double> kRates = {{"text", 1e-2}, {"vision", 2e-3}, {"merger", 5e-3}};

OptimizerSpec spec_with_decay() {
  OptimizerSpec spec;
  spec.weight_decay = 0.3;
  return spec;
}

/// A small whole number that depends on the parameter and the element of the global tensor only: sums of such are exact
/// in fp32.
float value_at(const std::string& name, int64_t element, int64_t salt) {
  uint64_t h = std::hash<std::string>()(name) ^ (static_cast<uint64_t>(element + 1) * 0x9E3779B97F4A7C15u) ^
               (static_cast<uint64_t>(salt) << 17);
  h = (h ^ (h >> 29)) * 0xBF58476D1CE4E5B9u;
  return static_cast<float>(static_cast<int64_t>((h >> 40) % 17) - 8);
}

/// The global tensor of `decl` with value_at, divided by 16.
at::Tensor global_values(const ParameterDecl& decl, int64_t salt) {
  at::Tensor t = at::empty({decl.elements()}, at::kFloat);
  for (int64_t i = 0; i < decl.elements(); ++i) t.data_ptr<float>()[i] = value_at(decl.name, i, salt) / 16;
  return t.view(decl.shape);
}

at::Tensor real_part(const at::Tensor& local, const LocalSlice& s) { return local.narrow(s.dim, 0, s.end - s.begin); }
at::Tensor slice_of(const at::Tensor& global, const LocalSlice& s) {
  return global.narrow(s.dim, s.begin, s.end - s.begin);
}

void fill_weights(ParameterStore& store) {
  for (LocalParameter& p : store.parameters())
    real_part(p.weight, p.slice).copy_(slice_of(global_values(p.decl, 0), p.slice));
}

/// What a backward pass on replica `replica` of `replicas` leaves: its share of the gradient, so that the sum over
/// replicas is the global gradient. Over tp: the same for kSame, only on one rank for partial ones (rank 1 when there
/// is one).
void fill_gradients(ParameterStore& store, int replica, int replicas, int64_t salt) {
  store.zero_gradients();
  const int tp = store.options().tp, rank = store.options().tp_rank;
  for (LocalParameter& p : store.parameters()) {
    if (!p.trained) continue;
    at::Tensor global = global_values(p.decl, salt);
    if (replicas > 1)
      global = replica == 0   ? global - global_values(p.decl, 99)
               : replica == 1 ? global_values(p.decl, 99)
                              : global.zero_();
    if (p.decl.tp_gradient == TpGradient::kSum && tp > 1)
      global = rank == 1 ? global * 3 : rank == 0 ? global * -2 : global.zero_();
    at::Tensor mine = slice_of(global, p.slice).clone();
    if (p.decl.tp_layout == TpLayout::kKvHeads) {
      // Each head's gradient comes from the ranks that hold it; here all of it from the owner.
      mine.narrow(0, 0, p.slice.own_begin - p.slice.begin).zero_();
    }
    real_part(p.gradient, p.slice).copy_(mine);
  }
}

ParameterStoreOptions options_for(const World& world, const std::vector<std::string>& components, bool tp_sequence) {
  ParameterStoreOptions o;
  o.components = components;
  o.tp = world.mesh().size(Axis::kTp);
  o.tp_rank = world.mesh().coordinate(world.rank(), Axis::kTp);
  o.tp_sequence = tp_sequence;
  o.pad_to = world.mesh().size({Axis::kDp, Axis::kCp, Axis::kSp});
  return o;
}

struct Outcome {
  std::map<std::string, at::Tensor> weights, gradients;  // global
  double squared = 0;
};

/// Two steps on every rank of `mesh`; tensors put together as the declarations say. Replicas must agree bitwise.
Outcome train(const Mesh& mesh, int zero, bool tp_sequence = false, int64_t most_bucket_elements = 0) {
  Outcome outcome;
  std::mutex mutex;
  std::map<std::string, std::vector<std::pair<LocalSlice, at::Tensor>>> locals;
  testing::on_every_rank(mesh, [&](World& world) {
    ParameterStore store(testing::tiny_model(), options_for(world, {"text"}, tp_sequence));
    fill_weights(store);
    const auto optimizer = create_group_optimizer(store, world, spec_with_decay(), zero, most_bucket_elements);
    const int replicas = mesh.size({Axis::kDp, Axis::kCp, Axis::kSp});
    const int replica = mesh.index_among_peers(world.rank(), {Axis::kDp, Axis::kCp, Axis::kSp});
    std::map<std::string, at::Tensor> gradients;
    NormPart norm;
    for (int64_t step = 1; step <= 2; ++step) {
      fill_gradients(store, replica, replicas, step);
      optimizer->reduce_gradients();
      norm = optimizer->norm_part();
      for (LocalParameter& p : store.parameters())
        gradients[p.decl.name] = optimizer->full_local_gradient(p.decl.name).clone();
      optimizer->update(step, kRates, 0.5);
      optimizer->gather_weights();
    }
    const std::lock_guard lock(mutex);
    outcome.squared += norm.squared;
    for (LocalParameter& p : store.parameters()) {
      const at::Tensor weight = real_part(p.weight, p.slice).clone(),
                       gradient = real_part(gradients[p.decl.name], p.slice);
      for (auto* target : {&outcome.weights, &outcome.gradients}) {
        at::Tensor& global = (*target)[p.decl.name];
        if (!global.defined()) global = at::empty(p.decl.shape, at::kFloat).fill_(NAN);
        at::Tensor place = slice_of(global, p.slice);
        const at::Tensor& mine = target == &outcome.weights ? weight : gradient;
        const at::Tensor fresh = place.isnan();
        if (!(fresh | place.eq(mine)).all().item<bool>())
          throw std::runtime_error("replicas of " + p.decl.name + " differ");
        place.copy_(mine);
      }
      if (p.slice.padding > 0 && p.weight.narrow(0, p.slice.end - p.slice.begin, p.slice.padding).any().item<bool>())
        throw std::runtime_error("padding of " + p.decl.name + " is not zero");
    }
  });
  return outcome;
}

const Outcome& one_rank() {
  static const Outcome outcome = train(Mesh(), 0);
  return outcome;
}

Mesh mesh_of(int dp, int sp, int tp) { return Mesh().set(Axis::kDp, dp).set(Axis::kSp, sp).set(Axis::kTp, tp); }

void check_equals_one_rank(const Outcome& outcome) {
  CHECK(outcome.squared == Approx(one_rank().squared).epsilon(1e-12));
  for (const auto& [name, expected] : one_rank().weights) {
    INFO(name);
    CHECK(outcome.gradients.at(name).equal(one_rank().gradients.at(name)));
    CHECK(outcome.weights.at(name).equal(expected));
  }
}

}  // namespace

TEST_CASE("one rank moves weights by torch's rule and counts every element in the norm") {
  double squared = 0;
  for (const ParameterDecl& decl : model_parameters(testing::tiny_model(), false)) {
    if (decl.component != "text") continue;
    squared += global_values(decl, 2).square().sum().item<double>();
    at::Tensor w = global_values(decl, 0), m = w * 0, v = w * 0;
    for (const int64_t step : {1, 2}) {
      const at::Tensor g = global_values(decl, step) * 0.5;
      if (decl.shape.size() > 1) w *= 1 - 1e-2 * 0.3;
      m = m * 0.9 + g * 0.1;
      v = v * 0.95 + g.square() * 0.05;
      const double c1 = 1 - std::pow(0.9, step), c2 = 1 - std::pow(0.95, step);
      w -= 1e-2 / c1 * m / (v.sqrt() / std::sqrt(c2) + 1e-8);
    }
    INFO(decl.name);
    CHECK((one_rank().weights.at(decl.name) - w).abs().max().item<double>() < 2e-7);
  }
  CHECK(one_rank().squared == Approx(squared).epsilon(1e-6));
}

TEST_CASE("any data and sequence parallel size, sharded or not, ends bitwise where one rank does") {
  const int zero = GENERATE(0, 1);
  const auto mesh = GENERATE(mesh_of(2, 1, 1), mesh_of(1, 3, 1), mesh_of(2, 2, 1));
  const int64_t most = GENERATE(0, 1000, 1);  // 1: a bucket a parameter
  INFO(mesh.to_string() << ", zero " << zero << ", buckets of " << most);
  check_equals_one_rank(train(mesh, zero, false, most));
}

TEST_CASE("tensor parallel ranks with shared KV heads and partial norms end bitwise where one rank does") {
  const bool tp_sequence = GENERATE(false, true);
  const auto mesh = GENERATE(mesh_of(1, 1, 2), mesh_of(1, 1, 3), mesh_of(1, 1, 4), mesh_of(2, 1, 2));
  const int64_t most = GENERATE(0, 700);
  INFO(mesh.to_string() << (tp_sequence ? ", tp_sequence" : "") << ", buckets of " << most);
  check_equals_one_rank(train(mesh, 1, tp_sequence, most));
}

TEST_CASE("a non-finite gradient is counted once however many ranks hold it") {
  for (const int zero : {0, 1}) {
    double non_finite = 0;
    std::mutex mutex;
    testing::on_every_rank(mesh_of(2, 1, 2), [&](World& world) {
      ParameterStore store(testing::tiny_model(), options_for(world, {"text"}, false));
      fill_gradients(store, 0, 1, 1);
      store.at("model.norm.weight").gradient[3] = NAN;
      store.at("model.embed_tokens.weight").gradient[0][0] = INFINITY;  // another element on each tp rank
      const auto optimizer = create_group_optimizer(store, world, {}, zero);
      optimizer->reduce_gradients();
      const double mine = optimizer->norm_part().non_finite;
      const std::lock_guard lock(mutex);
      non_finite += mine;
    });
    CHECK(non_finite == 3);
  }
}

TEST_CASE("components move at their own rates and frozen ones not at all") {
  const auto world = create_solo_world();
  ParameterStoreOptions options;
  options.components = {"vision", "merger", "text"};
  options.frozen = {"vision"};
  ParameterStore store(testing::tiny_model(), options);
  fill_weights(store);
  fill_gradients(store, 0, 1, 1);
  const at::Tensor frozen = store.buffers()[0].weights.clone();
  const auto optimizer = create_group_optimizer(store, *world, {}, 1);
  const auto moved = [&](const std::string& name) {  // a bias or norm: no decay, so the first step is lr times the sign
    LocalParameter& p = store.at(name);
    return (p.weight - global_values(p.decl, 0)).abs().max().item<double>();
  };
  optimizer->reduce_gradients();
  optimizer->update(1, {{"merger", 1e-3}, {"text", 1e-2}}, 1.0);
  CHECK(store.buffers()[0].weights.equal(frozen));
  CHECK(moved("visual.merger.mlp.2.bias") == Approx(1e-3).epsilon(1e-3));
  CHECK(moved("model.norm.weight") == Approx(1e-2).epsilon(1e-3));
  CHECK_FALSE(optimizer->full_local_gradient("visual.blocks.0.norm1.weight").defined());
}

TEST_CASE("bf16 weights follow an fp32 master, so that small steps add up") {
  const auto world = create_solo_world();
  ParameterStoreOptions options;
  options.components = {"merger"};
  options.compute_dtype = at::kBFloat16;
  const auto after_steps = [&](bool pure) {
    options.gradients_in_compute_dtype = pure;
    ParameterStore store(testing::tiny_model(), options);
    LocalParameter& bias = store.at("visual.merger.mlp.0.bias");
    bias.weight.fill_(1);
    const auto optimizer = create_group_optimizer(store, *world, {}, 0);
    for (int64_t step = 1; step <= 20; ++step) {
      bias.gradient.fill_(-1);
      optimizer->update(step, {{"merger", 1e-3}}, 1.0);
    }
    return bias.weight[0].item<float>();
  };
  CHECK(after_steps(false) == Approx(1.02f).epsilon(1.0 / 256));
  CHECK(after_steps(true) == 1.0f);  // a step of 1e-3 is below half a bf16 step at 1
}

TEST_CASE("optimizer pieces of all shards cover every trained element once") {
  const int64_t most = GENERATE(0, 1, 200);
  std::mutex mutex;
  std::map<std::string, int64_t> covered;
  testing::on_every_rank(mesh_of(3, 1, 1), [&](World& world) {
    ParameterStore store(testing::tiny_model(), options_for(world, {"vision", "merger"}, false));
    const auto optimizer = create_group_optimizer(store, world, {}, 1, most);
    const std::lock_guard lock(mutex);
    for (const OptimizerPiece& piece : optimizer->pieces()) {
      if (piece.exp_avg.numel() != piece.end - piece.begin || piece.master.defined())
        throw std::runtime_error(piece.name);
      covered[piece.name] += piece.end - piece.begin;
    }
  });
  for (const ParameterDecl& decl : model_parameters(testing::tiny_model(), false))
    if (decl.component != "text") CHECK(covered[decl.name] == decl.elements());
}
