#include "actors/check/data_report.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "base/data/batch_plan.h"
#include "base/data/source_weights.h"
#include "base/data/step_balance.h"

namespace troupe {
namespace {

constexpr int64_t kPlannedSteps = 20;

Spread spread_of(std::vector<int64_t> values) {
  Spread s;
  if (values.empty()) return s;
  std::sort(values.begin(), values.end());
  const size_t last = values.size() - 1;
  s.least = values.front();
  s.median = values[last / 2];
  s.high = values[(values.size() * 95 + 99) / 100 - 1];
  s.most = values.back();
  for (int64_t v : values) s.total += v;
  return s;
}

std::vector<LengthBin> bins_of(const std::vector<int64_t>& lengths) {
  std::map<int64_t, int64_t> counts;
  for (int64_t length : lengths) {
    int64_t from = 1;
    while (2 * from <= length) from *= 2;
    ++counts[from];
  }
  std::vector<LengthBin> bins;
  if (counts.empty()) return bins;
  for (int64_t from = counts.begin()->first; from <= counts.rbegin()->first; from *= 2)
    bins.push_back({from, counts[from]});
  return bins;
}

std::vector<SourceRow> rows_of(const std::vector<DataSource>& sources, const SampleIndex& index,
                               const std::vector<int64_t>& usable) {
  std::vector<SourceRow> rows;
  for (const DataSource& source : sources) rows.push_back({source.path, source.weight, 0, 0});
  for (const int64_t s : usable)
    if (const auto from = static_cast<size_t>(index.samples[static_cast<size_t>(s)].source); from < rows.size())
      ++rows[from].samples;
  for (SourceRow& row : rows) row.epoch_samples = epoch_share(row.weight, row.samples).of(row.samples);
  return rows;
}

void plan_steps(const JobSpec& spec, const std::vector<double>& weights, const ModelConfig& config,
                const SampleIndex& index, std::vector<int64_t> usable, DataReport& report) {
  const int64_t samples = report.epoch_samples = epoch_size(index, usable, weights);
  report.global_batch = spec.training.global_batch;
  report.steps = training_steps(spec, samples);
  if (samples == 0) return;
  BatchPlanOptions options = batch_plan_options(spec, config.vision, samples);
  options.source_weights = weights;
  const GroupSpec* vision = spec.group_of_component("vision");
  BatchPlanner planner(index, std::move(usable), options);
  const int64_t planned = std::min(report.steps, kPlannedSteps);
  report.text_imbalance = report.vision_imbalance = 0;
  for (int64_t step = 1; step <= planned; ++step) {
    const StepPlan plan = planner.plan(step);
    const StepBalance balance =
        step_balance(plan, index, config.vision, vision ? vision->mesh : Mesh(), spec.data.pack_tokens);
    report.batch_tokens += plan.tokens;
    report.text_units += plan.text_units();
    report.vision_units += plan.vision_units();
    report.text_imbalance += balance.text_imbalance;
    report.vision_imbalance += balance.vision_imbalance;
    report.pack_fill += balance.pack_fill;
  }
  const auto n = std::max<int64_t>(planned, 1);
  for (int64_t* sum : {&report.batch_tokens, &report.text_units, &report.vision_units}) *sum = (*sum + n / 2) / n;
  for (double* sum : {&report.text_imbalance, &report.vision_imbalance, &report.pack_fill})
    *sum /= static_cast<double>(n);
  report.balance_steps = planned;
  report.epochs = spec.training.epochs
                      ? *spec.training.epochs
                      : static_cast<double>(report.steps * report.global_batch) / static_cast<double>(samples);
}

bool is_digit(const std::string& text, size_t at) {
  return at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) != 0;
}

}  // namespace

std::string reason_kind(const std::string& reason) {
  std::string kind;
  for (size_t i = 0; i < reason.size(); ++i) {
    if (reason[i] == '\'') {
      const size_t end = reason.find('\'', i + 1);
      if (end != std::string::npos) {
        kind += "'...'";
        i = end;
        continue;
      }
    }
    if (reason[i] == '/' && i > 0 && reason[i - 1] == ' ') {
      kind += "'...'";
      i = std::min({reason.find(": ", i), reason.find("; ", i), reason.size()}) - 1;
      continue;
    }
    if (!is_digit(reason, i)) {
      kind += reason[i];
      continue;
    }
    size_t end = i;
    while (is_digit(reason, end)) ++end;
    // MP4 and h264 are names, 64x48 is none.
    const bool in_name =
        i > 0 && std::isalpha(static_cast<unsigned char>(reason[i - 1])) != 0 && !(i > 1 && is_digit(reason, i - 2));
    kind += in_name ? reason.substr(i, end - i) : "N";
    i = end - 1;
  }
  return kind;
}

std::vector<BadGroup> bad_groups(const std::vector<BadRecord>& bad) {
  std::vector<BadGroup> groups;
  std::map<std::string, size_t> at;
  for (size_t i = 0; i < bad.size(); ++i) {
    const std::string kind = reason_kind(bad[i].reason);
    const auto [found, added] = at.emplace(kind, groups.size());
    if (added) groups.push_back({kind, 0, i});
    ++groups[found->second].records;
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const BadGroup& a, const BadGroup& b) { return a.records > b.records; });
  return groups;
}

DataReport make_data_report(const JobSpec& spec, const std::vector<DataSource>& sources, const ModelConfig& config,
                            const SampleIndex& index) {
  DataReport report;
  std::vector<int64_t> tokens, images, patches, usable;
  for (size_t i = 0; i < index.samples.size(); ++i) {
    const SampleView sample = index.samples[i];
    tokens.push_back(sample.tokens);
    report.supervised += sample.supervised;
    report.without_target += sample.supervised == 0;
    report.text_only += sample.images.empty();
    report.at_limit += sample.tokens == spec.data.max_sample_tokens;
    if (!sample.images.empty()) images.push_back(static_cast<int64_t>(sample.images.size()));
    for (const IndexedImage& image : sample.images) {
      patches.push_back(image.patches());
      report.videos += image.is_video();
    }
    if (spec.eval.split > 0 && in_eval_split(sample, spec.eval.split))
      ++report.held_out;
    else
      usable.push_back(static_cast<int64_t>(i));
  }
  report.samples = static_cast<int64_t>(index.samples.size());
  report.bad = static_cast<int64_t>(index.bad.size());
  report.records = std::max(index.total_records, report.samples + report.bad);
  report.too_long = report.records - report.samples - report.bad;
  report.lengths = bins_of(tokens);
  report.tokens = spread_of(std::move(tokens));
  report.images = spread_of(std::move(images));
  report.patches = spread_of(std::move(patches));
  report.groups = bad_groups(index.bad);
  report.sources = rows_of(sources, index, usable);
  plan_steps(spec, source_weights(sources), config, index, std::move(usable), report);
  return report;
}

}  // namespace troupe
