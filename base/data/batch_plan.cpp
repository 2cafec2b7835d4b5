#include "base/data/batch_plan.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "base/mesh/mesh.h"

namespace troupe {
namespace {

/// SplitMix64 (Steele, Lea, Flood 2014): a counter-based stream, so that an epoch's order needs nothing but (seed, epoch).
uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

/// Longest first onto the least loaded lane; ties go to the lower lane and the earlier image. Order within a lane is reading order.
std::vector<VisionUnit> spread(const std::vector<StepImage>& all, std::vector<int32_t> images, int lanes) {
  std::vector<VisionUnit> units(static_cast<size_t>(lanes));
  std::stable_sort(images.begin(), images.end(), [&](int32_t a, int32_t b) { return all[a].grid.patches() > all[b].grid.patches(); });
  std::vector<int64_t> load(static_cast<size_t>(lanes), 0);
  for (int32_t i : images) {
    const auto lane = std::min_element(load.begin(), load.end()) - load.begin();
    load[static_cast<size_t>(lane)] += all[i].grid.patches();
    units[static_cast<size_t>(lane)].images.push_back(i);
  }
  for (VisionUnit& u : units) std::sort(u.images.begin(), u.images.end());
  return units;
}

}  // namespace

BatchPlanOptions batch_plan_options(const JobSpec& spec, int64_t merge, int64_t samples) {
  BatchPlanOptions o;
  o.seed = spec.training.seed;
  o.shuffle = spec.data.shuffle;
  o.global_batch = spec.training.global_batch;
  o.microbatch_samples = spec.training.microbatch_samples;
  o.microbatch_tokens = spec.training.microbatch_tokens;
  o.pack_tokens = spec.data.pack_tokens;
  o.merge = merge;
  if (const GroupSpec* text = spec.group_of_component("text")) o.text_lanes = text->mesh.size(Axis::kDp);
  if (const GroupSpec* vision = spec.group_of_component("vision")) {
    o.vision_lanes = vision->mesh.size(Axis::kDp);
    o.unit_images = vision->unit_images;
  }
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
      for (int32_t i : lane[static_cast<size_t>(v)].images) fed.insert(unit_of_sample[static_cast<size_t>(images[static_cast<size_t>(i)].sample)]);
    result.emplace_back(fed.begin(), fed.end());
  }
  return result;
}

BatchPlanner::BatchPlanner(const SampleIndex& index, std::vector<int64_t> usable, const BatchPlanOptions& options)
    : index_(index), usable_(std::move(usable)), options_(options) {
  TROUPE_CHECK(!usable_.empty());
}

const std::vector<int64_t>& BatchPlanner::epoch_order(int64_t epoch) {
  const auto slot = static_cast<size_t>(epoch & 1);
  if (cached_epoch_[slot] != epoch) {
    std::vector<int64_t> order(usable_.size());
    std::iota(order.begin(), order.end(), int64_t{0});
    if (options_.shuffle) {
      const uint64_t stream = mix(mix(options_.seed) ^ static_cast<uint64_t>(epoch));
      for (size_t i = order.size() - 1; i > 0; --i) {
        const uint64_t draw = mix(stream + static_cast<uint64_t>(i));
        std::swap(order[i], order[draw % (i + 1)]);
      }
    }
    for (int64_t& o : order) o = usable_[static_cast<size_t>(o)];
    cached_[slot] = std::move(order);
    cached_epoch_[slot] = epoch;
  }
  return cached_[slot];
}

StepPlan BatchPlanner::plan(int64_t step) {
  const auto n = static_cast<int64_t>(usable_.size());
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

void BatchPlanner::form_text_units(StepPlan& plan) const {
  const auto tokens_of = [&](int32_t s) { return int64_t{index_.samples[static_cast<size_t>(plan.samples[static_cast<size_t>(s)])].tokens}; };
  const auto n = static_cast<int64_t>(plan.samples.size());
  size_t most = 1;
  for (int lane = 0; lane < options_.text_lanes; ++lane) {
    // Sequences: a sample each, or first-fit packs of at most pack_tokens.
    std::vector<std::vector<int32_t>> sequences;
    std::vector<int64_t> filled;
    for (int64_t s = cut_begin(n, options_.text_lanes, lane); s < cut_begin(n, options_.text_lanes, lane + 1); ++s) {
      const auto sample = static_cast<int32_t>(s);
      size_t pack = 0;
      while (pack < sequences.size() && filled[pack] + tokens_of(sample) > options_.pack_tokens) ++pack;
      if (pack == sequences.size()) {
        sequences.emplace_back();
        filled.push_back(0);
      }
      sequences[pack].push_back(sample);
      filled[pack] += tokens_of(sample);
    }
    std::vector<TextUnit> units;
    int64_t held = 0, unit_tokens = 0;
    for (size_t q = 0; q < sequences.size(); ++q) {
      const bool full = options_.microbatch_tokens > 0 ? unit_tokens + filled[q] > options_.microbatch_tokens
                                                       : held >= options_.microbatch_samples;
      if (units.empty() || full) {
        units.emplace_back();
        held = unit_tokens = 0;
      }
      units.back().samples.insert(units.back().samples.end(), sequences[q].begin(), sequences[q].end());
      ++held;
      unit_tokens += filled[q];
    }
    most = std::max(most, units.size());
    plan.text.push_back(std::move(units));
  }
  for (auto& lane : plan.text) lane.resize(most);
}

void BatchPlanner::form_vision_units(StepPlan& plan) const {
  std::vector<std::vector<int32_t>> parcels;  // images of each unit over all lanes
  if (options_.unit_images > 0) {
    const size_t size = static_cast<size_t>(options_.unit_images) * static_cast<size_t>(options_.vision_lanes);
    for (size_t i = 0; i < plan.images.size(); ++i) {
      if (i % size == 0) parcels.emplace_back();
      parcels.back().push_back(static_cast<int32_t>(i));
    }
  } else {
    parcels.resize(static_cast<size_t>(plan.text_units()));
    std::vector<size_t> unit_of_sample(plan.samples.size(), 0);
    for (const auto& lane : plan.text)
      for (size_t u = 0; u < lane.size(); ++u)
        for (int32_t s : lane[u].samples) unit_of_sample[static_cast<size_t>(s)] = u;
    for (size_t i = 0; i < plan.images.size(); ++i)
      parcels[unit_of_sample[static_cast<size_t>(plan.images[i].sample)]].push_back(static_cast<int32_t>(i));
    std::erase_if(parcels, [](const auto& p) { return p.empty(); });
  }
  plan.vision.assign(static_cast<size_t>(options_.vision_lanes), {});
  for (auto& parcel : parcels) {
    std::vector<VisionUnit> units = spread(plan.images, std::move(parcel), options_.vision_lanes);
    for (size_t lane = 0; lane < units.size(); ++lane) plan.vision[lane].push_back(std::move(units[lane]));
  }
}

}  // namespace troupe
