#include "cli/bench_dispatch.h"

#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <future>

#include "base/config/job_spec_parser.h"
#include "cli/embedded.h"
#include "cli/exit_codes.h"
#include "cli/planning.h"
#include "cli/signals.h"

namespace troupe::cli {
namespace fs = std::filesystem;
using nlohmann::ordered_json;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;
namespace {

constexpr milliseconds kSample{50};
constexpr std::chrono::minutes kJobTimeout{5};

struct Flags {
  std::string hosts = "8+8";
  int vision = 0, text = 0;
  int64_t steps = 20000;
  bool json = false;
};

/// Shapes small enough to cost nothing; a picture of 28 x 28 pixels is one merged token, so one row crosses in a step.
constexpr char kConfig[] =
    R"({"model_type": "qwen2_5_vl", "architectures": ["Qwen2_5_VLForConditionalGeneration"], "hidden_size": 512, "num_hidden_layers": 1, "num_attention_heads": 64,
 "num_key_value_heads": 64, "intermediate_size": 64, "vocab_size": 128, "rms_norm_eps": 1e-6, "rope_theta": 10000.0,
 "max_position_embeddings": 512, "tie_word_embeddings": false, "image_token_id": 120, "video_token_id": 121, "vision_start_token_id": 122,
 "vision_end_token_id": 123, "bos_token_id": 124, "eos_token_id": 125, "rope_scaling": {"type": "mrope", "mrope_section": [2, 1, 1]},
 "vision_config": {"depth": 1, "hidden_size": 64, "num_heads": 1, "intermediate_size": 64, "out_hidden_size": 512, "patch_size": 14,
 "spatial_merge_size": 2, "temporal_patch_size": 2, "window_size": 112, "tokens_per_second": 2, "fullatt_block_indexes": [0], "in_channels": 3}})";

std::string job_text(const Flags& flags, const std::string& model) {
  return "name: bench-dispatch\nmodel: {path: " + model +
         ", init: random, dtype: fp32}\ngroups:\n  vision: {components: [vision, merger], mesh: {dp: " +
         std::to_string(flags.vision) + "}}\n  text: {components: [text], mesh: {tp: " + std::to_string(flags.text) +
         "}}\nplacement: disjoint\ndevice: cpu\nthreads: 1\ndata: {synthetic: {images: 1, pixels: 28x28, text_tokens: "
         "8, samples: 64}}\n"
         "training: {steps: " +
         std::to_string(flags.steps) + ", global_batch: 1}\ncheckpoint: {export: never}\nlogging: {every: 1000000}\n";
}

/// How far the job was when, and what this process (driver and worker) had spent.
struct Sample {
  int64_t step = 0;
  Clock::time_point at;
  double spent = 0;
};

/// Watches a job until it ends; samples while steps run.
Result<std::vector<Sample>> watch(driver::Driver& driver, const std::string& job, std::future<driver::JobUpdate>& ended,
                                  int64_t steps) {
  std::vector<Sample> samples;
  const auto deadline = Clock::now() + kJobTimeout;
  while (ended.wait_for(kSample) != std::future_status::ready) {
    if (wait_signal(milliseconds(0)) != 0) static_cast<void>(driver.cancel(job, true));
    if (Clock::now() > deadline) {
      static_cast<void>(driver.cancel(job));
      return deadline_exceeded("the job of no-ops did not end within 5 minutes");
    }
    TROUPE_ASSIGN(const std::string text, driver.status_json(job));
    const int64_t step = nlohmann::json::parse(text).value("step", int64_t{0});
    // A fifth warms up; reports come in batches, so the last few are left out as well.
    if (step >= steps / 5 && step < steps) samples.push_back({step, Clock::now(), processor_seconds(RUSAGE_SELF)});
  }
  const driver::JobUpdate end = ended.get();
  if (end.exit_code != kExitDone) return internal_error("the job of no-ops ended with " + end.result_json);
  return samples;
}

