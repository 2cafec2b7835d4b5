#include "base/data/source_weights.h"

#include <algorithm>
#include <cmath>

#include "base/config/scalars.h"
#include "base/data/draw.h"

namespace troupe {
namespace {

/// Positions in `usable` of each source's samples.
std::vector<std::vector<size_t>> by_source(const SampleIndex& index, const std::vector<int64_t>& usable,
                                           size_t sources) {
  std::vector<std::vector<size_t>> places(sources);
  for (size_t i = 0; i < usable.size(); ++i)
    places[static_cast<size_t>(index.samples[static_cast<size_t>(usable[i])].source)].push_back(i);
  return places;
}

}  // namespace

std::vector<double> source_weights(const std::vector<DataSource>& sources) {
  std::vector<double> weights;
  for (const auto& source : sources) weights.push_back(source.weight);
  if (std::all_of(weights.begin(), weights.end(), [](double w) { return w == 1; })) weights.clear();
  return weights;
}

std::string source_weights_text(const std::vector<DataSource>& sources) {
  std::string text;
  for (const double weight : source_weights(sources)) text += (text.empty() ? "" : ", ") + number_text(weight);
  return text;
}

EpochShare epoch_share(double weight, int64_t samples) {
  const double whole = std::floor(weight);
  return {static_cast<int64_t>(whole), std::llround((weight - whole) * static_cast<double>(samples))};
}

int64_t epoch_size(const SampleIndex& index, const std::vector<int64_t>& usable, const std::vector<double>& weights) {
  if (weights.empty()) return static_cast<int64_t>(usable.size());
  std::vector<int64_t> samples(weights.size(), 0);
  for (const int64_t s : usable) ++samples[static_cast<size_t>(index.samples[static_cast<size_t>(s)].source)];
  int64_t size = 0;
  for (size_t i = 0; i < samples.size(); ++i) size += epoch_share(weights[i], samples[i]).of(samples[i]);
  return size;
}

std::vector<int64_t> epoch_samples(const SampleIndex& index, const std::vector<int64_t>& usable,
                                   const std::vector<double>& weights, uint64_t seed, int64_t epoch) {
  if (weights.empty()) return usable;
  std::vector<int64_t> times(usable.size(), 0);
  int64_t most = 0;
  auto places = by_source(index, usable, weights.size());
  for (size_t s = 0; s < places.size(); ++s) {
    const auto n = static_cast<int64_t>(places[s].size());
    const EpochShare share = epoch_share(weights[s], n);
    for (const size_t i : places[s]) times[i] = share.whole;
    most = std::max(most, share.whole + (share.extra > 0 ? 1 : 0));
    if (share.extra == 0) continue;
    shuffle(places[s], mix(mix(seed) + static_cast<uint64_t>(s) + 1));
    const int64_t begin = epoch % n * share.extra % n;
    for (int64_t i = 0; i < share.extra; ++i) ++times[places[s][static_cast<size_t>((begin + i) % n)]];
  }
  std::vector<int64_t> samples;
  for (int64_t round = 0; round < most; ++round)
    for (size_t i = 0; i < usable.size(); ++i)
      if (times[i] > round) samples.push_back(usable[i]);
  return samples;
}

}  // namespace troupe
