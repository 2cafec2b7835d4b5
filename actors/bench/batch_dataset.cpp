#include "actors/bench/batch_dataset.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>

#include <cstring>

#include "actors/data/positions.h"
#include "base/safetensors/safetensors_file.h"

namespace troupe {
namespace {

constexpr int64_t kLongestAxis = 1 << 15;

class BatchDataset final : public Dataset {
 public:
  BatchDataset(const ModelConfig& config, at::Tensor ids, at::Tensor labels, at::Tensor pixels,
               const std::vector<IndexedImage>& grids)
      : config_(config), ids_(std::move(ids)), labels_(std::move(labels)), pixels_(std::move(pixels)) {
    size_t next = 0;
    int64_t patch = 0;
    const auto* id = ids_.const_data_ptr<int64_t>();
    const auto* label = labels_.const_data_ptr<int64_t>();
    const int64_t length = ids_.size(1);
    for (int64_t b = 0; b < ids_.size(0); ++b) {
      IndexedSample sample;
      sample.tokens = static_cast<int32_t>(length);
      sample.id = "row " + std::to_string(b);
      for (int64_t i = 0; i < length; ++i) {
        if (i > 0 && label[b * length + i] >= 0) ++sample.supervised;
        const bool starts =
            id[b * length + i] == config.image_token && (i == 0 || id[b * length + i - 1] != config.image_token);
        if (starts && next < grids.size()) {
          IndexedImage image = grids[next++];
          image.token_offset = static_cast<int32_t>(i);
          first_patch_.push_back(patch);
          patch += image.patches();
          sample.images.push_back(image);
        }
      }
      first_image_.push_back(static_cast<int64_t>(first_patch_.size()) - static_cast<int64_t>(sample.images.size()));
      index_.samples.push_back(sample);
    }
    index_.total_records = ids_.size(0);
  }

  const SampleIndex& index() const override { return index_; }
  Result<TokenizedSample> tokens(int64_t sample) const override {
    TokenizedSample result;
    const int64_t length = ids_.size(1);
    const auto* id = ids_.const_data_ptr<int64_t>() + sample * length;
    const auto* label = labels_.const_data_ptr<int64_t>() + sample * length;
    result.ids.assign(id, id + length);
    for (int64_t i = 0; i < length; ++i) result.supervised.push_back(label[i] >= 0 ? 1 : 0);
    const auto images = index_.samples[static_cast<size_t>(sample)].images;
    result.images.assign(images.begin(), images.end());
    result.positions = mrope_positions(length, result.images, config_.vision.merge_size, config_.tokens_per_second);
    return result;
  }
  Result<at::Tensor> patches(int64_t sample, int image) const override {
    const auto number = static_cast<size_t>(first_image_[static_cast<size_t>(sample)] + image);
    return pixels_.narrow(0, first_patch_[number],
                          index_.samples[static_cast<size_t>(sample)].images[static_cast<size_t>(image)].patches());
  }
  Result<SampleText> text(int64_t) const override { return invalid_argument("a prepared batch has no text"); }
  Result<std::string> decode(const std::vector<int64_t>&) const override {
    return invalid_argument("a prepared batch has no tokenizer");
  }
  int64_t end_of_turn() const override { return -1; }

