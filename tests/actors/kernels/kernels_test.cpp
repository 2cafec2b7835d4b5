#include "actors/kernels/kernels.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/autograd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <limits>

using namespace troupe;

// Oracles are plain ATen expressions in fp64, differentiated by ATen's own autograd.
namespace {

using Tensors = std::vector<at::Tensor>;
using Expression = std::function<Tensors(const Tensors&)>;

at::Tensor noise(std::vector<int64_t> shape) {
  static at::Generator generator = at::detail::createCPUGenerator(11);
  return at::randn(shape, generator, at::TensorOptions(at::kFloat));
}

/// Relative to the largest element; what should be all zero (the scores' gradient in a segment of one row) is judged
/// absolutely.
double difference(const at::Tensor& actual, const at::Tensor& expected) {
  if (expected.numel() == 0) return actual.sizes() == expected.sizes() ? 0 : 1;
  return actual.to(at::kDouble).sub(expected).abs().max().item<double>() /
         std::max(0.1, expected.abs().max().item<double>());
}

/// Outputs, then the gradients of `inputs` for the output gradients given.
Tensors run(const Expression& f, const Tensors& inputs, const Tensors& grad_outputs, at::ScalarType type) {
  Tensors leaves;
  for (const at::Tensor& x : inputs) leaves.push_back(x.to(type).clone().set_requires_grad(true));
  Tensors results = f(leaves), grads;
  for (const at::Tensor& g : grad_outputs) grads.push_back(g.to(type));
  torch::autograd::backward(results, grads);
  for (at::Tensor& r : results) r = r.detach();
  for (const at::Tensor& leaf : leaves) results.push_back(leaf.grad());
  return results;
}

void check_same(const Tensors& actual, const Tensors& expected, double tolerance) {
  REQUIRE(actual.size() == expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    CAPTURE(i);
    REQUIRE(actual[i].defined());
    CHECK(difference(actual[i], expected[i]) < tolerance);
  }
}

at::Tensor norm_oracle(const at::Tensor& x, const at::Tensor& w, double eps) {
  return x * at::mean(x * x, -1, true).add(eps).rsqrt() * w;
}

at::Tensor rotated(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) {
  const int64_t half = x.size(2) / 2;
  const at::Tensor turned = at::cat({x.narrow(2, half, half).neg(), x.narrow(2, 0, half)}, 2);
  return x * cos.unsqueeze(1).to(x.scalar_type()) + turned * sin.unsqueeze(1).to(x.scalar_type());
}

/// Attention with every segment on its own and a head map.
at::Tensor attention_oracle(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const std::vector<int64_t>& starts, bool causal, double scale,
                            const std::vector<int64_t>& map) {
  const at::Tensor heads = at::tensor(map, at::kLong);
  const at::Tensor keys = at::index_select(k, 1, heads), values = at::index_select(v, 1, heads);
  Tensors parts;
  for (size_t i = 0; i + 1 < starts.size(); ++i) {
    const int64_t n = starts[i + 1] - starts[i];
    const auto piece = [&](const at::Tensor& x) { return x.narrow(0, starts[i], n).transpose(0, 1); };
    at::Tensor scores = at::matmul(piece(q), piece(keys).transpose(1, 2)) * scale;
    if (causal) scores = scores + at::ones({n, n}, scores.options()).mul(-1e30).triu(1);
    parts.push_back(at::matmul(at::softmax(scores, -1), piece(values)).transpose(0, 1));
  }
  return at::cat(parts);
}

const double kEps = 1e-6;

}  // namespace

TEST_CASE("linear adds its weight gradients to what the views hold and returns the input's gradient") {
  const at::Tensor x = noise({37, 24}), w = noise({18, 24}), b = noise({18}), g = noise({37, 18});
  at::Tensor wg = at::ones({18, 24}), bg = at::ones({18});
  const Tensors ours =
      run([&](const Tensors& in) { return Tensors{linear(in[0], w, b, wg, bg)}; }, {x}, {g}, at::kFloat);
  const Tensors oracle =
      run([](const Tensors& in) { return Tensors{at::matmul(in[0], in[1].t()) + in[2]}; }, {x, w, b}, {g}, at::kDouble);
  check_same({ours[0], ours[1], wg - 1, bg - 1}, oracle, 1e-5);
}

