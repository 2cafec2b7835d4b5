#include <catch2/catch.hpp>

#include "actors/video/video_files.h"

namespace troupe {
namespace {

TEST_CASE("A build without a decoder refuses files of video by name") {
  const auto files = make_video_files();
  const auto header = files->header("anything");
  REQUIRE_FALSE(header.ok());
  CHECK(header.error().code == ErrorCode::kUnimplemented);
  CHECK(header.error().message.find("this build was made without FFmpeg; valid: the video as a list of frames") !=
        std::string::npos);
  CHECK_FALSE(files->decode("anything", {0}, [](const RgbImage&) { return Status(); }).ok());
  CHECK(files->version() == 0);
}

}  // namespace
}  // namespace troupe
