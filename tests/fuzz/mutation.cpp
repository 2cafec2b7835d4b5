#include "tests/fuzz/mutation.h"

#include <algorithm>
#include <array>

namespace troupe::fuzz {
namespace {

constexpr size_t kMostBytes = size_t{256} << 10;
constexpr std::array<uint64_t, 12> kOddNumbers{
    0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0x7FFFFFFFFFFFFFFF, 0xFFFFFFFF, ~0ULL};
constexpr char kOddBytes[] = "\"\\[]{},:\n\0\xFF\xC0\x80 90-e";  // its last zero too

}  // namespace

uint64_t Mutator::draw() {  // SplitMix64
  uint64_t x = state_ += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

std::string Mutator::next() {
  std::string bytes = seeds_[below(seeds_.size())];
  const size_t faults = size_t{1} << below(5);
  for (size_t i = 0; i < faults + below(5); ++i) damage(bytes);
  bytes.resize(std::min(bytes.size(), kMostBytes));
  return bytes;
}

/// A number of one to eight bytes, in either order.
void Mutator::set_number(std::string& bytes) {
  const size_t width = size_t{1} << below(4), at = below(bytes.size());
  const uint64_t number = kOddNumbers[below(kOddNumbers.size())] + below(3) - 1;
  const bool high_first = below(2) == 0;
  for (size_t i = 0; i < width && at + i < bytes.size(); ++i)
    bytes[at + i] = static_cast<char>(number >> (8 * (high_first ? width - 1 - i : i)));
}

void Mutator::damage(std::string& bytes) {
  if (bytes.empty()) bytes = seeds_[below(seeds_.size())];
  if (bytes.empty()) return;
  // Most readers decide by the first bytes: half of all faults are there.
  const size_t near = below(2) == 0 ? std::min<size_t>(bytes.size(), 600) : bytes.size();
  const size_t at = below(near), length = std::min(bytes.size() - at, size_t{1} << below(12));
  switch (below(9)) {
    case 0:
    case 1:
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
      return;
    case 2:
      bytes[at] = kOddBytes[below(sizeof(kOddBytes))];
      return;
    case 3:
      return set_number(bytes);
    case 4:
      bytes.erase(at, length);
      return;
    case 5:
      bytes.insert(at, bytes.substr(below(bytes.size()), length));
      return;
    case 6:
      bytes.insert(at, 1, kOddBytes[below(sizeof(kOddBytes))]);
      return;
    case 7: {
      const std::string& other = seeds_[below(seeds_.size())];
      bytes.replace(at, length, other.substr(below(other.size()), length));
      return;
    }
    default:
      if (below(4) == 0) bytes.resize(at);
  }
}

}  // namespace troupe::fuzz