TEST_CASE("linear gives its weights gradients when its input needs none") {
  const at::Tensor x = noise({5, 8}), w = noise({3, 8}), g = noise({5, 3});
  at::Tensor wg = at::zeros({3, 8});
  const at::Tensor y = linear(x, w, {}, wg, {});
  REQUIRE(y.requires_grad());
  torch::autograd::backward({y}, {g});
  CHECK(difference(wg, at::matmul(g.t(), x).to(at::kDouble)) < 1e-5);
}

TEST_CASE("nothing is recorded when neither input nor weights need a gradient") {
  const at::Tensor x = noise({5, 8}), w = noise({8, 8}), one = at::ones({8});
  CHECK_FALSE(linear(x, w, {}, {}, {}).requires_grad());
  CHECK_FALSE(rms_norm(x, one, {}, kEps).requires_grad());
  CHECK_FALSE(add_rms_norm(x, x, one, {}, kEps).normed.requires_grad());
  CHECK_FALSE(swiglu(x).requires_grad());
}

TEST_CASE("bf16 linear sums weight gradients in fp32") {
  // 1 + 2^-12 is lost when the sum is rounded to bf16.
  const at::Tensor x = at::ones({1, 1}).to(at::kBFloat16),
                   g = at::ones({1, 1}).mul(std::ldexp(1.0, -12)).to(at::kBFloat16);
  at::Tensor wg = at::ones({1, 1}), bg = at::ones({1});
  torch::autograd::backward({linear(x, x, x[0], wg, bg)}, {g});
  CHECK(wg.item<double>() == 1 + std::ldexp(1.0, -12));
  CHECK(bg.item<double>() == 1 + std::ldexp(1.0, -12));
}

TEST_CASE("the norm agrees with its formula for widths off the vector size and rows off the piece size") {
  const auto [rows, width] = GENERATE(std::pair<int64_t, int64_t>{1, 1}, std::pair<int64_t, int64_t>{300, 37},
                                      std::pair<int64_t, int64_t>{129, 320});
  CAPTURE(rows, width);
  const at::Tensor x = noise({rows, width}), w = noise({width}), g = noise({rows, width});
  at::Tensor wg = at::ones({width});
  const Tensors ours =
      run([&](const Tensors& in) { return Tensors{rms_norm(in[0], w, wg, kEps)}; }, {x}, {g}, at::kFloat);
  const Tensors oracle =
      run([](const Tensors& in) { return Tensors{norm_oracle(in[0], in[1], kEps)}; }, {x, w}, {g}, at::kDouble);
  // A single element's gradient is nearly zero: what is left of 1 - 1.
  check_same({ours[0], wg - 1}, {oracle[0], oracle[2]}, 1e-5);
  if (width > 1) CHECK(difference(ours[1], oracle[1]) < 1e-5);
}

TEST_CASE("the norm with residual agrees with its formula, whichever of its outputs is used") {
  const bool use_sum = GENERATE(true, false), use_normed = GENERATE(true, false);
  if (!use_sum && !use_normed) return;
  CAPTURE(use_sum, use_normed);
  const at::Tensor x = noise({140, 48}), r = noise({140, 48}), w = noise({48});
  at::Tensor wg = at::zeros({48});
  Tensors grads;
  if (use_sum) grads.push_back(noise({140, 48}));
  if (use_normed) grads.push_back(noise({140, 48}));
  const auto pick = [&](const at::Tensor& sum, const at::Tensor& normed) {
    Tensors out;
    if (use_sum) out.push_back(sum);
    if (use_normed) out.push_back(normed);
    return out;
  };
  const Tensors ours = run(
      [&](const Tensors& in) {
        const NormedSum s = add_rms_norm(in[0], in[1], w, wg, kEps);
        return pick(s.sum, s.normed);
      },
      {x, r}, grads, at::kFloat);
  Tensors oracle = run(
      [&](const Tensors& in) {
        const at::Tensor s = in[0] + in[1];
        return pick(s, norm_oracle(s, w.to(at::kDouble), kEps));
      },
      {x, r}, grads, at::kDouble);
  check_same(ours, oracle, 1e-5);
  if (!use_normed) CHECK(wg.abs().max().item<float>() == 0.0f);
}

