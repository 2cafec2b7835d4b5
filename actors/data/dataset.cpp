#include "actors/data/dataset.h"

#include <ATen/ops/empty.h>

#include "actors/data/placeholders.h"
#include "actors/data/positions.h"
#include "actors/data/sample_reader.h"
#include "actors/data/synthetic_samples.h"
#include "actors/images/frame_patches.h"
#include "actors/images/image_patches.h"
#include "actors/images/image_size.h"
#include "actors/sources/inline_data.h"

namespace troupe {
namespace {

TokenizedSample with_positions(SampleTokens tokens, const ModelConfig& config) {
  auto positions = mrope_positions(static_cast<int64_t>(tokens.ids.size()), tokens.images, config.vision.merge_size,
                                   config.tokens_per_second);
  return {std::move(tokens.ids), std::move(tokens.supervised), std::move(positions), std::move(tokens.images),
          std::move(tokens.weights)};
}

Status check_range(const char* what, int64_t number, size_t count) {
  if (number >= 0 && number < static_cast<int64_t>(count)) return {};
  return invalid_argument(std::string("there is no ") + what + " " + std::to_string(number) + "; there are " +
                          std::to_string(count));
}

/// Records on disk.
class FileDataset final : public Dataset {
 public:
  FileDataset(std::unique_ptr<SampleReader> reader, const ModelConfig& config, SampleIndex index)
      : reader_(std::move(reader)), config_(config), index_(std::move(index)) {}

  const SampleIndex& index() const override { return index_; }

  Result<TokenizedSample> tokens(int64_t sample) const override {
    TROUPE_ASSIGN(const Record record, record_of(sample));
    const SampleView known = index_.samples[static_cast<size_t>(sample)];
    const std::vector<IndexedImage> grids(known.images.begin(), known.images.end());
    auto tokens = record.images.size() + record.videos.size() == known.images.size()
                      ? reader_->tokenize(known.source, record, &grids)
                      : Result<SampleTokens>(changed(known, "its number of images and videos differs"));
    if (!tokens.ok()) return tokens.error();
    if (static_cast<int64_t>(tokens->ids.size()) != known.tokens || tokens->supervised_count() != known.supervised)
      return changed(known, "its text gives " + std::to_string(tokens->ids.size()) + " tokens, not " +
                                std::to_string(known.tokens));
    return with_positions(std::move(tokens).value(), config_);
  }

  Result<at::Tensor> patches(int64_t sample, int image) const override {
    TROUPE_ASSIGN(const Record record, record_of(sample));
    const SampleView known = index_.samples[static_cast<size_t>(sample)];
    const auto media = media_in_order(record.turns);
    TROUPE_RETURN_IF_ERROR(check_range("image", image, std::min(media.size(), known.images.size())));
    const MediumPlace medium = media[static_cast<size_t>(image)];
    try {
      return medium.video ? video_patches(known, record.videos[medium.number], known.images[static_cast<size_t>(image)])
                          : picture_patches(known, record.images[medium.number], image);
    } catch (const std::exception& e) {
      return internal_error("sample " + std::string(known.id) + ": image " + std::to_string(image) +
                            " could not be cut into patches: " + e.what());
    }
  }

  Result<SampleText> text(int64_t sample) const override {
    TROUPE_ASSIGN(const Record record, record_of(sample));
    SampleText text;
    text.answer = record.turns.back().text;
    const size_t first = record.turns[0].role == Role::kSystem ? 1 : 0;
    if (record.turns.size() == first + 2) {
      text.question = record.turns[first].text;
    } else {
      for (size_t i = first; i + 1 < record.turns.size(); ++i)
        text.question +=
            std::string(i > first ? "\n" : "") + role_name(record.turns[i].role) + ": " + record.turns[i].text;
    }
    return text;
  }

  Result<std::string> decode(const std::vector<int64_t>& ids) const override {
    return reader_->form().tokenizer().decode(ids);
  }
  int64_t end_of_turn() const override { return reader_->form().end_of_turn(); }

 private:
  Error changed(const SampleView& sample, const std::string& how) const { return reader_->changed(sample, how); }

