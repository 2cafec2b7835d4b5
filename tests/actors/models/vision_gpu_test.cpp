#include <ATen/Context.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/autograd.h>

#include <catch2/catch.hpp>

#include "actors/kernels/kernels.h"
#include "actors/models/vision_encoder.h"

using namespace troupe;

// The CPU's results are the reference: they are tested against transformers and against fp64 formulas.
namespace {

double difference(const at::Tensor& actual, const at::Tensor& expected) {
  return actual.cpu().to(at::kDouble).sub(expected.cpu().to(at::kDouble)).abs().max().item<double>() /
         expected.cpu().to(at::kDouble).abs().max().item<double>();
}

bool no_gpu() {
  if (at::hasCUDA()) return false;
  WARN("no GPU here: skipped");
  return true;
}

ModelConfig small_config() {
  ModelConfig config;
  VisionConfig& v = config.vision;
  v.depth = 3;
  v.hidden = 320;
  v.heads = 4;
  v.intermediate = 864;
  v.out_hidden = 512;
  v.full_attention_blocks = {1};
  return config;
}

struct Run {
  at::Tensor rows;
  std::vector<std::pair<std::string, at::Tensor>> gradients;
};

/// One forward and backward pass; weights and inputs are drawn on the CPU from a fixed seed, so equal for every device
/// and dtype.
Run run_encoder(at::Device device, at::ScalarType dtype) {
  at::manual_seed(3);
  const ModelConfig config = small_config();
  ParameterStoreOptions options;
  options.components = {"vision", "merger"};
  options.compute_dtype = dtype;
  options.device = device;
  ParameterStore store(config, options);
  for (LocalParameter& p : store.parameters()) {
    const bool matrix = p.decl.shape.size() > 1;
    p.weight.copy_(at::randn(p.weight.sizes())
                       .mul(matrix ? 0.05 : 0.1)
                       .add(p.decl.name.find("norm") != std::string::npos ? 1.0 : 0.0));
  }
  store.zero_gradients();
  const auto world = create_solo_world();
  const auto encoder = create_vision_encoder(config, store, *world);
  const std::vector<IndexedImage> images = {{1, 24, 32, 0}, {2, 6, 10, 0}, {1, 2, 2, 0}};
  const VisionUnitLayout layout{images, cut_windows(config.vision, images, 1)};
  int64_t patches = 0;
  for (const IndexedImage& image : images) patches += image.patches();
  const at::Tensor pixels = at::randn({patches, config.vision.patch_dim()}).to(device);
  const at::Tensor grad = at::randn({patches / 4, config.vision.out_hidden}).to(device);
  std::unique_ptr<VisionContext> context;
  Run run{encoder->forward(layout, pixels, true, context), {}};
  encoder->backward(std::move(context), grad);
  for (const LocalParameter& p : store.parameters()) run.gradients.emplace_back(p.decl.name, p.gradient.cpu().clone());
  return run;
}

/// Attention output and gradients of q, k, v.
std::vector<at::Tensor> run_attention(at::Device device, at::ScalarType dtype, const std::vector<int64_t>& map) {
  at::manual_seed(4);
  const std::vector<int64_t> starts = {0, 70, 71, 200};
  const auto leaf = [&](int64_t heads) {
    return at::randn({200, heads, 128}).to(device, dtype).set_requires_grad(true);
  };
  const at::Tensor q = leaf(4), k = leaf(2), v = leaf(2), grad = at::randn({200, 4, 128}).to(device, dtype);
  const at::Tensor out = varlen_attention(q, k, v, starts, true, 0.1, map);
  torch::autograd::backward({out}, {grad});
  return {out.detach(), q.grad(), k.grad(), v.grad()};
}

}  // namespace

TEST_CASE("the vision encoder computes on a GPU what it computes on the CPU") {
  if (no_gpu()) return;
  at::globalContext().setAllowTF32CuBLAS(false);
  const Run expected = run_encoder(at::kCPU, at::kFloat);
  const auto [dtype, row_tolerance, tolerance] =
      GENERATE(std::tuple{at::kFloat, 1e-4, 1e-3}, std::tuple{at::kBFloat16, 0.03, 0.08});
  CAPTURE(dtype);
  const Run run = run_encoder(at::Device(at::kCUDA, 0), dtype);
  CHECK(difference(run.rows, expected.rows) < row_tolerance);
  for (size_t i = 0; i < run.gradients.size(); ++i) {
    INFO(run.gradients[i].first);
    CHECK(difference(run.gradients[i].second, expected.gradients[i].second) < tolerance);
  }
}

TEST_CASE("causal attention with shared key heads computes on a GPU what it computes on the CPU") {
  if (no_gpu()) return;
  const std::vector<int64_t> map = GENERATE(std::vector<int64_t>{}, std::vector<int64_t>{0, 1, 1, 1});
  const auto expected = run_attention(at::kCPU, at::kFloat, map);
  const auto [dtype, tolerance] = GENERATE(std::pair{at::kFloat, 1e-3}, std::pair{at::kBFloat16, 0.03});
  CAPTURE(dtype, map);
  const auto actual = run_attention(at::Device(at::kCUDA, 0), dtype, map);
  for (size_t i = 0; i < expected.size(); ++i) CHECK(difference(actual[i], expected[i]) < tolerance);
}
