#pragma once

#include <cstdint>
#include <utility>
#include <vector>

/// Draws that need nothing but the numbers that name them: the same on every rank, and after every restart.
namespace troupe {

/// SplitMix64 (Steele, Lea, Flood 2014).
inline uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

/// A permutation drawn from `stream`.
template <typename T>
void shuffle(std::vector<T>& list, uint64_t stream) {
  for (size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[mix(stream + static_cast<uint64_t>(i - 1)) % i]);
}

}  // namespace troupe
