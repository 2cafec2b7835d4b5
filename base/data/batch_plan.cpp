#include "base/data/batch_plan.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <set>

#include "base/data/draw.h"
#include "base/data/source_weights.h"
#include "base/mesh/mesh.h"

namespace troupe {
namespace {

/// Longest first, each item onto the lane that has least so far and fewer than `most` items; ties go to the lower lane
/// and the earlier item. Items of a lane are ascending. Source: Graham, Bounds on Multiprocessing Timing Anomalies
/// (1969).
std::vector<std::vector<int32_t>> spread(const std::vector<double>& costs, int lanes, size_t most) {
  std::vector<int32_t> order(costs.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return costs[static_cast<size_t>(a)] > costs[static_cast<size_t>(b)]; });
  std::vector<std::vector<int32_t>> items(static_cast<size_t>(lanes));
  std::vector<double> load(static_cast<size_t>(lanes), 0);
  for (int32_t item : order) {
    size_t best = load.size();
    for (size_t lane = 0; lane < load.size(); ++lane)
      if (items[lane].size() < most && (best == load.size() || load[lane] < load[best])) best = lane;
    TROUPE_CHECK(best < load.size());
    load[best] += costs[static_cast<size_t>(item)];
    items[best].push_back(item);
  }
  for (auto& lane : items) std::sort(lane.begin(), lane.end());
  return items;
}

}  // namespace

double frame_cost(const VisionConfig& v) {
  const auto d = [](int64_t x) { return static_cast<double>(x); };
  const double full = d(static_cast<int64_t>(v.full_attention_blocks.size())), window = d(v.window_size / v.patch_size);
  const double alone = d(v.depth) * 2 * (4 * d(v.hidden) * d(v.hidden) + 3 * d(v.hidden) * d(v.intermediate)) +
                       (d(v.depth) - full) * 4 * window * window * d(v.hidden);
  return alone > 0 ? full * 4 * d(v.hidden) / alone : 0;
}

double image_cost(const IndexedImage& grid, double frame_cost) {
  return static_cast<double>(grid.patches()) *
         (1 + frame_cost * static_cast<double>(grid.h) * static_cast<double>(grid.w));
}

BatchPlanOptions batch_plan_options(const JobSpec& spec, const VisionConfig& config, int64_t samples) {
  BatchPlanOptions o;
  o.seed = spec.training.seed;
  o.shuffle = spec.data.shuffle;
  o.global_batch = spec.training.global_batch;
  o.microbatch_samples = spec.training.microbatch_samples;
  o.microbatch_tokens = spec.training.microbatch_tokens;
  o.pack_tokens = spec.data.pack_tokens;
  o.balance = spec.data.balance;
  o.sort_window = spec.data.sort_window;
  o.merge = config.merge_size;
  o.frame_cost = frame_cost(config);
  if (const GroupSpec* text = spec.group_of_component("text")) o.text_lanes = text->mesh.size(Axis::kDp);
  if (const GroupSpec* vision = spec.group_of_component("vision")) {
    o.vision_lanes = vision->mesh.size(Axis::kDp);
    o.unit_images = vision->unit_images;
  }
  o.source_weights = source_weights(spec.data.sources);
  if (spec.training.epochs) o.total_samples = std::llround(*spec.training.epochs * static_cast<double>(samples));
  return o;
}

int64_t training_steps(const JobSpec& spec, int64_t samples) {
  if (spec.training.steps) return *spec.training.steps;
  const int64_t total = std::llround(spec.training.epochs.value_or(1.0) * static_cast<double>(samples));
  return (total + spec.training.global_batch - 1) / spec.training.global_batch;
}

std::vector<std::vector<int>> StepPlan::feeds() const {
  std::vector<int> unit_of_sample(samples.size(), 0);
  for (const auto& lane : text)
    for (size_t u = 0; u < lane.size(); ++u)
      for (int32_t s : lane[u].samples) unit_of_sample[static_cast<size_t>(s)] = static_cast<int>(u);
  std::vector<std::vector<int>> result;
  for (int v = 0; v < vision_units(); ++v) {
    std::set<int> fed;
    for (const auto& lane : vision)
      for (int32_t i : lane[static_cast<size_t>(v)].images)
        fed.insert(unit_of_sample[static_cast<size_t>(images[static_cast<size_t>(i)].sample)]);
    result.emplace_back(fed.begin(), fed.end());
  }
  return result;
}

BatchPlanner::BatchPlanner(const SampleIndex& index, std::vector<int64_t> usable, const BatchPlanOptions& options)
    : index_(index),
      usable_(std::move(usable)),
      options_(options),
      epoch_size_(epoch_size(index_, usable_, options_.source_weights)) {
  TROUPE_CHECK(epoch_size_ > 0);
}

