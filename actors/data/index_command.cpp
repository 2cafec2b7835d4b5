#include "actors/data/index_command.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "actors/data/block_cache.h"
#include "actors/data/data_refusals.h"
#include "actors/data/index_builder.h"
#include "actors/data/source_doubts.h"
#include "actors/data/synthetic_samples.h"
#include "base/config/cache_settings.h"
#include "base/config/job_spec_parser.h"
#include "base/data/index_progress.h"
#include "base/model/model_config.h"

namespace troupe {
namespace {

constexpr int kRefused = 2;
constexpr size_t kShownBadRecords = 20;

struct Arguments {
  std::string job, out, eval_out;
};

Result<Arguments> read_arguments(int argc, char** argv) {
  Arguments arguments;
  int i = 1;
  if (i < argc && std::string(argv[i]) == "index") ++i;
  for (; i < argc; i += 2) {
    const std::string name = argv[i];
    std::string* value = name == "--job"        ? &arguments.job
                         : name == "--out"      ? &arguments.out
                         : name == "--eval-out" ? &arguments.eval_out
                                                : nullptr;
    if (value == nullptr)
      return invalid_argument("index: option '" + name + "' is not known; --job, --out and --eval-out are");
    if (i + 1 >= argc) return invalid_argument("index: option '" + name + "' needs a path");
    *value = argv[i + 1];
  }
  if (arguments.job.empty() || arguments.out.empty()) return invalid_argument("index: --job and --out are needed");
  return arguments;
}

Result<JobSpec> read_job(const std::string& path) {
  std::ifstream in(path);
  if (!in) return not_found("cannot open " + path);
  std::ostringstream text;
  text << in.rdbuf();
  return parse_job_spec(text.str(), path);
}

/// A cache for the index, and words on stdout about the building of it.
struct Building {
  std::unique_ptr<BlockCache> cache;
  IndexProgress last;
  IndexRun run;
  explicit Building(const JobSpec& spec) {
    run.warn = [](const std::string& text) { std::cout << kWarningLine << text << std::endl; };
    if (!spec.data.synthetic) cache = BlockCache::open(index_cache_settings(process_environment()), run.warn);
    run.cache = cache.get();
    run.progress = [this](const IndexProgress& progress) {
      last = progress;
      std::cout << progress_line(progress) << std::endl;
    };
  }
  Building(const Building&) = delete;
  Building& operator=(const Building&) = delete;
};

/// The report on bad records: where each is and what is wrong, the first ones spelt out.
std::string report(const SampleIndex& index, OnBadRecord policy) {
  std::ostringstream text;
  text << unusable_records(static_cast<int64_t>(index.bad.size()), index.total_records, policy) << ":\n";
  for (size_t i = 0; i < index.bad.size() && i < kShownBadRecords; ++i)
    text << "  " << index.bad[i].to_string() << '\n';
  if (index.bad.size() > kShownBadRecords) text << "  and " << index.bad.size() - kShownBadRecords << " more\n";
  return text.str();
}

/// `key`: where the spec has the sources.
Result<SampleIndex> build(const JobSpec& spec, const char* key, const std::vector<DataSource>& sources,
                          const ModelConfig& config, const Building& building) {
  std::cout << kSourcesLine << key << std::endl;
  TROUPE_ASSIGN(auto index, build_sample_index(spec.data, sources, spec.model.path, config, building.run));
  if (!index.bad.empty() && spec.data.on_bad_record == OnBadRecord::kFail)
    return invalid_argument(report(index, spec.data.on_bad_record));
  if (!index.bad.empty()) std::cerr << report(index, spec.data.on_bad_record);
  return index;
}

std::string summary(const SampleIndex& index, int64_t eval_samples, const IndexProgress& looked) {
  int64_t tokens = 0, supervised = 0, images = 0, videos = 0;
  for (const auto& sample : index.samples) {
    tokens += sample.tokens;
    supervised += sample.supervised;
    images += static_cast<int64_t>(sample.images.size());
    videos += std::count_if(sample.images.begin(), sample.images.end(), [](const auto& i) { return i.is_video(); });
  }
  const auto good = index.samples.size(), bad = index.bad.size();
  nlohmann::ordered_json json;
  json["samples"] = good;
  json["records"] = index.total_records;
  json["bad"] = bad;
  json["too_long"] = index.total_records - static_cast<int64_t>(good + bad);
  json["tokens"] = tokens;
  json["supervised"] = supervised;
  json["images"] = images - videos;
  json["videos"] = videos;
  json["eval_samples"] = eval_samples;
  json["blocks"] = looked.blocks;
  json["cached_blocks"] = looked.cached_blocks;
  json["digest"] = index.digest;
  return json.dump();
}

Result<std::string> run(int argc, char** argv) {
  TROUPE_ASSIGN(const auto arguments, read_arguments(argc, argv));
  TROUPE_ASSIGN(const auto spec, read_job(arguments.job));
  TROUPE_ASSIGN(const auto config, read_model_config(spec.model.path));
  Building building(spec);
  auto index = spec.data.synthetic
                   ? Result<SampleIndex>(synthetic_index(*spec.data.synthetic, config, spec.training.seed))
                   : build(spec, "data.sources", spec.data.sources, config, building);
  if (!index.ok()) return index.error();
  const IndexProgress looked = building.last;
  std::optional<SampleIndex> eval;
  for (const std::string& doubt : shared_doubts(spec.data.sources, spec.eval.sources)) building.run.warn(doubt);
  if (!spec.eval.sources.empty() && !arguments.eval_out.empty()) {
    TROUPE_ASSIGN(eval, build(spec, "eval.sources", spec.eval.sources, config, building));
  }
  const DataCounts counts = count_data(spec, *index, eval ? &*eval : nullptr);
  std::string why;
  for (const std::string& reason : data_refusals(spec, counts)) why += (why.empty() ? "" : "\n") + reason;
  if (!why.empty()) return invalid_argument(why);
  if (eval) TROUPE_RETURN_IF_ERROR(eval->write(arguments.eval_out));
  TROUPE_RETURN_IF_ERROR(index->write(arguments.out));
  return summary(*index, counts.eval_samples, looked);
}

}  // namespace

int index_command(int argc, char** argv) {
  const auto outcome = run(argc, argv);
  if (!outcome.ok()) {
    std::cerr << outcome.error().to_string() << std::endl;
    return kRefused;
  }
  std::cout << *outcome << std::endl;
  return 0;
}

}  // namespace troupe
