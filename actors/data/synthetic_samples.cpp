#include "actors/data/synthetic_samples.h"

#include "base/config/synthetic_shape.h"

namespace troupe {
namespace {

/// SplitMix64: a stream named by its seed.
class Stream {
 public:
  explicit Stream(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }

 private:
  uint64_t state_;
};

Stream stream_of(uint64_t seed, int64_t sample, uint64_t purpose) {
  Stream a(seed);
  Stream b(a.next() ^ static_cast<uint64_t>(sample));
  return Stream(b.next() ^ purpose);
}

IndexedImage synthetic_image(const SyntheticData& synthetic, const VisionConfig& vision) {
  IndexedImage image;
  const auto [h, w] = synthetic_grid(synthetic, vision);
  image.h = h;
  image.w = w;
  return image;
}

}  // namespace

SampleTokens synthetic_tokens(const SyntheticData& synthetic, const ModelConfig& config, uint64_t seed,
                              int64_t sample) {
  SampleTokens out;
  for (int i = 0; i < synthetic.images; ++i) {
    IndexedImage image = synthetic_image(synthetic, config.vision);
    out.ids.push_back(config.vision_start_token);
    image.token_offset = static_cast<int32_t>(out.ids.size());
    out.ids.insert(out.ids.end(), static_cast<size_t>(image.tokens(config.vision.merge_size)), config.image_token);
    out.ids.push_back(config.vision_end_token);
    out.images.push_back(image);
  }
  out.supervised.resize(out.ids.size(), 0);
  Stream stream = stream_of(seed, sample, 1);
  for (int i = 0; i < synthetic.text_tokens;) {
    const auto id = static_cast<int64_t>(stream.next() % static_cast<uint64_t>(config.text.vocabulary));
    if (id == config.image_token || id == config.video_token || id == config.vision_start_token ||
        id == config.vision_end_token)
      continue;
    out.ids.push_back(id);
    out.supervised.push_back(i >= synthetic.text_tokens / 2);
    ++i;
  }
  return out;
}

SampleIndex synthetic_index(const SyntheticData& synthetic, const ModelConfig& config, uint64_t seed) {
  SampleIndex index;
  index.total_records = synthetic.samples;
  index.digest = "synthetic-" + std::to_string(seed) + "-" + std::to_string(synthetic.images) + "x" +
                 std::to_string(synthetic.height) + "x" + std::to_string(synthetic.width) + "-" +
                 std::to_string(synthetic.text_tokens) + "-" + std::to_string(synthetic.samples);
  const SampleTokens first = synthetic_tokens(synthetic, config, seed, 0);  // all samples have one shape
  for (int64_t i = 0; i < synthetic.samples; ++i) {
    IndexedSample sample;
    sample.record = i;
    sample.tokens = static_cast<int32_t>(first.ids.size());
    sample.supervised = static_cast<int32_t>(first.supervised_count());
    sample.images = first.images;
    sample.id = "synthetic:" + std::to_string(i);
    index.samples.push_back(sample);
  }
  return index;
}

void fill_synthetic_patches(uint64_t seed, int64_t sample, int image, float* values, int64_t count) {
  Stream stream = stream_of(seed, sample, 2 + static_cast<uint64_t>(image));
  for (int64_t i = 0; i < count; ++i) values[i] = static_cast<float>(stream.next() >> 40) * 0x1.0p-23f - 1.0f;
}

}  // namespace troupe