const std::vector<int64_t>& BatchPlanner::epoch_order(int64_t epoch) {
  const auto slot = static_cast<size_t>(epoch & 1);
  if (cached_epoch_[slot] != epoch) {
    std::vector<int64_t> order = epoch_samples(index_, usable_, options_.source_weights, options_.seed, epoch);
    const uint64_t stream = mix(mix(options_.seed) ^ static_cast<uint64_t>(epoch));
    if (options_.shuffle) shuffle(order, stream);
    if (options_.sort_window > 0) sort_windows(order, mix(stream));
    cached_[slot] = std::move(order);
    cached_epoch_[slot] = epoch;
  }
  return cached_[slot];
}

StepPlan BatchPlanner::plan(int64_t step) {
  const int64_t n = epoch_size_;
  const int64_t begin = (step - 1) * options_.global_batch;
  int64_t end = begin + options_.global_batch;
  if (options_.total_samples >= 0) end = std::min(end, options_.total_samples);
  std::vector<int64_t> samples;
  for (int64_t at = begin; at < end; ++at) samples.push_back(epoch_order(at / n)[static_cast<size_t>(at % n)]);
  StepPlan result = plan_samples(step, std::move(samples));
  result.data_epoch = static_cast<double>(std::max(begin, end)) / static_cast<double>(n);
  return result;
}

StepPlan BatchPlanner::plan_samples(int64_t step, std::vector<int64_t> samples) const {
  StepPlan plan;
  plan.step = step;
  plan.samples = std::move(samples);
  for (size_t s = 0; s < plan.samples.size(); ++s) {
    const SampleView sample = index_.samples[static_cast<size_t>(plan.samples[s])];
    plan.supervised += sample.supervised;
    plan.tokens += sample.tokens;
    for (size_t i = 0; i < sample.images.size(); ++i) {
      plan.images.push_back({static_cast<int32_t>(s), static_cast<int32_t>(i), plan.rows, sample.images[i]});
      plan.rows += sample.images[i].tokens(options_.merge);
    }
  }
  form_text_units(plan);
  form_vision_units(plan);
  return plan;
}

StepPlan BatchPlanner::without(const StepPlan& plan, const std::vector<int64_t>& samples) const {
  std::vector<int64_t> rest;
  std::copy_if(plan.samples.begin(), plan.samples.end(), std::back_inserter(rest),
               [&](int64_t s) { return !std::binary_search(samples.begin(), samples.end(), s); });
  const auto left_out = static_cast<int64_t>(plan.samples.size() - rest.size());
  StepPlan result = plan_samples(plan.step, std::move(rest));
  result.data_epoch = plan.data_epoch;
  result.left_out = plan.left_out + left_out;
  return result;
}

/// Within each window the samples are sorted by tokens, the longest first, and cut into batches, which then come in a
/// drawn order (or, without shuffle, as they are).
void BatchPlanner::sort_windows(std::vector<int64_t>& order, uint64_t stream) const {
  const auto tokens = [&](int64_t sample) { return index_.samples[static_cast<size_t>(sample)].tokens; };
  const auto size = static_cast<size_t>(options_.sort_window * options_.global_batch),
             batch = static_cast<size_t>(options_.global_batch);
  for (size_t begin = 0; begin < order.size(); begin += size) {
    std::vector<int64_t> window(order.begin() + static_cast<ptrdiff_t>(begin),
                                order.begin() + static_cast<ptrdiff_t>(std::min(begin + size, order.size())));
    std::stable_sort(window.begin(), window.end(), [&](int64_t a, int64_t b) { return tokens(a) > tokens(b); });
    std::vector<size_t> batches((window.size() + batch - 1) / batch);
    std::iota(batches.begin(), batches.end(), size_t{0});
    const size_t whole = window.size() / batch;  // a part of a batch stays last
    for (size_t i = whole; options_.shuffle && i > 1; --i)
      std::swap(batches[i - 1], batches[mix(stream + begin + i) % i]);
    size_t to = begin;
    for (size_t b : batches)
      for (size_t i = b * batch; i < std::min((b + 1) * batch, window.size()); ++i) order[to++] = window[i];
  }
}

int64_t BatchPlanner::tokens_of(const StepPlan& plan, int32_t sample) const {
  return index_.samples[static_cast<size_t>(plan.samples[static_cast<size_t>(sample)])].tokens;
}

std::vector<std::vector<int32_t>> BatchPlanner::text_lanes(const StepPlan& plan) const {
  const size_t n = plan.samples.size();
  const auto count = static_cast<size_t>(options_.text_lanes);
  if (options_.balance) {
    std::vector<double> costs(n);
    for (size_t s = 0; s < n; ++s) costs[s] = static_cast<double>(tokens_of(plan, static_cast<int32_t>(s)));
    // Units of a number of samples: lanes with as many samples have as many units, all full.
    const bool by_samples = options_.pack_tokens == 0 && options_.microbatch_tokens == 0;
    return spread(costs, options_.text_lanes, by_samples ? (n + count - 1) / count : n);
  }
  std::vector<std::vector<int32_t>> lanes(count);
  for (size_t lane = 0; lane < count; ++lane) {
    const auto parts = static_cast<int64_t>(count), number = static_cast<int64_t>(lane), all = static_cast<int64_t>(n);
    for (int64_t s = cut_begin(all, parts, number); s < cut_begin(all, parts, number + 1); ++s)
      lanes[lane].push_back(static_cast<int32_t>(s));
  }
  return lanes;
}

