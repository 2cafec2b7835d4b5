#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

/// The grammar of numbers in specs: stricter than YAML 1.1, so that nothing is read as another number than the one that
/// was meant.
namespace troupe {

/// A decimal integer or a product of them ("4*28*28"). No value on leading zeros (octal in YAML 1.1), hexadecimal,
/// underscores, fractions, and numbers beyond 64 bits.
std::optional<int64_t> parse_integer(const std::string& text);

/// A decimal number, with or without fraction and exponent ("1e-5", "2.0e-6", ".5"). No value on infinities, NaN and
/// overflow.
std::optional<double> parse_number(const std::string& text);

/// "448x448": width and height in pixels, both positive.
struct PixelSize {
  int64_t width = 0, height = 0;
};
std::optional<PixelSize> parse_pixel_size(const std::string& text);

/// "500ms", "30s", "2m", "1h" or a plain number of seconds. No value on anything else, negative ones included.
std::optional<std::chrono::milliseconds> parse_duration(const std::string& text);

/// The shortest text that parse_number reads back as the same value.
std::string number_text(double value);

/// Text in double quotes, as YAML reads it back; "${" is escaped so that it is not taken for a variable.
std::string quoted_text(const std::string& text);

}  // namespace troupe