Result<ordered_json> bench_job(Embedded& embedded, const Flags& flags, bool rows) {
  const std::string folder = embedded.folder->path() + (rows ? "/rows" : "/noop");
  fs::create_directories(folder + "/model");
  std::ofstream(folder + "/model/config.json") << kConfig;
  std::ofstream(folder + "/job.yaml") << job_text(flags, folder + "/model");
  TROUPE_ASSIGN(JobSpec spec, load_job_spec(folder + "/job.yaml"));
  TROUPE_ASSIGN(PlannedRun planned, plan_run(std::move(spec), nullptr));
  planned.job.mode = "dispatch";
  planned.job.command_json = nlohmann::json{{"rows", rows}}.dump();
  planned.job.run_folder = folder + "/run";
  TROUPE_ASSIGN(const std::string job, embedded.driver->submit(std::move(planned.job)));
  std::promise<driver::JobUpdate> promise;
  std::future<driver::JobUpdate> ended = promise.get_future();
  TROUPE_ASSIGN(const int watching, embedded.driver->watch(job, [&](const driver::JobUpdate& update) {
    if (update.kind == driver::JobUpdate::Kind::kEnd) promise.set_value(update);
  }));
  const auto samples = watch(*embedded.driver, job, ended, flags.steps);
  embedded.driver->unwatch(job, watching);
  if (!samples.ok()) return samples.error();
  if (samples->size() < 3 || samples->back().step == samples->front().step)
    return make_error(ErrorCode::kFailedPrecondition,
                      "the steps were over before they could be timed; --steps must be larger");
  const Sample &first = samples->front(), &last = samples->back();
  const auto steps = static_cast<double>(last.step - first.step);
  const auto rounded = [](double value) { return std::round(value * 1e4) / 1e4; };
  return ordered_json{
      {"step_ms", rounded(std::chrono::duration<double, std::milli>(last.at - first.at).count() / steps)},
      {"driver_us_per_step", rounded((last.spent - first.spent) * 1e6 / steps)},
      {"steps_timed", last.step - first.step}};
}

Result<ordered_json> measure(const std::string& actor, const Flags& flags) {
  Embedded embedded;
  TROUPE_RETURN_IF_ERROR(start_driver(embedded, std::nullopt));
  TROUPE_RETURN_IF_ERROR(start_workers(embedded, std::nullopt, actor, ""));
  ordered_json result = {{"hosts", flags.hosts}, {"steps", flags.steps}};
  TROUPE_ASSIGN(result["noop"], bench_job(embedded, flags, false));
  TROUPE_ASSIGN(result["row_each_way"], bench_job(embedded, flags, true));
  result["simulated"] = ordered_json::array();
  for (int hosts = 2; hosts <= 64; hosts *= 2) {
    TROUPE_ASSIGN(auto line, bench_simulated_hosts(hosts, flags.steps,
                                                   embedded.folder->path() + "/simulated-" + std::to_string(hosts)));
    result["simulated"].push_back(std::move(line));
  }
  return result;
}

void print(const ordered_json& result) {
  std::printf("%s hosts, %lld steps a job\n", result["hosts"].get<std::string>().c_str(),
              static_cast<long long>(result["steps"].get<int64_t>()));
  for (const char* key : {"noop", "row_each_way"})
    std::printf("  %-14s %8.4f ms a step, driver and worker %7.2f us a step\n", key,
                result[key]["step_ms"].get<double>(), result[key]["driver_us_per_step"].get<double>());
  for (const auto& line : result["simulated"])
    std::printf("  simulated %3d hosts: driver %7.2f us a step\n", line["hosts"].get<int>(),
                line["driver_us_per_step"].get<double>());
}

}  // namespace

double processor_seconds(int who) {
  rusage usage{};
  ::getrusage(who, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

int bench_dispatch_command(const std::string& actor, std::vector<std::string> arguments) {
  Flags flags;
  CLI::App app(
      "Times steps that do nothing: real driver, worker and actor hosts, with and without one row over the boundary "
      "each way;\n"
      "then the driver alone with 2 to 64 simulated hosts.\nExample: troupe bench dispatch --hosts 8+8 --json",
      "troupe bench dispatch");
  app.add_option("--hosts", flags.hosts, "hosts of the vision and of the text group, V+T");
  app.add_option("--steps", flags.steps, "steps of each job; a fifth warms up")->check(CLI::Range(100, 10000000));
  app.add_flag("--json", flags.json, "one line of JSON");
  try {
    std::reverse(arguments.begin(), arguments.end());
    app.parse(arguments);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitDone : kExitRefused;
  }
  char rest = 0;
  if (std::sscanf(flags.hosts.c_str(), "%d+%d%c", &flags.vision, &flags.text, &rest) != 2 || flags.vision < 1 ||
      flags.text < 1 || flags.vision > 64 || flags.text > 64)
    return report(invalid_argument("troupe bench dispatch: --hosts " + flags.hosts +
                                   " is not valid; valid: V+T with 1 to 64 hosts each, such as 8+8"),
                  flags.json);
  Result<ordered_json> result = measure(actor_program(actor), flags);
  if (!result) return report(result.error(), flags.json);
  if (flags.json)
    std::printf("%s\n", result->dump().c_str());
  else
    print(*result);
  return kExitDone;
}

}  // namespace troupe::cli
