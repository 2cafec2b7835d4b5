#include <ATen/Context.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "actors/kernels/row_functions.h"

using namespace troupe;

// The CPU's loops are the reference: they are tested against fp64 formulas.
namespace {

const at::Device kGpu(at::kCUDA, 0);

bool no_gpu() {
  if (at::hasCUDA()) return false;
  WARN("no GPU here: skipped");
  return true;
}

at::Tensor noise(std::vector<int64_t> shape, at::ScalarType type) { return at::randn(shape).to(type); }

void check_near(const at::Tensor& actual, const at::Tensor& expected, at::ScalarType type) {
  REQUIRE(actual.sizes() == expected.sizes());
  if (expected.numel() == 0) return;
  const at::Tensor a = actual.cpu().to(at::kDouble), e = expected.to(at::kDouble);
  CHECK(a.sub(e).abs().max().item<double>() <= (type == at::kFloat ? 1e-5 : 0.01) * e.abs().max().item<double>());
}

}  // namespace

TEST_CASE("row functions compute on a GPU what they compute on the CPU") {
  if (no_gpu()) return;
  at::manual_seed(5);
  const at::ScalarType type = GENERATE(at::kFloat, at::kBFloat16);
  // 1280 and 8192 are whole 16-byte pieces, 3420 and 30 are not, and 40000 is wider than a block holds.
  const int64_t width = GENERATE(30, 1280, 3420, 8192, 40000), rows = GENERATE(0, 1, 3000);
  if (width == 40000 && rows == 3000) return;
  CAPTURE(type, width, rows);
  const auto gpu = [](const at::Tensor& x) { return x.defined() ? x.to(kGpu) : x; };
  const at::Tensor x = noise({rows, width}, type), weight = noise({width}, type), grad = noise({rows, width}, type);
  for (const at::Tensor& residual : {at::Tensor(), noise({rows, width}, type)}) {
    const RmsNormResult expected = rms_norm_rows(x, residual, weight, 1e-6),
                        actual = rms_norm_rows(gpu(x), gpu(residual), gpu(weight), 1e-6);
    check_near(actual.y, expected.y, type);
    check_near(actual.inverse, expected.inverse, at::kFloat);
    if (residual.defined()) check_near(actual.sum, expected.sum, type);
    at::Tensor expected_sums = at::zeros({width}, at::kFloat),
               actual_sums = at::zeros({width}, at::TensorOptions(at::kFloat).device(kGpu));
    const at::Tensor expected_grad =
        rms_norm_rows_backward(grad, residual, x, weight, expected.inverse, expected_sums, true);
    const at::Tensor actual_grad =
        rms_norm_rows_backward(gpu(grad), gpu(residual), gpu(x), gpu(weight), gpu(expected.inverse), actual_sums, true);
    check_near(actual_grad, expected_grad, type);
    if (rows > 0) check_near(actual_sums, expected_sums, type);
  }
  const at::Tensor gate_up = noise({rows, 2 * width}, type);
  check_near(swiglu_rows(gpu(gate_up)), swiglu_rows(gate_up), type);
  check_near(swiglu_rows_backward(gpu(grad), gpu(gate_up)), swiglu_rows_backward(grad, gate_up), type);
}

TEST_CASE("heads are split and rotated on a GPU as on the CPU, and back") {
  if (no_gpu()) return;
  const at::ScalarType type = GENERATE(at::kFloat, at::kBFloat16);
  const int64_t d = GENERATE(12, 80, 128), rows = GENERATE(0, 777);
  CAPTURE(type, d, rows);
  const at::Tensor packed = noise({rows, 7 * d}, type), cos = noise({rows, d}, at::kFloat),
                   sin = noise({rows, d}, at::kFloat);
  const auto [q, k, v] = rope_split_rows(packed, cos, sin, 3, 2);
  const auto [gq, gk, gv] = rope_split_rows(packed.to(kGpu), cos.to(kGpu), sin.to(kGpu), 3, 2);
  check_near(gq, q, type);
  check_near(gk, k, type);
  check_near(gv, v, type);
  check_near(rope_split_rows_backward(q.to(kGpu), k.to(kGpu), v.to(kGpu), cos.to(kGpu), sin.to(kGpu)),
             rope_split_rows_backward(q, k, v, cos, sin), type);
}

TEST_CASE("squares are summed and non-finite values counted on a GPU") {
  if (no_gpu()) return;
  const at::ScalarType type = GENERATE(at::kFloat, at::kBFloat16);
  at::Tensor x = noise({1000003}, type);
  const double expected = x.to(at::kDouble).square().sum().item<double>();
  const int64_t start = GENERATE(0, 1);  // 1: not at 16 bytes
  const at::Tensor on_gpu = x.to(kGpu);
  at::Tensor got = squares_and_non_finite(on_gpu.narrow(0, start, x.numel() - start)).cpu();
  CHECK(got[0].item<double>() ==
        Approx(expected - (start == 1 ? x[0].to(at::kDouble).square().item<double>() : 0)).epsilon(1e-5));
  CHECK(got[1].item<double>() == 0);
  x[1000002].fill_(std::numeric_limits<float>::quiet_NaN());
  x[17].fill_(std::numeric_limits<float>::infinity());
  got = squares_and_non_finite(x.to(kGpu)).cpu();
  CHECK(got[1].item<double>() == 2);
  CHECK_FALSE(std::isfinite(got[0].item<double>()));
}
