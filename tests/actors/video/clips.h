#pragma once

#include <memory>
#include <string>
#include <vector>

#include "actors/video/video_files.h"
#include "tests/actors/data/fixture.h"

/// Clips for tests. make_clips.py says what is in them: frame i is grey, 16 + 8 * i.
namespace troupe::clips {

inline std::string clip(const std::string& name) {
  return fixture::contents(std::string(TROUPE_SOURCE_DIR) + "/tests/actors/video/clips/" + name);
}

inline const std::unique_ptr<VideoFiles>& files() {
  static const std::unique_ptr<VideoFiles> made = make_video_files();
  return made;
}

/// The grey of each frame, or the error.
inline Result<std::vector<int>> greys(const std::string& bytes, const std::vector<int64_t>& numbers) {
  std::vector<int> out;
  const Status decoded = files()->decode(bytes, numbers, [&](const RgbImage& frame) {
    out.push_back(frame.pixels[frame.pixels.size() / 2]);
    return Status();
  });
  if (!decoded.ok()) return decoded.error();
  return out;
}

inline std::string refusal(const std::string& bytes) {
  const auto header = files()->header(bytes);
  return header.ok() ? "(accepted)" : header.error().message;
}

/// `bytes` with the big-endian `value` at `offset` behind the name of a box.
inline std::string patched(std::string bytes, const std::string& box, size_t offset, uint32_t value, size_t width = 4) {
  const size_t at = bytes.find(box) + box.size() + offset;
  for (size_t i = 0; i < width; ++i) bytes[at + i] = static_cast<char>(value >> (8 * (width - 1 - i)));
  return bytes;
}

}  // namespace troupe::clips
