#include "base/config/scalars.h"

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <sstream>
#include <utility>

namespace troupe {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::optional<int64_t> parse_factor(const std::string& text) {
  size_t at = !text.empty() && (text[0] == '-' || text[0] == '+') ? 1 : 0;
  if (at == text.size()) return std::nullopt;
  if (text[at] == '0' && at + 1 < text.size()) return std::nullopt;
  for (size_t i = at; i < text.size(); ++i)
    if (!is_digit(text[i])) return std::nullopt;
  int64_t value = 0;
  const char* begin = text.data() + (text[0] == '+' ? 1 : 0);
  const auto [end, ec] = std::from_chars(begin, text.data() + text.size(), value);
  if (ec != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t"), end = text.find_last_not_of(" \t");
  return begin == std::string::npos ? "" : text.substr(begin, end - begin + 1);
}

/// True for digits with at most one point and an optional exponent.
bool is_decimal(const std::string& text) {
  size_t i = !text.empty() && (text[0] == '-' || text[0] == '+') ? 1 : 0;
  size_t digits = 0;
  bool point = false;
  for (; i < text.size() && (is_digit(text[i]) || (text[i] == '.' && !point)); ++i) {
    point = point || text[i] == '.';
    digits += is_digit(text[i]) ? 1 : 0;
  }
  if (digits == 0) return false;
  if (i == text.size()) return true;
  if (text[i] != 'e' && text[i] != 'E') return false;
  ++i;
  if (i < text.size() && (text[i] == '-' || text[i] == '+')) ++i;
  if (i == text.size()) return false;
  for (; i < text.size(); ++i)
    if (!is_digit(text[i])) return false;
  return true;
}

}  // namespace

std::optional<int64_t> parse_integer(const std::string& text) {
  if (text.empty() || text.back() == '*') return std::nullopt;
  int64_t product = 1;
  std::stringstream in(text);
  for (std::string factor; std::getline(in, factor, '*');) {
    const auto value = parse_factor(trimmed(factor));
    if (!value || __builtin_mul_overflow(product, *value, &product)) return std::nullopt;
  }
  return product;
}

std::optional<double> parse_number(const std::string& text) {
  if (!is_decimal(text)) return std::nullopt;
  double value = 0;
  const char* begin = text.data() + (text[0] == '+' ? 1 : 0);
  const auto [end, ec] = std::from_chars(begin, text.data() + text.size(), value);
  if (end != text.data() + text.size()) return std::nullopt;
  // Overflow and underflow: neither is the number that was meant.
  if (ec == std::errc::result_out_of_range) return std::nullopt;
  if (ec != std::errc() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<PixelSize> parse_pixel_size(const std::string& text) {
  const size_t at = text.find('x');
  if (at == std::string::npos) return std::nullopt;
  const auto width = parse_factor(text.substr(0, at)), height = parse_factor(text.substr(at + 1));
  if (!width || !height || *width <= 0 || *height <= 0 || *width > 1'000'000 || *height > 1'000'000)
    return std::nullopt;
  return PixelSize{*width, *height};
}

std::optional<std::chrono::milliseconds> parse_duration(const std::string& text) {
  static constexpr std::pair<const char*, double> kUnits[] = {
      {"ms", 1.0}, {"s", 1e3}, {"m", 6e4}, {"h", 3.6e6}, {"", 1e3}};
  for (const auto& [unit, milliseconds] : kUnits) {
    const std::string suffix = unit;
    if (text.size() <= suffix.size() || text.compare(text.size() - suffix.size(), suffix.size(), suffix) != 0) continue;
    const auto value = parse_number(text.substr(0, text.size() - suffix.size()));
    if (value && *value >= 0 && *value * milliseconds < 1e15)
      return std::chrono::milliseconds(static_cast<int64_t>(*value * milliseconds + 0.5));
  }
  return std::nullopt;
}

std::string number_text(double value) {
  std::array<char, 64> buffer{};
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return std::string(buffer.data(), result.ptr);
}

std::string quoted_text(const std::string& text) {
  std::string out = "\"";
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '$' && i + 1 < text.size() && text[i + 1] == '{') {
      out += "$$";
    } else if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20) {
      std::array<char, 8> escape{};
      std::snprintf(escape.data(), escape.size(), "\\x%02x", static_cast<unsigned>(c));
      out += escape.data();
    } else {
      out += c;
    }
  }
  return out + "\"";
}

}  // namespace troupe
