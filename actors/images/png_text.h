#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace troupe::codecs {

/// A text that a chunk tEXt, zTXt or iTXt of a PNG holds, inflated. Nothing when the chunk is of another type, is not
/// understood, or holds more than 2^20 bytes. Cost: nothing is inflated but texts of a key that `is_wanted`.
struct PngText {
  std::string key, text;
};
std::optional<PngText> png_text(std::string_view type, std::string_view body, bool (*is_wanted)(std::string_view key));

/// The bytes that ImageMagick writes as hex digits behind three lines of a head; nothing when they are something else.
std::string raw_profile(std::string_view text);

}  // namespace troupe::codecs