TEST_CASE("the weight gradient of the norm is bitwise the same for any number of threads") {
  const at::Tensor x = noise({1000, 64}), w = noise({64}), g = noise({1000, 64});
  Tensors results;
  const int before = at::get_num_threads();
  for (int threads : {1, 2, 3}) {
    at::set_num_threads(threads);
    at::Tensor wg = at::zeros({64});
    torch::autograd::backward({rms_norm(x, w, wg, kEps)}, {g});
    results.push_back(wg);
  }
  at::set_num_threads(before);
  CHECK(results[0].equal(results[1]));
  CHECK(results[0].equal(results[2]));
}

TEST_CASE("SwiGLU agrees with its formula over the whole range of floats") {
  at::Tensor x = noise({50, 2 * 33}) * 4;
  x[0] = 0;
  x[1] = 60;
  x[2] = -60;
  x[3] = 200;
  x[4] = -200;
  const at::Tensor g = noise({50, 33});
  const Tensors ours = run([](const Tensors& in) { return Tensors{swiglu(in[0])}; }, {x}, {g}, at::kFloat);
  const Tensors oracle =
      run([](const Tensors& in) { return Tensors{at::silu(in[0].narrow(1, 0, 33)) * in[0].narrow(1, 33, 33)}; }, {x},
          {g}, at::kDouble);
  for (size_t i : {size_t{0}, size_t{1}}) {
    // Row by row, so that the large rows do not hide the small ones.
    for (int64_t row = 0; row < 50; ++row) CHECK(difference(ours[i][row], oracle[i][row]) < 2e-6);
  }
}

TEST_CASE("a NaN or infinity in the input is seen in the output") {
  const float bad = GENERATE(std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity());
  at::Tensor x = noise({2, 64});
  x[0][5] = bad;
  CHECK_FALSE(rms_norm(x, at::ones({64}), {}, kEps)[0].isfinite().all().item<bool>());
  CHECK_FALSE(swiglu(x)[0].isfinite().all().item<bool>());
  CHECK_FALSE(
      rms_norm(x.to(at::kBFloat16), at::ones({64}).to(at::kBFloat16), {}, kEps)[0].isfinite().all().item<bool>());
  CHECK(swiglu(x)[1].isfinite().all().item<bool>());
}

TEST_CASE("GELU is the exact one") {
  const at::Tensor x = noise({9, 17}), g = noise({9, 17});
  check_same(run([](const Tensors& in) { return Tensors{troupe::gelu(in[0])}; }, {x}, {g}, at::kFloat),
             run([](const Tensors& in) { return Tensors{at::gelu(in[0])}; }, {x}, {g}, at::kDouble), 1e-5);
}

TEST_CASE("the rotary split agrees with rotating by halves") {
  const auto [h, kv, d] =
      GENERATE(std::array<int64_t, 3>{4, 2, 16}, std::array<int64_t, 3>{3, 3, 10}, std::array<int64_t, 3>{2, 1, 80});
  CAPTURE(h, kv, d);
  const int64_t n = 45, width = (h + 2 * kv) * d;
  // Tables whose halves differ, as three-row rotary positions give.
  const at::Tensor qkv = noise({n, width}), cos = noise({n, d}), sin = noise({n, d});
  const Tensors grads = {noise({n, h, d}), noise({n, kv, d}), noise({n, kv, d})};
  const auto ours = run(
      [&](const Tensors& in) {
        auto [q, k, v] = rope_split(in[0], cos, sin, h, kv);
        return Tensors{q, k, v};
      },
      {qkv}, grads, at::kFloat);
  const auto oracle = run(
      [&](const Tensors& in) {
        const at::Tensor all = in[0].view({n, h + 2 * kv, d});
        return Tensors{rotated(all.narrow(1, 0, h), cos, sin), rotated(all.narrow(1, h, kv), cos, sin),
                       all.narrow(1, h + kv, kv) * 1.0};
      },
      {qkv}, grads, at::kDouble);
  check_same(ours, oracle, 1e-6);
}

