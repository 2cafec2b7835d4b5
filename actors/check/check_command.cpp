#include "actors/check/check_command.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string_view>

#include "actors/check/data_report.h"
#include "actors/check/preview.h"
#include "actors/data/data_refusals.h"
#include "actors/data/index_builder.h"
#include "actors/data/source_doubts.h"
#include "actors/data/synthetic_samples.h"
#include "base/amount_text.h"
#include "base/config/cache_settings.h"
#include "base/config/job_spec_parser.h"
#include "base/config/key_places.h"
#include "base/error_json.h"
#include "base/printable_text.h"
#include "base/regular_file.h"

namespace troupe {
namespace {

constexpr int kRefused = 2;
constexpr int kHtmlSamples = 24;  // shown on the page when --show does not say

struct Arguments {
  std::string job, plan, html;
  int show = 0;
  bool json = false;
};

Result<Arguments> read_arguments(int argc, char** argv) {
  Arguments a;
  for (int i = 2; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--json") {
      a.json = true;
      continue;
    }
    if (name != "--job" && name != "--plan" && name != "--html" && name != "--show")
      return invalid_argument("option '" + name + "' is not known; --job, --plan, --show, --html and --json are");
    if (++i >= argc) return invalid_argument("option '" + name + "' needs a value");
    const std::string value = argv[i];
    if (name == "--show") {
      if (value.empty() || value.size() > 6 || value.find_first_not_of("0123456789") != std::string::npos)
        return invalid_argument("--show '" + value + "' is no number of samples; valid: 0 to 999999");
      a.show = std::stoi(value);
    } else {
      (name == "--job" ? a.job : name == "--plan" ? a.plan : a.html) = value;
    }
  }
  if (a.job.empty()) return invalid_argument("--job is needed");
  return a;
}

void say(const std::string& text) { std::cerr << text << std::endl; }

/// What is known of a job's data: their index, and readers for previews (null with synthetic data).
struct Data {
  JobSpec spec;
  ModelConfig config;
  SampleIndex index, eval;
  IndexProgress looked;  // at data.sources
  std::unique_ptr<SampleReader> reader;
  nlohmann::json slots = nlohmann::json::array();
  std::vector<std::string> warnings;  // of the plan, and of looking at the records
};

/// The job, its model's shapes, and what the plan says of slots and of where the job's keys were written.
Result<Data> read_job(const Arguments& a) {
  Data d;
  TROUPE_ASSIGN(const std::string text, read_text_file(a.job));
  TROUPE_ASSIGN(d.spec, parse_job_spec(text, a.job));
  TROUPE_ASSIGN(d.config, read_model_config(d.spec.model.path));
  if (!a.plan.empty()) {
    TROUPE_ASSIGN(const std::string plan, read_text_file(a.plan));
    const auto parsed = nlohmann::json::parse(plan, nullptr, false);
    if (!parsed.is_object() || !parsed.contains("slots")) return invalid_argument(a.plan + " is no plan");
    d.slots = parsed.at("slots");
    d.warnings = parsed.value("warnings", std::vector<std::string>());
    if (parsed.contains("places"))
      d.spec.places = KeyPlaces(parsed.at("places").get<std::map<std::string, std::string>>());
  }
  return d;
}

Status read_records(Data& d) {
  IndexRun run;
  run.warn = [&d](const std::string& text) { d.warnings.push_back(text); };
  IndexProgress last;
  run.progress = [&last](const IndexProgress& progress) {
    last = progress;
    if (progress.done_bytes < progress.total_bytes) say(progress_text(progress));
  };
  std::unique_ptr<BlockCache> cache;
  if (!d.spec.data.synthetic) cache = BlockCache::open(index_cache_settings(process_environment()), run.warn);
  run.cache = cache.get();
  if (d.spec.data.synthetic) {
    d.index = synthetic_index(*d.spec.data.synthetic, d.config, d.spec.training.seed);
    d.index.total_records = static_cast<int64_t>(d.index.samples.size());
  } else {
    TROUPE_ASSIGN(d.index, build_sample_index(d.spec.data, d.spec.data.sources, d.spec.model.path, d.config, run));
    d.looked = last;
    TROUPE_ASSIGN(d.reader, SampleReader::create(d.spec.data, d.spec.data.sources, d.spec.model.path, d.config));
  }
  for (const std::string& doubt : shared_doubts(d.spec.data.sources, d.spec.eval.sources)) run.warn(doubt);
  if (!d.spec.eval.sources.empty()) {
    TROUPE_ASSIGN(d.eval, build_sample_index(d.spec.data, d.spec.eval.sources, d.spec.model.path, d.config, run));
  }
  return {};
}

Result<std::vector<std::pair<int, Preview>>> previews_of(const Data& d, int count) {
  std::vector<std::pair<int, Preview>> out;
  for (size_t i = 0; d.reader && i < d.index.samples.size() && static_cast<int>(out.size()) < count; ++i) {
    const SampleView sample = d.index.samples[i];
    TROUPE_ASSIGN(auto preview, preview_sample(*d.reader, sample, d.config.vision.merge_size));
    out.emplace_back(sample.source, std::move(preview));
  }
  return out;
}

std::string memory_text(const nlohmann::json& slots) {
  std::string text;
  for (const auto& slot : slots)
    text += "  " + slot.value("node", "") + ":" + std::to_string(slot.value("index", 0)) + " holds " +
            bytes_text(slot.value("bytes", int64_t{0})) + " of weights, gradients and optimizer state\n";
  return text.empty() ? text : "memory, activations not counted\n" + text;
}

void say_warnings(const Data& d) {
  for (const std::string& warning : d.warnings) say("warning: " + printable(warning, /*keep_lines=*/false));
}

/// Whether a job can use the data, and what speaks against it: for the page.
std::string verdict_text(const Data& d, const std::vector<std::string>& why) {
  std::string text = why.empty() ? "can be trained\n" : "cannot be trained as it is\n";
  for (const std::string& reason : why) text += "  " + reason + "\n";
  for (const std::string& warning : d.warnings) text += "  warning: " + warning + "\n";
  return text;
}

Status write_page(const Arguments& a, const Data& d, const std::string& report) {
  TROUPE_ASSIGN(const auto previews, previews_of(d, a.show > 0 ? a.show : kHtmlSamples));
  std::vector<std::string> bad;
  for (const SampleIndex* index : {&d.index, &d.eval})
    for (const BadRecord& b : index->bad) bad.push_back(b.to_string());
  TROUPE_ASSIGN(const std::string page, html_page("troupe check " + d.spec.name, report, bad, previews, d.reader.get(),
                                                  d.config.vision.merge_size));
  std::ofstream out(a.html, std::ios::binary);
  out << page;
  out.close();
  return out ? Status() : invalid_argument("--html " + a.html + " cannot be written: " + std::strerror(errno));
}

Result<int> run(int argc, char** argv) {
  TROUPE_ASSIGN(const Arguments a, read_arguments(argc, argv));
  TROUPE_ASSIGN(Data d, read_job(a));
  if (const Status s = read_records(d); !s.ok()) {
    say_warnings(d);
    return d.spec.places.located(s.error());
  }
  const DataReport report = make_data_report(d.spec, d.spec.data.sources, d.config, d.index);
  const bool has_eval = !d.spec.eval.sources.empty();
  std::vector<std::string> why = data_refusals(d.spec, count_data(d.spec, d.index, has_eval ? &d.eval : nullptr));
  for (std::string& reason : why) reason = d.spec.places.located(invalid_argument(reason)).message;
  const std::string text = report_text(report) + memory_text(d.slots);
  TROUPE_ASSIGN(const auto previews, previews_of(d, a.show));
  if (!a.html.empty()) TROUPE_RETURN_IF_ERROR(write_page(a, d, verdict_text(d, why) + text));
  if (a.json) {
    auto j = report_json(report, d.index);
    j["index"] = {{"blocks", d.looked.blocks}, {"cached_blocks", d.looked.cached_blocks}};
    j["memory"] = d.slots;
    if (has_eval) j["eval"] = report_json(make_data_report(d.spec, d.spec.eval.sources, d.config, d.eval), d.eval);
    j["shown"] = nlohmann::json::array();
    for (const auto& [source, preview] : previews)
      j["shown"].push_back(preview_json(preview, d.config.vision.merge_size));
    j["usable"] = why.empty();
    j["refused"] = why;
    j["warnings"] = d.warnings;
    std::cout << j.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << std::endl;
  } else {
    std::cout << printable(bad_records_text(d.index) + bad_records_text(d.eval), /*keep_lines=*/true);
    for (const auto& [source, preview] : previews)
      std::cout << preview_text(preview, d.config.vision.merge_size, isatty(STDOUT_FILENO) == 1);
    std::cout << printable(text, /*keep_lines=*/true) << std::flush;
    say_warnings(d);
    for (const std::string& reason : why)
      std::cerr << "troupe check: " << printable(reason, /*keep_lines=*/true) << std::endl;
  }
  return why.empty() ? 0 : kRefused;
}

}  // namespace

int check_command(int argc, char** argv) {
  const auto outcome = run(argc, argv);
  if (outcome.ok()) return *outcome;
  if (std::find(argv + 2, argv + argc, std::string_view("--json")) != argv + argc)
    std::cout << error_json(outcome.error(), kRefused) << std::endl;
  std::cerr << "troupe check: " << printable(outcome.error().to_string(), /*keep_lines=*/true) << std::endl;
  return kRefused;
}

}  // namespace troupe