 private:
  const ModelConfig config_;
  at::Tensor ids_, labels_, pixels_;
  SampleIndex index_;
  std::vector<int64_t> first_image_, first_patch_;
};

Result<at::Tensor> read_tensor(const SafetensorsFile& file, const std::string& name, FileDType dtype,
                               size_t dimensions) {
  const TensorInfo* info = file.find(name);
  if (!info)
    return not_found(file.path() + ": tensor '" + name +
                     "' is missing (needed: input_ids, labels, pixel_values, image_grid_thw)");
  if (info->dtype != dtype || info->shape.size() != dimensions)
    return invalid_argument(file.path() + ": tensor '" + name + "' must have dtype " + file_dtype_name(dtype) +
                            " and " + std::to_string(dimensions) + " dimensions");
  at::Tensor t = at::empty(info->shape, dtype == FileDType::kI64 ? at::kLong : at::kFloat);
  std::memcpy(t.mutable_data_ptr(), file.data(*info), info->bytes());
  return t;
}

/// `grid`: [images, 3]
Result<std::vector<IndexedImage>> read_grids(const std::string& path, const at::Tensor& grid,
                                             const ModelConfig& config) {
  if (grid.size(1) != 3)
    return invalid_argument(path + ": image_grid_thw has rows of " + std::to_string(grid.size(1)) +
                            "; valid: 3 (frames, height and width in patches)");
  std::vector<IndexedImage> grids;
  for (int64_t i = 0; i < grid.size(0); ++i) {
    const auto* g = grid.const_data_ptr<int64_t>() + i * 3;
    for (int axis = 0; axis < 3; ++axis)
      if (g[axis] < 1 || g[axis] > kLongestAxis || (axis > 0 && g[axis] % config.vision.merge_size != 0))
        return invalid_argument(path + ": image_grid_thw[" + std::to_string(i) + "] is " + std::to_string(g[0]) + "x" +
                                std::to_string(g[1]) + "x" + std::to_string(g[2]) +
                                "; valid: 1 frame or more, height and width multiples of " +
                                std::to_string(config.vision.merge_size));
    grids.push_back({static_cast<int32_t>(g[0]), static_cast<int32_t>(g[1]), static_cast<int32_t>(g[2]), 0});
  }
  return grids;
}

/// Every id is one of the vocabulary, and the images' tokens stand in runs, one for each image and as long as it.
Status check_ids(const std::string& path, const at::Tensor& ids, const std::vector<IndexedImage>& grids,
                 const ModelConfig& config) {
  const auto* id = ids.const_data_ptr<int64_t>();
  const int64_t length = ids.size(1), merge = config.vision.merge_size * config.vision.merge_size;
  std::vector<int64_t> runs;
  for (int64_t i = 0; i < ids.numel(); ++i) {
    if (id[i] < 0 || id[i] >= config.text.vocabulary)
      return invalid_argument(path + ": input_ids has " + std::to_string(id[i]) + "; valid: 0 to " +
                              std::to_string(config.text.vocabulary - 1) + ", the model's vocabulary");
    if (id[i] != config.image_token) continue;
    if (i % length == 0 || id[i - 1] != config.image_token) runs.push_back(0);
    ++runs.back();
  }
  if (runs.size() != grids.size())
    return invalid_argument(path + ": image_grid_thw has " + std::to_string(grids.size()) +
                            " images, input_ids has runs of image tokens for " + std::to_string(runs.size()));
  for (size_t i = 0; i < grids.size(); ++i)
    if (runs[i] != grids[i].patches() / merge)
      return invalid_argument(path + ": image " + std::to_string(i) + " has " + std::to_string(runs[i]) +
                              " image tokens in input_ids; valid: " + std::to_string(grids[i].patches() / merge) +
                              ", as image_grid_thw says");
  return {};
}

}  // namespace

Result<std::unique_ptr<Dataset>> open_batch_dataset(const std::string& path, const ModelConfig& config) {
  TROUPE_ASSIGN(const auto file, SafetensorsFile::open(path));
  TROUPE_ASSIGN(at::Tensor ids, read_tensor(*file, "input_ids", FileDType::kI64, 2));
  TROUPE_ASSIGN(at::Tensor labels, read_tensor(*file, "labels", FileDType::kI64, 2));
  TROUPE_ASSIGN(at::Tensor pixels, read_tensor(*file, "pixel_values", FileDType::kF32, 2));
  TROUPE_ASSIGN(const at::Tensor grid, read_tensor(*file, "image_grid_thw", FileDType::kI64, 2));
  if (ids.sizes() != labels.sizes()) return invalid_argument(path + ": input_ids and labels must have the same shape");
  if (pixels.size(1) != config.vision.patch_dim())
    return invalid_argument(path + ": pixel_values has rows of " + std::to_string(pixels.size(1)) +
                            ", the model's patches have " + std::to_string(config.vision.patch_dim()));
  TROUPE_ASSIGN(const std::vector<IndexedImage> grids, read_grids(path, grid, config));
  int64_t patches = 0;
  for (const IndexedImage& image : grids) patches += image.patches();
  if (patches != pixels.size(0))
    return invalid_argument(path + ": image_grid_thw names " + std::to_string(patches) + " patches, pixel_values has " +
                            std::to_string(pixels.size(0)));
  TROUPE_RETURN_IF_ERROR(check_ids(path, ids, grids, config));
  return std::unique_ptr<Dataset>(
      std::make_unique<BatchDataset>(config, std::move(ids), std::move(labels), std::move(pixels), grids));
}

std::unique_ptr<Dataset> make_random_batch(const BatchShape& shape, const ModelConfig& config, uint64_t seed) {
  auto generator = at::detail::createCPUGenerator(seed);
  const int64_t merged = shape.grid_h * shape.grid_w / (config.vision.merge_size * config.vision.merge_size);
  const int64_t length = shape.text + merged + 2, before = std::min<int64_t>(8, shape.text);
  at::Tensor ids = at::randint(5, std::min<int64_t>(1000, config.image_token), {shape.images, length}, generator,
                               at::TensorOptions(at::kLong));
  ids.narrow(1, before, 1).fill_(config.vision_start_token);
  ids.narrow(1, before + 1, merged).fill_(config.image_token);
  ids.narrow(1, before + 1 + merged, 1).fill_(config.vision_end_token);
  at::Tensor labels = ids.clone();
  labels.narrow(1, 0, before + 2 + merged).fill_(-100);
  at::Tensor pixels = at::randn({shape.images * shape.grid_h * shape.grid_w, config.vision.patch_dim()}, generator,
                                at::TensorOptions(at::kFloat));
  const std::vector<IndexedImage> grids(static_cast<size_t>(shape.images),
                                        {1, static_cast<int32_t>(shape.grid_h), static_cast<int32_t>(shape.grid_w), 0});
  return std::make_unique<BatchDataset>(config, std::move(ids), std::move(labels), std::move(pixels), grids);
}

}  // namespace troupe
