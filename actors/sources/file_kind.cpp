#include "actors/sources/file_kind.h"

#include <array>
#include <utility>

namespace troupe {
namespace {

using Sign = std::pair<std::string_view, std::string_view>;

constexpr std::array<Sign, 4> kCompressions{{
    {"\x1F\x8B", "gzip"},
    {"\x28\xB5\x2F\xFD", "zstd"},
    {std::string_view("\xFD"
                      "7zXZ\0",
                      6),
     "xz"},
    {"BZh", "bzip2"},
}};

constexpr std::array<Sign, 8> kKinds{{
    {std::string_view("\xFF\xFE\0\0", 4), "UTF-32 text"},
    {std::string_view("\0\0\xFE\xFF", 4), "UTF-32 text"},
    {"\xFF\xFE", "UTF-16 text"},
    {"\xFE\xFF", "UTF-16 text"},
    {"PK\x03\x04", "a zip archive"},
    {"PARE", "an encrypted Parquet file"},
    {"ARROW1", "an Arrow file"},
    {"\x89HDF\r\n\x1A\n", "an HDF5 file"},
}};

/// Text of two bytes a character has a zero beside each letter of ASCII, with a mark at its begin or without.
bool is_wide_text(std::string_view bytes) {
  constexpr std::string_view kFirst = "{[ \t\r\n";
  if (bytes.size() < 2) return false;
  return (bytes[0] == '\0' && kFirst.find(bytes[1]) != std::string_view::npos) ||
         (bytes[1] == '\0' && kFirst.find(bytes[0]) != std::string_view::npos);
}

}  // namespace

std::string_view compression_of(std::string_view bytes) {
  for (const auto& [sign, name] : kCompressions)
    if (bytes.starts_with(sign)) return name;
  return {};
}

std::string foreign_kind(std::string_view bytes) {
  if (const auto name = compression_of(bytes); !name.empty()) return std::string(name) + "-compressed";
  for (const auto& [sign, name] : kKinds)
    if (bytes.starts_with(sign)) return std::string(name);
  return is_wide_text(bytes) ? "UTF-16 text" : "";
}

}  // namespace troupe
