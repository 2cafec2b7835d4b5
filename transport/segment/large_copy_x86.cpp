#include <emmintrin.h>

#include <cstdint>
#include <cstring>

#include "transport/segment/large_copy.h"

namespace troupe {
namespace {

/// Of a cache that several cores share, about half.
constexpr size_t kPastCacheFrom = size_t{16} << 20;
constexpr size_t kLine = 64;

/// `to` lies at the beginning of a line; `bytes` are whole lines.
void stream_lines(std::byte* to, const std::byte* from, size_t bytes) {
  for (size_t at = 0; at < bytes; at += kLine) {
    auto* target = reinterpret_cast<__m128i*>(to + at);
    const auto* source = reinterpret_cast<const __m128i*>(from + at);
    const __m128i a = _mm_loadu_si128(source), b = _mm_loadu_si128(source + 1), c = _mm_loadu_si128(source + 2),
                  d = _mm_loadu_si128(source + 3);
    _mm_stream_si128(target, a);
    _mm_stream_si128(target + 1, b);
    _mm_stream_si128(target + 2, c);
    _mm_stream_si128(target + 3, d);
  }
  _mm_sfence();
}

}  // namespace

void copy_to_reader(std::byte* to, const std::byte* from, size_t bytes) {
  if (bytes < kPastCacheFrom) {
    std::memcpy(to, from, bytes);
    return;
  }
  const size_t head = (kLine - reinterpret_cast<uintptr_t>(to) % kLine) % kLine;
  const size_t lines = (bytes - head) / kLine * kLine;
  std::memcpy(to, from, head);
  stream_lines(to + head, from + head, lines);
  std::memcpy(to + head + lines, from + head + lines, bytes - head - lines);
}

}  // namespace troupe
