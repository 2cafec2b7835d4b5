#include "actors/sources/inline_data.h"

#include <catch2/catch.hpp>

namespace troupe {
namespace {

TEST_CASE("Data URIs in base64 give their bytes, padded or not") {
  CHECK(*decode_inline_data("data:image/png;base64,Zm9vYmFy") == "foobar");
  CHECK(*decode_inline_data("data:;base64,Zm9vYg==") == "foob");
  CHECK(*decode_inline_data("data:image/png;base64,Zm9vYmE") == "fooba");
  CHECK(decode_inline_data("data:image/png;base64,")->empty());
  CHECK(*decode_inline_data("data:;base64,Zm9v\r\nYg==\n") == "foob");
}

TEST_CASE("A message shows the beginning of what stands for a picture") {
  CHECK(image_name("a.png") == "image 'a.png'");
  CHECK(image_name("data:image/png;base64," + std::string(5000, 'A')).size() < 80);
}

TEST_CASE("What is no base64 is refused") {
  for (const char* uri : {"data:image/png,raw", "data:image/png;base64,Zm9v!mFy", "data:image/png;base64,Z", "data:x",
                          "data:;base64,Zm=v", "data:;base64,Zm9v Zm9v"}) {
    INFO(uri);
    CHECK_FALSE(decode_inline_data(uri).ok());
  }
}

}  // namespace
}  // namespace troupe
