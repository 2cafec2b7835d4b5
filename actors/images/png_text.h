#pragma once

#include <string>
#include <string_view>

namespace troupe::codecs {

/// A chunk of a PNG.
struct PngChunk {
  std::string_view type, body;
};

/// The key of a chunk tEXt, zTXt or iTXt; empty for another.
std::string_view png_text_key(const PngChunk& chunk);

/// The text of such a chunk, inflated; empty when it is not understood or holds more than 2^20 bytes.
std::string png_text(const PngChunk& chunk);

/// The bytes that ImageMagick writes as hex digits behind three lines of a head; empty when they are something else.
std::string raw_profile(std::string_view text);

}  // namespace troupe::codecs
