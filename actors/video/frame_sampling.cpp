#include "actors/video/frame_sampling.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace troupe {
namespace {

/// Value `i` of torch.arange(0, end, step) in fp32 with `count` values on x86-64: whole blocks of sixteen are computed
/// by eights, from a first value that is rounded; what is left by itself.
float spaced(int64_t i, int64_t count, double step) {
  constexpr int64_t kBlock = 16, kVector = 8;
  if (i >= count - count % kBlock) return static_cast<float>(step * static_cast<double>(i));
  const int64_t within = i % kVector;
  const auto first = static_cast<float>(step * static_cast<double>(i - within));
  return static_cast<float>(static_cast<double>(first) + static_cast<double>(within) * step);
}

}  // namespace

Result<SampledFrames> sample_frames(int64_t frames, double native_fps, const FrameSampling& sampling,
                                    int64_t temporal_patch) {
  const auto whole = [&](double count) {
    return static_cast<int64_t>(std::floor(count / static_cast<double>(temporal_patch))) * temporal_patch;
  };
  const auto total = static_cast<double>(frames);
  const int64_t most = whole(static_cast<double>(std::min(sampling.max_frames, frames)));
  double wanted = total / native_fps * sampling.fps;
  wanted = std::min(std::max(wanted, static_cast<double>(sampling.min_frames)), static_cast<double>(most));
  const int64_t taken = whole(wanted);
  if (taken < temporal_patch)
    return invalid_argument("has " + std::to_string(frames) + (frames == 1 ? " frame" : " frames") + ", of which " +
                            std::to_string(taken) + " would be taken; valid: at least " +
                            std::to_string(temporal_patch));
  SampledFrames out;
  const double step = total / static_cast<double>(taken);
  const auto count = static_cast<int64_t>(std::ceil(total / step));  // may be one more than `taken`
  for (int64_t i = 0; i < count; ++i)
    if (const auto number = static_cast<int64_t>(spaced(i, count, step)); number < frames)
      out.numbers.push_back(number);
  out.fps = static_cast<double>(out.numbers.size()) / total * native_fps;
  return out;
}

}  // namespace troupe
