#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/actors/video/avi.h"
#include "tests/actors/video/clips.h"

// Files of video that are cut off or damaged: none is read as a shorter one.

namespace troupe {
namespace {

using namespace clips;

TEST_CASE("A file that is cut off is refused, behind its header with how far it goes") {
  const std::string front = clip("front.mp4"), back = clip("plain.mp4");
  REQUIRE(front.find("moov") < front.find("mdat"));
  CHECK(refusal(front.substr(0, front.size() - 100)).find("ends ") == 0);
  CHECK(refusal(front.substr(0, front.find("mdat") + 400)).find("ends ") == 0);
  REQUIRE(back.find("mdat") < back.find("moov"));
  CHECK(refusal(back.substr(0, back.find("moov") - 4)).find("cannot be read") == 0);
  CHECK(refusal("RIFF").find("is no file of video") == 0);
}

TEST_CASE("A file that states its length is refused wherever it is cut, between frames too") {
  std::string padded = clip("b.mkv");
  padded.insert(padded.find("\x18\x53\x80\x67"), std::string("\xEC\x83", 2) + "pad");  // a void element
  for (const std::string& whole :
       {clip("b.mkv"), padded, clip("vp9.webm"), clip("hidden.webm"), clip("mpeg4.avi"), clip("plain.avi")}) {
    REQUIRE(refusal(whole) == "(accepted)");
    for (size_t bytes = 64; bytes + 9 < whole.size(); bytes += whole.size() / 40) {
      INFO(bytes << " of " << whole.size() << " bytes");
      CHECK(refusal(whole.substr(0, bytes)).find("ends early: it states ") == 0);
    }
    CHECK(refusal(whole + "more") == "(accepted)");
  }
}

TEST_CASE("A file that does not state its length is read as far as it goes") {
  std::string avi = clip("plain.avi"), mkv = clip("b.mkv");
  avi.replace(4, 4, 4, '\0');
  CHECK(refusal(avi) == "(accepted)");
  const size_t size = mkv.find("\x18\x53\x80\x67") + 4;
  REQUIRE(mkv[size] == 1);  // 8 bytes
  mkv.replace(size + 1, 7, 7, '\xFF');
  CHECK(refusal(mkv) == "(accepted)");
  CHECK(greys(mkv, {23}).ok());
}

TEST_CASE("A file that ends early or is damaged is found out, at the latest when its frames are decoded") {
  const std::string good = clip("mpeg4.avi");
  std::vector<int64_t> all;
  for (int64_t i = 0; i < 20; ++i) all.push_back(i);
  REQUIRE(greys(good, all).ok());
  size_t found = 0;
  for (size_t at = good.find("movi") + 16; at + 64 < good.find("idx1"); at += 97) {
    std::string damaged = good;
    for (size_t i = 0; i < 48; ++i) damaged[at + i] = static_cast<char>(damaged[at + i] ^ 0x6B);
    const auto seen = greys(damaged, all);
    found += !seen.ok();
    if (!seen.ok())
      CHECK((seen.error().code == ErrorCode::kDataLoss || seen.error().code == ErrorCode::kInvalidArgument));
  }
  CHECK(found > 0);
}

TEST_CASE("A file with an edit list that ends before what it shows is refused") {
  const std::string cut = patched(patched(clip("front.mp4"), "elst", 8, 1000), "elst", 12, 10240);  // frames 10 to 19
  CHECK(files()->header(cut)->frames == 10);
  CHECK(refusal(cut.substr(0, cut.size() - 1)).find("ends early: it states ") == 0);
  CHECK(refusal(cut.substr(0, cut.find("mdat") + 700)).find("ends ") == 0);
}

TEST_CASE("A file in parts that is cut off is refused wherever it states more") {
  const std::string parts = clip("parts.mp4");
  std::vector<size_t> ends;  // where nothing says that more comes
  for (size_t at = parts.find("moof"); at != std::string::npos; at = parts.find("moof", at + 1)) ends.push_back(at - 4);
  ends.push_back(parts.rfind("mfra") - 4);
  REQUIRE(ends.size() == 4);
  for (size_t bytes = ends[0] + 1; bytes < parts.size(); ++bytes) {
    if (std::ranges::find(ends, bytes) != ends.end()) continue;
    INFO(bytes << " of " << parts.size() << " bytes");
    CHECK(refusal(parts.substr(0, bytes)) != "(accepted)");
  }
  CHECK(refusal(parts + std::string(24, '\0')) == "(accepted)");
  CHECK(refusal(parts + "no box \x7F\x7F").find("is damaged: at byte " + std::to_string(parts.size())) == 0);
}

/// A segment index for `bytes` of what comes behind it, in front of the first fragment.
std::string with_index(std::string file, uint32_t bytes) {
  std::string index("\0\0\0\x2Csidx\0\0\0\0\0\0\0\1\0\0\0\x0A\0\0\0\0\0\0\0\0\0\0\0\1", 32);
  for (int shift = 24; shift >= 0; shift -= 8) index.push_back(static_cast<char>(bytes >> shift));
  index += std::string("\0\0\0\x18\x90\0\0\0", 8);
  return file.insert(file.find("moof") - 4, index);
}

TEST_CASE("A file in parts with an index is refused when it ends before what that lists") {
  const std::string parts = clip("parts.mp4");
  const size_t first = parts.find("moof") - 4, last = parts.rfind("moof") - 4, end = parts.rfind("mfra") - 4;
  const std::string whole = with_index(parts, static_cast<uint32_t>(end - first));
  CHECK(files()->header(whole)->frames == 24);
  CHECK(refusal(whole.substr(0, 44 + end)) == "(accepted)");
  CHECK(refusal(whole.substr(0, 44 + last)).find("ends early: it states ") == 0);
}

TEST_CASE("MP4 whose tables differ in their number of frames is refused") {
  for (const char* name : {"front.mp4", "plain.mp4", "quick.mov", "turned.mp4"}) {
    INFO(name);
    const std::string good = clip(name);
    const auto frames = static_cast<uint32_t>(files()->header(good)->frames);
    CHECK(refusal(patched(good, "stsz", 8, frames - 1)).find("is damaged: its tables count ") == 0);
    CHECK(refusal(patched(good, "stts", 8, frames + 1)).find("is damaged: its tables count ") == 0);
    CHECK(refusal(patched(good, "stsz", 8, 1U << 24)).find("stands a table with fewer entries") != std::string::npos);
  }
}

TEST_CASE("AVI in several lists is refused wherever it is cut") {
  const Avi avi;
  REQUIRE(avi.chunks.size() == 20);
  const auto middle = avi.chunks.begin() + 12;
  const std::string whole = avi.of({{avi.chunks.begin(), middle}, {middle, avi.chunks.end()}}, false);
  CHECK(files()->header(whole)->frames == 20);
  CHECK(greys(whole, {3, 15}).ok());
  for (size_t bytes = 64; bytes + 9 < whole.size(); bytes += whole.size() / 60) {
    INFO(bytes << " of " << whole.size() << " bytes");
    CHECK(refusal(whole.substr(0, bytes)).find("ends early: it states ") == 0);
  }
  const size_t second = whole.rfind("RIFF");
  CHECK(refusal(whole.substr(0, second)) == "ends early: it states 20 frames and has 12");
}

TEST_CASE("AVI whose index has other frames than the file is refused") {
  const std::string good = clip("mpeg4.avi");
  std::string bad = good;
  bad.replace(good.rfind("idx1") + 4, 4, 4, '\0');
  CHECK(refusal(bad).find("is damaged: ") == 0);
  for (size_t at = good.find("movi") + 4; at < good.rfind("idx1");) {
    const size_t size = Avi::number(good, at + 4);
    bad = good;
    bad[at + 4] = static_cast<char>(bad[at + 4] ^ 0x20);
    CHECK(refusal(bad).find("is damaged: ") == 0);
    at += 8 + size + size % 2;
  }
}

TEST_CASE("Frames of AVI are the right ones behind empty ones, which show the frame before again") {
  Avi avi;
  REQUIRE(avi.chunks[10].starts_with(std::string("\0\0\1\xB0", 4)));
  for (size_t i = avi.chunks.size() - 1; i > 0; --i)
    avi.chunks.insert(avi.chunks.begin() + static_cast<ptrdiff_t>(i), 3, "");
  for (const bool sound : {false, true}) {
    avi.sound = sound;
    const std::string bytes = avi.of({avi.chunks}, true);
    REQUIRE(files()->header(bytes)->frames == 20);
    std::vector<int64_t> all;
    for (int64_t i = 0; i < 20; ++i) all.push_back(i);
    for (const std::vector<int64_t>& numbers : {all, {0}, {9}, {10}, {12}, {3, 19}}) {
      INFO("frame " << numbers.front() << (sound ? ", with sound" : ""));
      const auto seen = greys(bytes, numbers);
      REQUIRE(seen.ok());
      for (size_t i = 0; i < numbers.size(); ++i)
        CHECK(std::abs((*seen)[i] - (16 + 8 * static_cast<int>(numbers[i]))) <= 4);
    }
  }
}

TEST_CASE("A file with two frames at one time is refused") {
  std::string bytes = clip("vp9.webm");
  const size_t second = bytes.find("\xA3", bytes.find("\xA3", bytes.find("\x1F\x43\xB6\x75")) + 20);
  REQUIRE(bytes.substr(second + 2, 3) == std::string("\x81\0\x28", 3));
  bytes[second + 4] = 0;
  CHECK(refusal(bytes).find("has two frames at one time") == 0);
}

TEST_CASE("No stretch of a file that is lost makes it a shorter one") {
  for (const char* name : {"b.mkv", "vp9.webm", "mpeg4.avi", "plain.avi", "parts.mp4"}) {
    const std::string good = clip(name);
    const int64_t frames = files()->header(good)->frames;
    size_t refused = 0;
    for (size_t at = 0; at + 16 < good.size(); at += 3) {
      std::string bad = good;
      bad.replace(at, 16, 16, '\0');
      const auto header = files()->header(bad);
      INFO(name << " at " << at << (header.ok() ? "" : ": " + header.error().message));
      refused += !header.ok();
      if (header.ok()) CHECK(header->frames == frames);
    }
    CHECK(refused > 0);
  }
}

}  // namespace
}  // namespace troupe
