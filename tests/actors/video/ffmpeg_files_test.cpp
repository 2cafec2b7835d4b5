extern "C" {
#include <libavutil/mem.h>
}

#include <sys/resource.h>

#include <array>
#include <catch2/catch.hpp>
#include <filesystem>
#include <map>

#include "tests/actors/video/clips.h"

// Files of video through FFmpeg. make_clips.py says what is in the clips: frame i is grey, 16 + 8 * i.

namespace troupe {
namespace {

using namespace clips;

struct Clip {
  const char* name;
  int64_t frames;
  double fps;
};
constexpr Clip kClips[] = {{"plain.mp4", 24, 10}, {"b.mkv", 24, 12},     {"vp9.webm", 16, 25},  {"mpeg4.avi", 20, 10},
                           {"quick.mov", 12, 24}, {"front.mp4", 24, 10}, {"plain.avi", 20, 10}, {"parts.mp4", 24, 10}};

TEST_CASE("Size, number of frames and rate of each container are those of its frames") {
  for (const Clip& c : kClips) {
    INFO(c.name);
    const auto header = files()->header(clip(c.name));
    REQUIRE(header.ok());
    CHECK(header->width == 64);
    CHECK(header->height == 48);
    CHECK(header->frames == c.frames);
    CHECK(header->fps == Approx(c.fps).epsilon(0.002));  // Matroska counts milliseconds
  }
}

TEST_CASE("Any choice of frames gives those frames, in order, whatever lies between them") {
  for (const Clip& c : kClips) {
    INFO(c.name);
    std::vector<int64_t> all, some;
    for (int64_t i = 0; i < c.frames; ++i) all.push_back(i);
    for (const int64_t step : {1, 3, 7, 11}) {
      some.clear();
      for (int64_t i = step / 2; i < c.frames; i += step) some.push_back(i);
      const auto seen = greys(clip(c.name), some);
      REQUIRE(seen.ok());
      REQUIRE(seen->size() == some.size());
      for (size_t i = 0; i < some.size(); ++i) CHECK(std::abs((*seen)[i] - (16 + 8 * static_cast<int>(some[i]))) <= 4);
    }
    const auto whole = greys(clip(c.name), all), last = greys(clip(c.name), {c.frames - 1});
    REQUIRE(whole.ok());
    REQUIRE(last.ok());
    CHECK(whole->back() == last->front());  // a frame does not depend on how it was come to
    CHECK_FALSE(greys(clip(c.name), {c.frames}).ok());
  }
}

TEST_CASE("A display matrix turns the frames and their size") {
  const auto header = files()->header(clip("turned.mp4"));
  REQUIRE(header.ok());
  CHECK(header->width == 48);
  CHECK(header->height == 64);
  REQUIRE(files()
              ->decode(clip("turned.mp4"), {0},
                       [](const RgbImage& frame) {
                         CHECK(frame.width == 48);
                         CHECK(frame.height == 64);
                         CHECK(frame.pixels.front() > 240);  // the left half, which is white, came up
                         CHECK(frame.pixels.back() < 16);
                         return Status();
                       })
              .ok());
}

TEST_CASE("What is no video is refused by name") {
  CHECK(refusal("") == "is empty (0 bytes)");
  CHECK(refusal("some words").find("is no file of video of a known type; MP4, MOV, MKV, WebM and AVI are read") == 0);
  CHECK(refusal("FLV\1 and more").find("is a Flash video") == 0);
  CHECK(refusal("OggS and more").find("is an Ogg file") == 0);
  CHECK(refusal(clip("sound.mp4")) == "holds no video");
  CHECK(refusal(clip("plain.mp4").substr(0, 40)).find("cannot be read") == 0);
}

/// jpeg.mov with `count` frames that are all the first one: a chunk each, all at one place.
std::string of_shared_frames(uint32_t count) {
  std::string bytes = clip("jpeg.mov");
  const uint32_t grows = 4 * (count - 1);
  bytes.replace(bytes.find("edts"), 4, "free");
  const auto number_at = [&](size_t at) {
    uint32_t value = 0;
    for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<uint8_t>(bytes[at + i]);
    return value;
  };
  for (const std::string box : {"moov", "trak", "mdia", "minf", "stbl", "stco"}) {
    const uint32_t size = number_at(bytes.find(box) - 4);
    bytes = patched(bytes, "", bytes.find(box) - 4, size + grows);
  }
  const size_t places = bytes.find("stco") + 12;
  bytes = patched(bytes, "stco", 8, number_at(places) + grows);
  const std::string place = bytes.substr(places, 4);
  for (uint32_t i = 1; i < count; ++i) bytes.insert(places, place);
  bytes = patched(patched(bytes, "stco", 4, count), "stsz", 8, count);
  return patched(patched(bytes, "stts", 8, count), "stsc", 12, 1);
}

/// mpeg4.avi with an index in which its second and its first frame take `turns` turns.
std::string of_shared_chunks(size_t turns) {
  const std::string whole = clip("mpeg4.avi");
  const size_t index = whole.rfind("idx1") + 8;
  const std::string first = whole.substr(index, 16), second = whole.substr(index + 16, 16);
  std::string bytes = whole.substr(0, index);
  for (size_t i = 0; i < turns; ++i) bytes += second + first;
  const auto set = [&](size_t at, size_t value) {
    for (size_t i = 0; i < 4; ++i) bytes[at + i] = static_cast<char>(value >> (8 * i));
  };
  set(index - 4, turns * 32);
  set(4, bytes.size() - 8);
  return bytes;
}

TEST_CASE("A file whose frames lie in the same bytes is refused before they are all read") {
  CHECK(refusal(of_shared_frames(4)) == "(accepted)");
  CHECK(refusal(of_shared_frames(1000)).find("has frames that lie in the same bytes") == 0);
  CHECK(refusal(of_shared_chunks(20000)).find("has frames that lie in the same bytes") == 0);
}

TEST_CASE("Of a file with an edit list the frames that it shows are there") {
  const std::string cut = clip("cut.mp4");
  const auto header = files()->header(cut);
  REQUIRE(header.ok());
  CHECK(header->frames == 10);
  CHECK(header->fps == Approx(10));
  const auto seen = greys(cut, {0, 3, 9});
  REQUIRE(seen.ok());
  for (size_t i = 0; i < 3; ++i) CHECK(std::abs((*seen)[i] - (16 + 8 * std::array{10, 13, 19}[i])) <= 4);
}

TEST_CASE("VP8's packets that are only leaned on are no frames") {
  const std::string hidden = clip("hidden.webm");
  const auto header = files()->header(hidden);
  REQUIRE(header.ok());
  REQUIRE(header->frames == 12);
  const auto seen = greys(hidden, {0, 4, 5, 7, 8, 11});
  REQUIRE(seen.ok());
  for (size_t i = 0; i < 6; ++i) CHECK(std::abs((*seen)[i] - (16 + 8 * std::array{0, 4, 6, 8, 10, 13}[i])) <= 4);
}

TEST_CASE("Reordered frames without times are refused before any is decoded") {
  for (const char* name : {"b.avi", "b264.avi"}) {
    INFO(name);
    CHECK(refusal(clip(name)).find("has frames without times that are shown in another order") == 0);
  }
}

TEST_CASE("A codec that is not listed is refused by name, whatever FFmpeg could decode") {
  CHECK(refusal(clip("huff.avi")) == "is coded as huffyuv, which is not read");
  CHECK_FALSE(greys(clip("huff.avi"), {0}).ok());
}

TEST_CASE("A frame's range is its own, not that of the frame before") {
  CHECK(*greys(clip("ranges.avi"), {0, 3, 4, 7}) == std::vector{235, 235, 255, 255});
  CHECK(*greys(clip("ranges.avi"), {5}) == std::vector{255});
}

/// jpeg.mov with tables of `count` frames of a byte each.
std::string of_many_frames(uint32_t count) {
  std::string bytes = patched(patched(clip("jpeg.mov"), "stsz", 4, 1), "stsz", 8, count);
  bytes.replace(bytes.find("edts"), 4, "free");
  return patched(patched(bytes, "stts", 8, count), "stsc", 12, count) + std::string(count, '\0');
}

TEST_CASE("A small file that states a huge number of frames is refused and takes no memory for them") {
  CHECK(refusal(clip("endless.mov")) == "has more frames than the limit of 2^22");
  CHECK(refusal(of_many_frames((1 << 22) + 1)) == "has more frames than the limit of 2^22");
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  CHECK(usage.ru_maxrss < (1 << 20));  // KiB
}

TEST_CASE("A file whose frames have too many pixels together is refused") {
  const auto of_size = [](uint32_t count) {
    const std::string bytes = of_many_frames(count);
    const size_t entry = bytes.find("jpeg", bytes.find("stsd")) + 4;
    const std::string head = bytes.substr(0, entry);
    return head + patched(patched(bytes.substr(entry), "", 24, 8192, 2), "", 26, 8192, 2);
  };
  CHECK(refusal(of_size(1 << 16)) == "(accepted)");
  CHECK(refusal(of_size((1 << 16) + 1)) ==
        "has 65537 frames of 8192 x 8192 pixels, more than the limit of 2^42 together");
}

TEST_CASE("Want of memory is said as such, wherever it comes up") {
  const std::string good = clip("b.mkv");
  size_t short_of = 0;
  for (size_t most = 64; most < (size_t{1} << 20); most += most / 4) {
    INFO(most << " bytes at once");
    av_max_alloc(most);
    const auto header = files()->header(good);
    const auto seen = greys(good, {3});
    av_max_alloc(size_t{1} << 29);
    if (header.ok() && seen.ok()) continue;
    ++short_of;
    if (!header.ok()) CHECK(header.error().code == ErrorCode::kResourceExhausted);
    if (!seen.ok()) CHECK(seen.error().code == ErrorCode::kResourceExhausted);
  }
  CHECK(short_of > 0);
  CHECK(greys(good, {3}).ok());
}

TEST_CASE("The library that reads files has a version") { CHECK(files()->version() != 0); }

TEST_CASE("Decoding stops with the error of who takes the frames") {
  int taken = 0;
  const Status stopped = files()->decode(clip("plain.mp4"), {0, 5, 9}, [&](const RgbImage&) {
    return ++taken == 2 ? Status(cancelled("enough")) : Status();
  });
  REQUIRE_FALSE(stopped.ok());
  CHECK(stopped.error().code == ErrorCode::kCancelled);
  CHECK(taken == 2);
}

}  // namespace
}  // namespace troupe
