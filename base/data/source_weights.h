#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/config/job_spec.h"
#include "base/data/sample_index.h"

/// How often samples come in a data epoch: pure functions of the index, the weights, the seed and the epoch's number,
/// so that the order survives restarts and does not depend on the layout.
namespace troupe {

/// Weights of sources in their order; empty: each is 1.
std::vector<double> source_weights(const std::vector<DataSource>& sources);
/// The same for messages: "1, 0.5"; empty when each is 1.
std::string source_weights_text(const std::vector<DataSource>& sources);

/// What a weight makes of a source's samples in an epoch: each comes `whole` times, and `extra` of them once more.
struct EpochShare {
  int64_t whole = 1, extra = 0;
  int64_t of(int64_t samples) const { return whole * samples + extra; }
};
EpochShare epoch_share(double weight, int64_t samples);

/// Samples of a data epoch, the same for every epoch. `usable`: dataset sample numbers, ascending.
int64_t epoch_size(const SampleIndex& index, const std::vector<int64_t>& usable, const std::vector<double>& weights);

/// The samples of data epoch `epoch` (from 0) before any shuffle: first all that come at least once, in the order of
/// `usable`, then all that come at least twice, and so on. Which ones come once more is the next stretch of a fixed
/// permutation of the source's samples by `seed`, so that over the epochs each comes about as often. Cost: one pass
/// over `usable` for each whole time of the greatest weight.
std::vector<int64_t> epoch_samples(const SampleIndex& index, const std::vector<int64_t>& usable,
                                   const std::vector<double>& weights, uint64_t seed, int64_t epoch);

}  // namespace troupe
