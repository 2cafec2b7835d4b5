#include "tests/actors/models/vision_world.h"

#include <ATen/ops/abs.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/tensor.h>

#include "base/safetensors/safetensors_file.h"
#include "tests/transport/world/ranks.h"

namespace troupe::testing {
namespace {

ModelConfig small_config() {
  ModelConfig config;
  VisionConfig& v = config.vision;
  v.depth = 4;
  v.hidden = 96;
  v.heads = 12;
  v.intermediate = 100;
  v.out_hidden = 40;
  v.patch_size = 4;
  v.window_size = 32;
  v.full_attention_blocks = {1, 3};
  return config;
}

/// The unit that a run works on: some images of the case, with their pixels and gradients.
struct Unit {
  std::vector<IndexedImage> images;
  at::Tensor pixels, grad_rows;
};

Unit make_unit(const VisionCase& c, const VisionRunOptions& options) {
  Unit unit;
  if (options.no_images) return unit;
  std::vector<at::Tensor> pixels, grads;
  int64_t patch = 0, row = 0;
  for (size_t i = 0; i < c.images.size(); ++i) {
    const IndexedImage& image = c.images[i];
    const int64_t rows = image.tokens(c.config.vision.merge_size);
    if (options.images.empty() || std::ranges::find(options.images, static_cast<int>(i)) != options.images.end()) {
      unit.images.push_back(image);
      pixels.push_back(c.at("pixels").narrow(0, patch, image.patches()));
      grads.push_back(c.at("grad_rows").narrow(0, row, rows));
    }
    patch += image.patches();
    row += rows;
  }
  unit.pixels = at::cat(pixels);
  unit.grad_rows = at::cat(grads);
  return unit;
}

at::Tensor index_of(const std::vector<int64_t>& rows) { return at::tensor(rows, at::kLong); }

/// What one rank leaves behind.
struct RankRun {
  at::Tensor rows;
  std::map<std::string, at::Tensor> gradients;
  bool has_context = false;
};

RankRun run_rank(const VisionCase& c, const VisionRunOptions& options, const Unit& unit, const VisionUnitLayout& layout,
                 World& world) {
  ParameterStoreOptions store_options;
  store_options.components = {"vision", "merger"};
  store_options.frozen = options.frozen;
  store_options.compute_dtype = options.dtype;
  ParameterStore store(c.config, store_options);
  for (LocalParameter& p : store.parameters())
    p.weight.copy_(c.at("weight." + p.decl.name.substr(7)).view_as(p.weight));
  store.zero_gradients();
  const auto encoder = create_vision_encoder(c.config, store, world);

  const int rank = world.mesh().coordinate(world.rank(), Axis::kSp);
  at::Tensor pixels = at::empty({0, c.config.vision.patch_dim()}),
             grad_rows = at::empty({0, c.config.vision.out_hidden});
  if (!unit.images.empty()) {
    pixels = at::index_select(unit.pixels, 0, index_of(local_patches(c.config.vision, layout, rank)));
    grad_rows = at::index_select(unit.grad_rows, 0,
                                 index_of(merged_rows_of_ranks(c.config.vision, layout)[static_cast<size_t>(rank)]));
  }
  RankRun run;
  for (int pass = 0; pass < options.passes; ++pass) {
    std::unique_ptr<VisionContext> context;
    run.rows = encoder->forward(layout, pixels, options.keep_context, context);
    run.has_context = context != nullptr;
    if (context) encoder->backward(std::move(context), grad_rows);
  }
  for (const LocalParameter& p : store.parameters()) {
    if (p.gradient.defined()) run.gradients[p.decl.name] = p.gradient.clone();
  }
  return run;
}

}  // namespace

VisionCase load_vision_case() {
  auto file = SafetensorsFile::open(TROUPE_VISION_REFERENCE);
  if (!file.ok()) throw ErrorException(file.error());
  VisionCase c;
  c.config = small_config();
  for (const TensorInfo& info : (*file)->tensors()) {
    const at::ScalarType type = info.dtype == FileDType::kI64 ? at::kLong : at::kFloat;
    auto* data = const_cast<std::byte*>((*file)->data(info));
    c.tensors[info.name] = at::from_blob(data, info.shape, at::TensorOptions(type)).clone();
  }
  const at::Tensor grid = c.at("grid");
  for (int64_t i = 0; i < grid.size(0); ++i) {
    const int64_t* g = grid.data_ptr<int64_t>() + 3 * i;
    c.images.push_back({static_cast<int32_t>(g[0]), static_cast<int32_t>(g[1]), static_cast<int32_t>(g[2]), 0});
  }
  return c;
}

VisionRun run_vision_case(const VisionCase& c, const VisionRunOptions& options) {
  const Unit unit = make_unit(c, options);
  const VisionUnitLayout layout{unit.images, cut_windows(c.config.vision, unit.images, options.sp)};
  std::vector<RankRun> ranks(static_cast<size_t>(options.sp));
  Mesh mesh;
  mesh.set(Axis::kSp, options.sp);
  const auto errors = run_ranks(mesh, {{Axis::kSp}}, [&](World& world) {
    ranks[static_cast<size_t>(world.rank())] = run_rank(c, options, unit, layout, world);
  });
  if (!errors.empty()) throw std::runtime_error(errors[0]);

  VisionRun run;
  const auto rows = merged_rows_of_ranks(c.config.vision, layout);
  int64_t total = 0;
  for (const auto& r : rows) total += static_cast<int64_t>(r.size());
  run.rows = at::empty({total, c.config.vision.out_hidden}, at::TensorOptions(options.dtype));
  for (size_t r = 0; r < ranks.size(); ++r) {
    if (ranks[r].rows.size(0) != static_cast<int64_t>(rows[r].size()))
      throw std::runtime_error("a rank returned the wrong number of rows");
    run.rows.index_copy_(0, index_of(rows[r]), ranks[r].rows);
    run.rank_rows.push_back(static_cast<int64_t>(rows[r].size()));
    run.has_context.push_back(ranks[r].has_context);
    for (const auto& [name, gradient] : ranks[r].gradients) {
      auto [found, is_new] = run.gradients.emplace(name, gradient);
      if (!is_new) found->second.add_(gradient);
    }
  }
  return run;
}

double relative_difference(const at::Tensor& actual, const at::Tensor& expected) {
  const double largest = expected.abs().max().item<double>();
  return actual.to(expected.scalar_type()).sub(expected).abs().max().item<double>() / largest;
}

}  // namespace troupe::testing