TEST_CASE("variable-length attention stays inside its segments") {
  const bool causal = GENERATE(false, true);
  const std::vector<int64_t> starts =
      GENERATE(std::vector<int64_t>{0, 40}, std::vector<int64_t>{0, 16, 32, 48},
               std::vector<int64_t>{0, 16, 32, 37, 37, 42, 47, 90}, std::vector<int64_t>{0, 1, 2, 3});
  const auto [h, kv, map] = GENERATE(std::tuple<int64_t, int64_t, std::vector<int64_t>>{4, 4, {0, 1, 2, 3}},
                                     std::tuple<int64_t, int64_t, std::vector<int64_t>>{4, 2, {0, 0, 1, 1}},
                                     std::tuple<int64_t, int64_t, std::vector<int64_t>>{3, 2, {0, 1, 1}},
                                     std::tuple<int64_t, int64_t, std::vector<int64_t>>{2, 2, {0, 0}});
  CAPTURE(causal, starts, map);
  const int64_t n = starts.back(), d = 16;
  const Tensors in = {noise({n, h, d}), noise({n, kv, d}), noise({n, kv, d})}, g = {noise({n, h, d})};
  const Tensors ours =
      run([&](const Tensors& x) { return Tensors{varlen_attention(x[0], x[1], x[2], starts, causal, 0.25, map)}; }, in,
          g, at::kFloat);
  const Tensors oracle =
      run([&](const Tensors& x) { return Tensors{attention_oracle(x[0], x[1], x[2], starts, causal, 0.25, map)}; }, in,
          g, at::kDouble);
  check_same(ours, oracle, 1e-5);
}

TEST_CASE("zero rows pass through every function and leave gradients alone") {
  at::Tensor wg = at::ones({8, 8}), ng = at::ones({8});
  const at::Tensor x = at::zeros({0, 8}).set_requires_grad(true), w = noise({8, 8}), norm = at::ones({8}),
                   table = at::zeros({0, 2});
  const NormedSum s = add_rms_norm(linear(x, w, norm, wg, ng), rms_norm(x, norm, ng, kEps), norm, ng, kEps);
  auto [q, k, v] = rope_split(s.normed, table, table, 2, 1);
  const at::Tensor out = troupe::gelu(swiglu(varlen_attention(q, k, v, {0}, true, 1.0).view({0, 4})));
  torch::autograd::backward({out, s.sum}, {at::zeros({0, 2}), at::zeros({0, 8})});
  CHECK(x.grad().sizes() == x.sizes());
  CHECK(wg.equal(at::ones({8, 8})));
  CHECK(ng.equal(at::ones({8})));
}

TEST_CASE("taken rows give their gradients back where they came from") {
  const std::vector<int64_t> index =
      GENERATE(std::vector<int64_t>{4, 0, 2}, std::vector<int64_t>{1, 0, 4, 3, 2}, std::vector<int64_t>{});
  const at::Tensor x = noise({5, 3}), g = noise({static_cast<int64_t>(index.size()), 3}),
                   i = at::tensor(index, at::kLong);
  check_same(run([&](const Tensors& in) { return Tensors{take_rows(in[0], i)}; }, {x}, {g}, at::kFloat),
             run([&](const Tensors& in) { return Tensors{at::index_select(in[0], 0, i)}; }, {x}, {g}, at::kDouble),
             1e-7);
}

TEST_CASE("bf16 follows the fp64 formulas within its precision") {
  const at::Tensor x = noise({64, 96}), w = noise({96}).abs(), g = noise({64, 96});
  at::Tensor wg = at::zeros({96});
  const Tensors ours = run([&](const Tensors& in) { return Tensors{rms_norm(in[0], w.to(at::kBFloat16), wg, kEps)}; },
                           {x}, {g}, at::kBFloat16);
  const Tensors oracle =
      run([](const Tensors& in) { return Tensors{norm_oracle(in[0], in[1], kEps)}; }, {x, w}, {g}, at::kDouble);
  check_same({ours[0], ours[1], wg}, oracle, 0.02);
  const Tensors half =
      run([](const Tensors& in) { return Tensors{swiglu(in[0])}; }, {x}, {noise({64, 48})}, at::kBFloat16);
  CHECK(half[0].scalar_type() == at::kBFloat16);
  CHECK(difference(half[0], (at::silu(x.narrow(1, 0, 48)) * x.narrow(1, 48, 48)).to(at::kDouble)) < 0.02);
}
