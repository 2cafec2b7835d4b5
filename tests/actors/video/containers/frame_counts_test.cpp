#include "actors/video/containers/frame_counts.h"

#include <catch2/catch.hpp>

#include "tests/actors/video/avi.h"
#include "tests/actors/video/clips.h"

// What files say of their frames, without a library that reads video.

namespace troupe {
namespace {

using namespace clips;

/// Of stream `id`; -1: not known, or the file is refused.
int64_t held(const std::string& bytes, int64_t id) {
  const auto counts = count_frames(bytes);
  if (!counts.ok()) WARN(counts.error().message);
  return counts.ok() && counts->contains(id) ? counts->at(id).frames.value_or(-1) : -1;
}

std::string refused(const std::string& bytes) {
  const auto counts = count_frames(bytes);
  return counts.ok() ? "(accepted)" : counts.error().message;
}

TEST_CASE("Frames are counted by each container's own structure") {
  CHECK(held(clip("parts.mp4"), 1) == 24);
  CHECK(held(clip("jpeg.mov"), 1) == -1);  // it has an edit list
  CHECK(held(clip("b.mkv"), 0) == 24);
  CHECK(held(clip("vp9.webm"), 0) == 16);
  CHECK(held(clip("hidden.webm"), 0) == 14);
  CHECK(held(clip("mpeg4.avi"), 0) == 20);
  CHECK(refused("some words") == "is no file of video of a known type");
}

TEST_CASE("What stands behind the last box of MP4 is of no meaning") {
  const std::string file = clip("front.mp4");
  for (const std::string& tail : {std::string("x"), std::string(40, '\0'), std::string("\r\n--boundary--\r\n"),
                                  std::string("0123456789abcdef0123456789abcdef"), std::string(9, '\xFF')}) {
    INFO(tail);
    CHECK(refused(file + tail) == "(accepted)");
  }
  CHECK(refused(file + std::string("\0\0\1\0mdat", 8)).find("ends early: it states ") == 0);
}

TEST_CASE("MP4 whose tables differ says so of the track that they are of") {
  const auto counts = count_frames(patched(clip("front.mp4"), "stsz", 8, 23));
  REQUIRE(counts.ok());
  CHECK(counts->at(1).wrong == "is damaged: its tables count 23 sizes, 24 times and 24 places of frames");
}

TEST_CASE("Boxes and elements that hold each other without end, or more tracks than a file has, are refused") {
  std::string moov;
  for (int i = 0; i < 1200; ++i) {
    const std::string id = Avi::little(static_cast<size_t>(i) << 16);
    moov += std::string("\0\0\0\x24trak\0\0\0\x1Ctkhd", 16) + std::string(12, '\0') + id + std::string(4, '\0');
  }
  const size_t size = moov.size() + 8;
  std::string file;
  for (int shift = 24; shift >= 0; shift -= 8) file.push_back(static_cast<char>(size >> shift));
  CHECK(refused(file + "moov" + moov).find("one track more than the limit") != std::string::npos);
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += std::string("\0\0\0\0mdia", 8);
  CHECK(refused(deep) != "");
}

TEST_CASE("AVI is counted whatever its writer made of sizes and padding") {
  Avi avi;
  const std::string good = avi.of({avi.chunks}, true);
  REQUIRE(held(good, 0) == 20);
  const size_t movi = good.find("movi") - 4;
  const auto with_size = [&](int64_t more) {
    std::string out = good;
    return out.replace(movi, 4, Avi::little(Avi::number(good, movi) + static_cast<size_t>(more)));
  };
  for (const int64_t more : {-8, -4, 4, 8, 16 + 20 * 16 - 8}) {
    INFO("a list of frames " << more << " bytes longer");
    CHECK(held(with_size(more), 0) == 20);
  }
  const auto with = [&](size_t at, const std::string& bytes) {
    std::string out = good;
    out.insert(at, bytes);
    out.replace(4, 4, Avi::little(out.size() - 8));
    if (at > movi) out.replace(movi, 4, Avi::little(Avi::number(good, movi) + bytes.size()));
    return out;
  };
  CHECK(held(with(movi - 4, Avi::chunk("JUNK", "odd").substr(0, 11)), 0) == 20);  // not padded
  CHECK(held(with(movi + 8, Avi::chunk("PAD ", "some") + Avi::chunk("ix00", "12345678")), 0) == 20);
  CHECK(held(with(good.rfind("idx1"), std::string(64, '\0')), 0) == 20);
  CHECK(refused(with(movi + 8, std::string(64, '\0'))).find("is damaged: at byte ") == 0);
}

TEST_CASE("AVI that has fewer frames than it states says so, an unfinished one does not") {
  Avi avi;
  avi.chunks.resize(12);
  std::string file = avi.of({avi.chunks}, false);
  auto counts = count_frames(file);
  REQUIRE(counts.ok());
  CHECK(counts->at(0).wrong == "ends early: it states 20 frames and has 12");
  counts = count_frames(file.replace(4, 4, 4, '\xFF'));
  REQUIRE(counts.ok());
  CHECK(counts->at(0).wrong.empty());
  CHECK(counts->at(0).frames == 12);
}

}  // namespace
}  // namespace troupe
