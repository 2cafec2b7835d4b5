#include "actors/data/index_command.h"

#include <cstdio>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "actors/data/block_cache.h"
#include "actors/data/data_refusals.h"
#include "actors/data/index_builder.h"
#include "actors/data/synthetic_samples.h"
#include "base/config/cache_settings.h"
#include "base/config/job_spec_parser.h"
#include "base/config/scalars.h"
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

Result<SampleIndex> build(const JobSpec& spec, const std::vector<DataSource>& sources, const ModelConfig& config,
                          const Building& building) {
  TROUPE_ASSIGN(auto index, build_sample_index(spec.data, sources, spec.model.path, config, building.run));
  if (!index.bad.empty() && spec.data.on_bad_record == OnBadRecord::kFail)
    return invalid_argument(report(index, spec.data.on_bad_record));
  if (!index.bad.empty()) std::cerr << report(index, spec.data.on_bad_record);
  return index;
}

/// Whether there is anything to learn, and every sample fits the sequence that it would be packed into.
Status check_samples(const JobSpec& spec, const SampleIndex& index) {
  size_t longest = 0;
  int64_t supervised = 0, most = 0;
  for (size_t i = 0; i < index.samples.size(); ++i) {
    const auto& sample = index.samples[i];
    supervised += sample.supervised;
    if (sample.tokens > most) {
      most = sample.tokens;
      longest = i;
    }
  }
  if (index.samples.size() == 0) return {};
  if (supervised == 0)
    return invalid_argument("none of the " + std::to_string(index.samples.size()) +
                            " samples has a supervised token, so nothing would be learned; valid: records with answers");
  if (spec.data.pack_tokens == 0 || most <= spec.data.pack_tokens) return {};
  return invalid_argument("key 'data.pack_tokens': value " + std::to_string(spec.data.pack_tokens) + ", but sample '" +
                          std::string(index.samples[longest].id) + "' has " + std::to_string(most) + " tokens; valid: at least " +
                          std::to_string(most) + ", or a data.max_sample_tokens that leaves it out");
}

/// What evaluation would look at: nothing would read as a loss of 0.
Status check_evaluation(const JobSpec& spec, int64_t samples, int64_t supervised, int64_t all) {
  const bool asked = spec.eval.split > 0 || !spec.eval.sources.empty();
  if (!asked || supervised > 0) return {};
  const std::string tokens = samples > 0 ? " with no supervised token" : "";
  if (!spec.eval.sources.empty())
    return invalid_argument("key 'eval.sources': " + std::to_string(samples) + " samples" + tokens +
                            " are left to evaluate; valid: records with answers");
  return invalid_argument("key 'eval.split': value " + number_text(spec.eval.split) + " holds out " +
                          std::to_string(samples) + " of " + std::to_string(all) + " samples" + tokens +
                          "; valid: a larger fraction, or eval.sources");
}

std::string summary(const SampleIndex& index, int64_t eval_samples, const IndexProgress& looked) {
  int64_t tokens = 0, supervised = 0, images = 0;
  for (const auto& sample : index.samples) {
    tokens += sample.tokens;
    supervised += sample.supervised;
    images += static_cast<int64_t>(sample.images.size());
  }
  const auto good = index.samples.size(), bad = index.bad.size();
  nlohmann::ordered_json json;
  json["samples"] = good;
  json["records"] = index.total_records;
  json["bad"] = bad;
  json["too_long"] = index.total_records - static_cast<int64_t>(good + bad);
  json["tokens"] = tokens;
  json["supervised"] = supervised;
  json["images"] = images;
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
                   : build(spec, spec.data.sources, config, building);
  if (!index.ok()) return index.error();
  const IndexProgress looked = building.last;
  TROUPE_RETURN_IF_ERROR(check_samples(spec, *index));
  int64_t held_out = 0, eval_supervised = 0;
  for (const auto& sample : index->samples) {
    if (!in_eval_split(sample, spec.eval.split)) continue;
    ++held_out;
    eval_supervised += sample.supervised;
  }
  TROUPE_RETURN_IF_ERROR(check_enough_samples(spec, static_cast<int64_t>(index->samples.size()) - held_out, held_out));
  int64_t eval_samples = held_out;
  if (!spec.eval.sources.empty() && !arguments.eval_out.empty()) {
    TROUPE_ASSIGN(const auto eval, build(spec, spec.eval.sources, config, building));
    eval_samples = static_cast<int64_t>(eval.samples.size());
    for (const auto& sample : eval.samples) eval_supervised += sample.supervised;
    TROUPE_RETURN_IF_ERROR(check_evaluation(spec, eval_samples, eval_supervised, eval_samples));
    TROUPE_RETURN_IF_ERROR(eval.write(arguments.eval_out));
  } else if (spec.eval.sources.empty()) {
    TROUPE_RETURN_IF_ERROR(
        check_evaluation(spec, held_out, eval_supervised, static_cast<int64_t>(index->samples.size())));
  }
  TROUPE_RETURN_IF_ERROR(index->write(arguments.out));
  return summary(*index, eval_samples, looked);
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
