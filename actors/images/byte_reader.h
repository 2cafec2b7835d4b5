#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

/// Bounds-checked reading of numbers in a file: past the end everything is zero.
namespace troupe::bytes {

inline uint32_t at(std::string_view s, size_t i) { return i < s.size() ? static_cast<unsigned char>(s[i]) : 0u; }
inline uint32_t be16(std::string_view s, size_t i) { return at(s, i) << 8 | at(s, i + 1); }
inline uint32_t be32(std::string_view s, size_t i) { return be16(s, i) << 16 | be16(s, i + 2); }
inline uint64_t be64(std::string_view s, size_t i) { return uint64_t{be32(s, i)} << 32 | be32(s, i + 4); }
inline uint32_t le16(std::string_view s, size_t i) { return at(s, i) | at(s, i + 1) << 8; }
inline uint32_t le24(std::string_view s, size_t i) { return le16(s, i) | at(s, i + 2) << 16; }
inline uint32_t le32(std::string_view s, size_t i) { return le16(s, i) | le16(s, i + 2) << 16; }
/// Up to `size` bytes from `from`; shorter, or empty, where the file ends.
inline std::string_view part(std::string_view s, size_t from, size_t size) {
  return from >= s.size() ? std::string_view() : s.substr(from, size);
}

/// Numbers of a file that states its byte order.
struct Ordered {
  std::string_view data;
  bool little = true;
  uint32_t u16(size_t i) const { return little ? le16(data, i) : be16(data, i); }
  uint32_t u32(size_t i) const { return little ? le32(data, i) : be32(data, i); }
  uint64_t u64(size_t i) const {
    const uint64_t first = u32(i), second = u32(i + 4);
    return little ? first | second << 32 : first << 32 | second;
  }
};

}  // namespace troupe::bytes
