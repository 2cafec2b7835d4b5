#pragma once

#include <cstdint>
#include <string>

/// Random numbers by position: element i of a stream can be had without those before it, so that every layout draws the
/// same weights. Source: Philox4x32-10, "Parallel random numbers: as easy as 1, 2, 3", Salmon et al., SC 2011.
namespace troupe::checkpoint {

/// The key of a named stream.
uint64_t stream_key(uint64_t seed, const std::string& name);

/// Elements [begin, begin + n) of the stream of standard normal numbers of `key`, times `deviation`.
void fill_normal(uint64_t key, int64_t begin, int64_t n, float deviation, float* out);

}  // namespace troupe::checkpoint
