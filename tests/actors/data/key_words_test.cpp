#include "actors/data/key_words.h"

#include <catch2/catch.hpp>

namespace troupe {
namespace {

TEST_CASE("A key is cut into words at what is no letter and at capitals behind small letters") {
  using Words = std::vector<std::string>;
  CHECK(key_words("avatarUrl") == Words{"avatar", "url"});
  CHECK(key_words("image_path_2") == Words{"image", "path"});
  CHECK(key_words("__URL--of9x") == Words{"url", "of", "x"});
  CHECK(key_words("").empty());
}

}  // namespace
}  // namespace troupe
