#include "actors/bench/feed_bench.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "actors/bench/bench_failure.h"
#include "actors/bench/local_control.h"
#include "actors/data/index_builder.h"
#include "actors/host/job_context.h"
#include "actors/host/step_feed.h"
#include "base/config/job_spec_parser.h"

namespace troupe {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::ordered_json;

constexpr std::chrono::minutes kPatience{10};
constexpr char kResolved[] = "/job.yaml:";  // where a job without a run folder has its spec

struct FeedFlags {
  std::string job;
  int threads = 2;
  int64_t steps = 0;
  bool json = false;
};

/// A file that goes with its owner.
struct IndexFile {
  std::string path =
      (std::filesystem::temp_directory_path() / ("troupe-feed-" + std::to_string(getpid()) + ".index")).string();
  ~IndexFile() {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
  }
};

Result<JobSpec> feed_spec(const FeedFlags& flags) {
  TROUPE_ASSIGN(JobSpec spec, load_job_spec(flags.job));
  if (spec.data.synthetic)
    return spec.places.located(
        invalid_argument("key 'data.synthetic': there is nothing to read or decode; valid: data.sources"));
  spec.data.workers = flags.threads;
  if (flags.steps > 0) {
    spec.training.steps = flags.steps;
    spec.training.epochs.reset();
  }
  // Nothing is trained: what happens at certain steps need not lie within those of the bench.
  spec.training.schedule = {};
  spec.debug = {};
  spec.profile = {};
  return spec;
}

/// A complaint about the spec as resolved, which lies in no file, made one about the job's file.
Error as_written(const JobSpec& spec, Error error) {
  std::istringstream lines(error.message);
  std::string message;
  for (std::string line; std::getline(lines, line);) {
    const size_t key = line.starts_with(kResolved) ? line.find("key '") : std::string::npos;
    message += (message.empty() ? "" : "\n") + (key == std::string::npos ? line : line.substr(key));
  }
  error.message = message;
  return spec.places.located(std::move(error));
}

/// Everything on one slot: the first rank of each group, alone in its group.
HostAssignment feed_assignment(JobSpec spec, const std::string& index_path) {
  for (GroupSpec& group : spec.groups) group.mesh = Mesh{};
  HostAssignment assignment;
  assignment.job_id = "bench";
  assignment.mode = JobMode::kTrain;
  assignment.generation = Generation(1);
  assignment.job_yaml = job_spec_to_yaml(spec);
  assignment.index_path = index_path;
  assignment.slots = {{"local", 0, "cpu", spec.data.workers, "127.0.0.1"}};
  assignment.group_slots.assign(spec.groups.size(), {0});
  return assignment;
}

Result<ordered_json> measure(const FeedFlags& flags) {
  TROUPE_ASSIGN(const JobSpec spec, feed_spec(flags));
  TROUPE_ASSIGN(const ModelConfig config, read_model_config(spec.model.path));
  TROUPE_ASSIGN(const SampleIndex index, build_sample_index(spec.data, spec.data.sources, spec.model.path, config, {}));
  if (!index.bad.empty() && spec.data.on_bad_record == OnBadRecord::kFail)
    return invalid_argument(index.bad.front().to_string());
  const IndexFile file;
  TROUPE_RETURN_IF_ERROR(index.write(file.path));
  LocalControl control(feed_assignment(spec, file.path));
  const auto made = make_job_context(control);
  if (!made.ok()) return as_written(spec, made.error());
  const auto& job = *made;
  const auto begin = Clock::now();
  int64_t images = 0, patches = 0, tokens = 0;
  StepFeed feed(*job, {{job->encoder, 0}, {job->decoder, 0}}, 1, job->steps, 2);
  for (int64_t step = 1; step <= job->steps; ++step) {
    TROUPE_ASSIGN(const StepInput input, feed.take(kPatience));
    images += static_cast<int64_t>(input.plan.images.size());
    tokens += input.plan.tokens;
    for (const VisionUnitInput& unit : input.vision[0]) patches += unit.patches.size(0);
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return ordered_json{{"threads", flags.threads},
                      {"steps", job->steps},
                      {"images", images},
                      {"patches", patches},
                      {"tokens", tokens},
                      {"seconds", seconds},
                      {"images_per_s", static_cast<double>(images) / seconds},
                      {"patches_per_s", static_cast<double>(patches) / seconds},
                      {"tokens_per_s", static_cast<double>(tokens) / seconds}};
}

}  // namespace

int feed_bench_command(int argc, char** argv) {
  FeedFlags flags;
  CLI::App app(
      "Times how fast the records of a job become the input of its steps: read, decoded, cut into patches, tokenized.\n"
      "Example: troupe bench feed job.yaml --threads 2 --json",
      "troupe bench feed");
  app.add_option("job", flags.job, "job spec with data.sources")->required();
  app.add_option("--threads", flags.threads, "threads that decode (data.workers)")->check(CLI::Range(1, 1024));
  app.add_option("--steps", flags.steps, "steps; default: what the job spec says")->check(CLI::Range(1, 1 << 30));
  app.add_flag("--json", flags.json, "one line of JSON");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  const auto result = measure(flags);
  if (!result.ok()) return bench_failure("feed", result.error(), flags.json);
  std::printf("%s\n", result->dump(flags.json ? -1 : 2).c_str());
  return 0;
}

}  // namespace troupe