  Result<at::Tensor> picture_patches(const SampleView& known, const RecordMedium& picture, int image) const {
    TROUPE_ASSIGN(const auto file, reader_->open_image(known.source, picture));
    const auto decoded = decode_image(file.bytes());
    if (!decoded.ok())
      return make_error(decoded.error().code, "sample " + std::string(known.id) + ": " + image_name(picture.path) +
                                                  " " + decoded.error().message);
    const auto& vision = config_.vision;
    TROUPE_ASSIGN(const auto scaled,
                  scaled_size({decoded->height, decoded->width}, vision.patch_size * vision.merge_size,
                              reader_->min_pixels(), reader_->max_pixels()));
    const IndexedImage grid = grid_of(scaled, vision.patch_size), &expected = known.images[static_cast<size_t>(image)];
    if (grid.h != expected.h || grid.w != expected.w)
      return changed(known, image_name(picture.path) + " has another size");
    return image_patches(*decoded, scaled, vision, reader_->processor());
  }

  Result<at::Tensor> video_patches(const SampleView& known, const RecordVideo& video, const IndexedImage& grid) const {
    const VideoReader& videos = reader_->videos();
    FramePatches patches(videos.scaled(grid), grid.t * config_.vision.temporal_patch_size, config_.vision,
                         videos.settings().values);
    const Status read = videos.frames(reader_->pictures(known.source), video, grid, [&](const RgbImage& frame) {
      patches.add(frame);
      return Status();
    });
    if (!read.ok()) {
      Error error = read.error();
      error.message = "sample " + std::string(known.id) + ": " + error.message;
      return error;
    }
    return patches.take();
  }

  Result<Record> record_of(int64_t number) const {
    TROUPE_RETURN_IF_ERROR(check_range("sample", number, index_.samples.size()));
    return reader_->indexed_record(index_.samples[static_cast<size_t>(number)]);
  }

  std::unique_ptr<SampleReader> reader_;
  ModelConfig config_;
  SampleIndex index_;
};

class SyntheticDataset final : public Dataset {
 public:
  SyntheticDataset(const SyntheticData& synthetic, const ModelConfig& config, uint64_t seed)
      : synthetic_(synthetic), config_(config), seed_(seed), index_(synthetic_index(synthetic, config, seed)) {}

  const SampleIndex& index() const override { return index_; }
  Result<TokenizedSample> tokens(int64_t sample) const override {
    TROUPE_RETURN_IF_ERROR(check_range("sample", sample, index_.samples.size()));
    return with_positions(synthetic_tokens(synthetic_, config_, seed_, sample), config_);
  }
  Result<at::Tensor> patches(int64_t sample, int image) const override {
    TROUPE_RETURN_IF_ERROR(check_range("sample", sample, index_.samples.size()));
    const auto& images = index_.samples[static_cast<size_t>(sample)].images;
    TROUPE_RETURN_IF_ERROR(check_range("image", image, images.size()));
    at::Tensor patches =
        at::empty({images[static_cast<size_t>(image)].patches(), config_.vision.patch_dim()}, at::kFloat);
    fill_synthetic_patches(seed_, sample, image, patches.data_ptr<float>(), patches.numel());
    return patches;
  }
  Result<SampleText> text(int64_t sample) const override {
    TROUPE_RETURN_IF_ERROR(check_range("sample", sample, index_.samples.size()));
    return SampleText{"(synthetic)", "(synthetic)"};
  }
  Result<std::string> decode(const std::vector<int64_t>& ids) const override {
    std::string text;
    for (const int64_t id : ids) text += (text.empty() ? "" : " ") + std::to_string(id);
    return text;
  }
  int64_t end_of_turn() const override { return config_.text.vocabulary - 1; }

 private:
  SyntheticData synthetic_;
  ModelConfig config_;
  uint64_t seed_;
  SampleIndex index_;
};

}  // namespace

Result<std::unique_ptr<Dataset>> open_dataset(const DataSpec& data, const std::vector<DataSource>& sources,
                                              const std::string& model_folder, const ModelConfig& config,
                                              SampleIndex index) {
  TROUPE_ASSIGN(auto reader, SampleReader::create(data, sources, model_folder, config));
  return std::unique_ptr<Dataset>(std::make_unique<FileDataset>(std::move(reader), config, std::move(index)));
}

std::unique_ptr<Dataset> open_synthetic_dataset(const SyntheticData& synthetic, const ModelConfig& config,
                                                uint64_t seed) {
  return std::make_unique<SyntheticDataset>(synthetic, config, seed);
}

Result<PixelLimits> pixel_limits(const DataSpec& data, const std::string& model_folder) {
  TROUPE_ASSIGN(const auto processor, read_processor_config(model_folder));
  TROUPE_ASSIGN(const auto bounds, pixel_bounds(data, processor));
  return PixelLimits{bounds[0], bounds[1]};
}

}  // namespace troupe