std::vector<std::vector<int32_t>> BatchPlanner::sequences(const StepPlan& plan,
                                                          const std::vector<int32_t>& samples) const {
  // First fit, the longest first, over all samples of the lane: the step's batch is the window that packing looks ahead
  // in, since what belongs to a batch must not depend on how it is packed.
  std::vector<int32_t> order = samples;
  if (options_.pack_tokens > 0)
    std::stable_sort(order.begin(), order.end(),
                     [&](int32_t a, int32_t b) { return tokens_of(plan, a) > tokens_of(plan, b); });
  std::vector<std::vector<int32_t>> packs;
  std::vector<int64_t> filled;
  for (int32_t sample : order) {
    const int64_t tokens = tokens_of(plan, sample);
    size_t pack = options_.pack_tokens > 0 ? 0 : packs.size();
    while (pack < packs.size() && filled[pack] + tokens > options_.pack_tokens) ++pack;
    if (pack == packs.size()) {
      packs.emplace_back();
      filled.push_back(0);
    }
    packs[pack].push_back(sample);
    filled[pack] += tokens;
  }
  for (auto& pack : packs) std::sort(pack.begin(), pack.end());
  std::sort(packs.begin(), packs.end());
  return packs;
}

void BatchPlanner::form_text_units(StepPlan& plan) const {
  size_t most = 1;
  for (const std::vector<int32_t>& samples : text_lanes(plan)) {
    std::vector<TextUnit> units;
    int64_t held = 0, unit_tokens = 0;
    for (const std::vector<int32_t>& sequence : sequences(plan, samples)) {
      int64_t tokens = 0;
      for (int32_t s : sequence) tokens += tokens_of(plan, s);
      const bool full = options_.microbatch_tokens > 0 ? unit_tokens + tokens > options_.microbatch_tokens
                                                       : held >= options_.microbatch_samples;
      if (units.empty() || full) {
        units.emplace_back();
        held = unit_tokens = 0;
      }
      units.back().samples.insert(units.back().samples.end(), sequence.begin(), sequence.end());
      ++units.back().sequences;
      ++held;
      unit_tokens += tokens;
    }
    most = std::max(most, units.size());
    plan.text.push_back(std::move(units));
  }
  for (auto& lane : plan.text) lane.resize(most);
}

void BatchPlanner::form_vision_units(StepPlan& plan) const {
  // Images come in the order of the text units that need them.
  std::vector<size_t> unit_of_sample(plan.samples.size(), 0);
  for (const auto& lane : plan.text)
    for (size_t u = 0; u < lane.size(); ++u)
      for (int32_t s : lane[u].samples) unit_of_sample[static_cast<size_t>(s)] = u;
  const auto text_unit = [&](int32_t i) {
    return unit_of_sample[static_cast<size_t>(plan.images[static_cast<size_t>(i)].sample)];
  };
  std::vector<int32_t> order(plan.images.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return text_unit(a) < text_unit(b); });

  // Lanes by cost over the whole batch, whatever the text lanes are; without balance one after the other.
  const auto lanes = static_cast<size_t>(options_.vision_lanes);
  std::vector<size_t> lane_of(order.size());
  for (size_t k = 0; k < order.size(); ++k) lane_of[static_cast<size_t>(order[k])] = k % lanes;
  if (options_.balance) {
    std::vector<double> costs;
    for (const StepImage& image : plan.images) costs.push_back(image_cost(image.grid, options_.frame_cost));
    const auto spread_images = spread(costs, options_.vision_lanes, costs.size());
    for (size_t lane = 0; lane < lanes; ++lane)
      for (int32_t i : spread_images[lane]) lane_of[static_cast<size_t>(i)] = lane;
  }

  // Units: the images of one text microbatch over all lanes, or so many of each lane.
  plan.vision.assign(lanes, {});
  std::vector<size_t> held(lanes, 0);
  size_t units = 0, last_text_unit = 0;
  for (int32_t i : order) {
    const size_t lane = lane_of[static_cast<size_t>(i)];
    size_t unit = 0;
    if (options_.unit_images > 0) {
      unit = held[lane]++ / static_cast<size_t>(options_.unit_images);
    } else {
      unit = units == 0 ? 0 : units - 1 + (text_unit(i) == last_text_unit ? 0 : 1);
      last_text_unit = text_unit(i);
    }
    units = std::max(units, unit + 1);
    if (plan.vision[lane].size() <= unit) plan.vision[lane].resize(unit + 1);
    plan.vision[lane][unit].images.push_back(i);
  }
  for (auto& lane : plan.vision) {
    lane.resize(units);
    for (VisionUnit& unit : lane) std::sort(unit.images.begin(), unit.images.end());
  }
}

}  // namespace troupe
