#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "actors/check/data_report.h"
#include "base/config/scalars.h"

namespace troupe {
namespace {

constexpr size_t kShownBadRecords = 20;
constexpr int64_t kBarWidth = 40;

[[gnu::format(printf, 2, 3)]] void add(std::string& text, const char* format, ...) {
  char line[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof(line), format, arguments);
  va_end(arguments);
  text += line;
}

long long number(int64_t n) { return static_cast<long long>(n); }

void add_spread(std::string& text, const char* name, const Spread& s, const char* unit) {
  add(text, "  %-18s least %lld, median %lld, 95 of 100 up to %lld, most %lld; %lld %s\n", name, number(s.least),
      number(s.median), number(s.high), number(s.most), number(s.total), unit);
}

nlohmann::ordered_json spread_json(const Spread& s) {
  return {{"least", s.least}, {"median", s.median}, {"p95", s.high}, {"most", s.most}, {"total", s.total}};
}

}  // namespace

std::string bad_records_text(const SampleIndex& index) {
  std::string text;
  if (index.bad.empty()) return text;
  const auto kinds = bad_groups(index.bad);
  add(text, "%zu of %lld records cannot be used:\n", index.bad.size(), number(index.total_records));
  if (kinds.size() < index.bad.size())
    for (const BadGroup& kind : kinds) {
      const BadRecord& first = index.bad[kind.first];
      text += "  " + std::to_string(kind.records) + " x " + kind.reason +
              (kind.first < kShownBadRecords ? "" : ", first at " + first.file + ":" + std::to_string(first.line)) +
              "\n";
    }
  for (size_t i = 0; i < index.bad.size() && i < kShownBadRecords; ++i) text += "  " + index.bad[i].to_string() + "\n";
  if (index.bad.size() > kShownBadRecords) add(text, "  and %zu more\n", index.bad.size() - kShownBadRecords);
  return text;
}

std::string report_text(const DataReport& r) {
  std::string text;
  add(text, "records\n  %lld read, %lld samples, %lld bad, %lld too long and left out\n", number(r.records),
      number(r.samples), number(r.bad), number(r.too_long));
  add(text, "  %lld text only, %lld without a supervised token, %lld held out, %lld at data.max_sample_tokens\n",
      number(r.text_only), number(r.without_target), number(r.held_out), number(r.at_limit));
  if (!r.sources.empty()) text += "sources\n";
  for (const SourceRow& row : r.sources) {
    text += "  " + row.path;
    add(text, ": %lld samples, weight %s, %lld in a pass\n", number(row.samples), number_text(row.weight).c_str(),
        number(row.epoch_samples));
  }
  add(text, "  %lld samples in a pass over the data\n", number(r.epoch_samples));
  text += "lengths\n";
  add_spread(text, "tokens of a sample", r.tokens, "in all");
  add(text, "  %-18s %lld in all\n", "supervised", number(r.supervised));
  add_spread(text, "images, if any", r.images, "in all");
  if (r.videos > 0) add(text, "  %-18s %lld in all, counted as images here\n", "videos", number(r.videos));
  add_spread(text, "patches of an image", r.patches, "in all");
  int64_t most = 1;
  for (const LengthBin& bin : r.lengths) most = std::max(most, bin.samples);
  for (const LengthBin& bin : r.lengths)
    add(text, "  %8lld to %-8lld %8lld %s\n", number(bin.from), number(2 * bin.from - 1), number(bin.samples),
        std::string(static_cast<size_t>((bin.samples * kBarWidth + most - 1) / most), '#').c_str());
  add(text, "training\n  %lld steps of %lld samples, %.2f passes over the data\n", number(r.steps),
      number(r.global_batch), r.epochs);
  add(text, "  a step has about %lld tokens in %lld text units a lane and %lld vision units, the mean of %lld steps\n",
      number(r.batch_tokens), number(r.text_units), number(r.vision_units), number(r.balance_steps));
  add(text, "  busiest over mean of the first %lld steps: text lanes %.3f, vision ranks %.3f\n",
      number(r.balance_steps), r.text_imbalance, r.vision_imbalance);
  if (r.pack_fill > 0) add(text, "  packs are filled to %.1f %%\n", 100 * r.pack_fill);
  return text;
}

nlohmann::ordered_json report_json(const DataReport& r, const SampleIndex& index) {
  nlohmann::ordered_json j;
  j["records"] = r.records;
  j["samples"] = r.samples;
  j["bad"] = r.bad;
  j["too_long"] = r.too_long;
  j["at_limit"] = r.at_limit;
  j["text_only"] = r.text_only;
  j["without_target"] = r.without_target;
  j["held_out"] = r.held_out;
  j["supervised"] = r.supervised;
  j["tokens"] = spread_json(r.tokens);
  j["images"] = spread_json(r.images);
  j["videos"] = r.videos;
  j["patches"] = spread_json(r.patches);
  j["sources"] = nlohmann::ordered_json::array();
  for (const SourceRow& row : r.sources)
    j["sources"].push_back(
        {{"path", row.path}, {"weight", row.weight}, {"samples", row.samples}, {"epoch_samples", row.epoch_samples}});
  j["epoch_samples"] = r.epoch_samples;
  j["lengths"] = nlohmann::ordered_json::array();
  for (const LengthBin& bin : r.lengths) j["lengths"].push_back({{"from", bin.from}, {"samples", bin.samples}});
  j["training"] = {{"steps", r.steps},
                   {"global_batch", r.global_batch},
                   {"epochs", r.epochs},
                   {"batch_tokens", r.batch_tokens},
                   {"text_units", r.text_units},
                   {"vision_units", r.vision_units},
                   {"text_imbalance", r.text_imbalance},
                   {"vision_imbalance", r.vision_imbalance},
                   {"pack_fill", r.pack_fill}};
  j["bad_kinds"] = nlohmann::ordered_json::array();
  for (const BadGroup& group : r.groups)
    j["bad_kinds"].push_back({{"reason", group.reason}, {"records", group.records}});
  j["bad_records"] = nlohmann::ordered_json::array();
  for (const BadRecord& bad : index.bad)
    j["bad_records"].push_back({{"file", bad.file}, {"line", bad.line}, {"id", bad.id}, {"reason", bad.reason}});
  return j;
}

}  // namespace troupe
