#include "actors/checkpoint/philox.h"

#include <array>
#include <cmath>

namespace troupe::checkpoint {
namespace {

using Block = std::array<uint32_t, 4>;

Block philox(uint64_t key, uint64_t counter) {
  constexpr uint32_t kMultiply0 = 0xD2511F53u, kMultiply1 = 0xCD9E8D57u, kWeyl0 = 0x9E3779B9u, kWeyl1 = 0xBB67AE85u;
  Block x = {static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), 0, 0};
  auto key0 = static_cast<uint32_t>(key), key1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{kMultiply0} * x[0], product1 = uint64_t{kMultiply1} * x[2];
    x = {static_cast<uint32_t>(product1 >> 32) ^ x[1] ^ key0, static_cast<uint32_t>(product1),
         static_cast<uint32_t>(product0 >> 32) ^ x[3] ^ key1, static_cast<uint32_t>(product0)};
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
  return x;
}

/// Two uniform words to two normal numbers (Box and Muller).
void normal_pair(uint32_t a, uint32_t b, float& first, float& second) {
  constexpr double kTwoPi = 6.283185307179586;
  const double u = (static_cast<double>(a) + 1.0) / 4294967297.0;  // in (0, 1): its logarithm is finite
  const double angle = kTwoPi * (static_cast<double>(b) / 4294967296.0), radius = std::sqrt(-2.0 * std::log(u));
  first = static_cast<float>(radius * std::cos(angle));
  second = static_cast<float>(radius * std::sin(angle));
}

}  // namespace

uint64_t stream_key(uint64_t seed, const std::string& name) {
  uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  // The seed passes through one Philox block, so that neighbouring seeds have nothing in common.
  const Block mixed = philox(seed, hash);
  return (uint64_t{mixed[0]} << 32) | mixed[1];
}

void fill_normal(uint64_t key, int64_t begin, int64_t n, float deviation, float* out) {
  std::array<float, 4> normal{};
  int64_t ready = -1;  // the block that `normal` holds
  for (int64_t i = begin; i < begin + n; ++i) {
    if (i / 4 != ready) {
      ready = i / 4;
      const Block block = philox(key, static_cast<uint64_t>(ready));
      normal_pair(block[0], block[1], normal[0], normal[1]);
      normal_pair(block[2], block[3], normal[2], normal[3]);
    }
    out[i - begin] = deviation * normal[static_cast<size_t>(i % 4)];
  }
}

}  // namespace troupe::checkpoint
