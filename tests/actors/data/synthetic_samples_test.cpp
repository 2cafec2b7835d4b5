#include "actors/data/synthetic_samples.h"

#include <catch2/catch.hpp>

#include "base/config/synthetic_shape.h"
#include "tests/actors/data/fixture.h"

namespace troupe {
namespace {

TEST_CASE("Synthetic samples depend on seed and number only and match their index") {
  const SyntheticData synthetic{2, 60, 100, 50, 10};
  const auto config = fixture::model_config();
  const auto index = synthetic_index(synthetic, config, 3);
  REQUIRE(index.samples.size() == 10);
  for (int64_t i = 0; i < 10; ++i) {
    const auto tokens = synthetic_tokens(synthetic, config, 3, i);
    CHECK(static_cast<int64_t>(tokens.ids.size()) == synthetic_sample_tokens(synthetic, config.vision));
    const auto& sample = index.samples[static_cast<size_t>(i)];
    CHECK(static_cast<int64_t>(tokens.ids.size()) == sample.tokens);
    CHECK(tokens.supervised_count() == sample.supervised);
    CHECK(sample.supervised == 25);
    REQUIRE(tokens.images.size() == 2);
    CHECK(tokens.images[1].token_offset == sample.images[1].token_offset);
    CHECK(tokens.images[0].h == 4);
    CHECK(tokens.images[0].w == 8);
    CHECK(std::count(tokens.ids.begin(), tokens.ids.end(), config.image_token) == 16);
  }
  CHECK(synthetic_tokens(synthetic, config, 3, 4).ids == synthetic_tokens(synthetic, config, 3, 4).ids);
  CHECK(synthetic_tokens(synthetic, config, 3, 4).ids != synthetic_tokens(synthetic, config, 3, 5).ids);
  CHECK(synthetic_tokens(synthetic, config, 3, 4).ids != synthetic_tokens(synthetic, config, 4, 4).ids);
}

TEST_CASE("Synthetic patches lie in [-1, 1) and differ by image") {
  std::vector<float> a(1000), b(1000), again(1000);
  fill_synthetic_patches(1, 2, 0, a.data(), 1000);
  fill_synthetic_patches(1, 2, 1, b.data(), 1000);
  fill_synthetic_patches(1, 2, 0, again.data(), 1000);
  CHECK(a == again);
  CHECK(a != b);
  for (const float v : a) CHECK((v >= -1.0f && v < 1.0f));
}

}  // namespace
}  // namespace troupe
