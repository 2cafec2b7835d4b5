#include "tests/actors/images/pictures.h"

namespace troupe {
namespace {

using namespace fixture;

TEST_CASE("D17: the first frame of an animated GIF is shown, whatever the file is called") {
  check_close(quadrants(decoded("frames.gif")), kColours, 0);
  check_close(quadrants(decoded("interlaced.gif")), kColours, 0);
}

TEST_CASE("D17: what is transparent in a GIF is white, not black") {
  check_close(quadrants(decoded("clear.gif")), {kWhite, kGreen, kBlue, kWhite}, 0);
}

TEST_CASE("A frame that leaves the canvas is drawn as far as it lies inside, and the rest of the canvas is white") {
  std::string gif = picture("interlaced.gif");
  const size_t frame = gif.find(std::string("\x2C\0\0\0\0", 5));
  REQUIRE(frame != std::string::npos);
  gif[frame + 1] = 24;  // half of the frame to the right, half of it below
  gif[frame + 3] = 16;
  check_close(quadrants(*decode_image(gif)), {kWhite, kWhite, kWhite, kRed}, 0);
}

TEST_CASE("D10: a GIF whose first frame ends early is refused; a missing end mark is not") {
  check_cut_off("interlaced.gif");
  const std::string whole = picture("frames.gif");
  CHECK(decode_image(whole.substr(0, whole.size() - 1)).ok());
}

TEST_CASE("A GIF whose frame states more pixels than the limit is refused by its header") {
  std::string gif = picture("interlaced.gif");
  const size_t frame = gif.find(std::string("\x2C\0\0\0\0", 5));
  for (size_t i = 5; i < 9; ++i) gif[frame + i] = '\xFF';
  CHECK(reason(gif).find("65535 x 65535 pixels") != std::string::npos);
}

}  // namespace
}  // namespace troupe
