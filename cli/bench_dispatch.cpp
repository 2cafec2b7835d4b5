#include "cli/bench_dispatch.h"

#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <future>
#include <optional>

#include "cli/embedded.h"
#include "cli/exit_codes.h"
#include "cli/noop_job.h"
#include "cli/signals.h"

namespace troupe::cli {
using nlohmann::ordered_json;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;
namespace {

constexpr milliseconds kSample{50};
constexpr std::chrono::minutes kStandstill{5};
/// What --steps may be, and how a job is made longer whose steps were over before they could be timed.
constexpr int64_t kFewestSteps = 100, kMostSteps = 10000000, kLonger = 4;

struct Flags {
  std::string hosts = "8+8";
  int vision = 0, text = 0;
  int64_t steps = 20000;
  bool json = false;
};

/// How far the job was when, and what this process (driver and worker) had spent.
struct Sample {
  int64_t step = 0;
  Clock::time_point at;
  double spent = 0;
};

/// Watches a job until it ends, for as long as it gets on; samples while steps run.
Result<std::vector<Sample>> watch(driver::Driver& driver, const std::string& job, std::future<driver::JobUpdate>& ended,
                                  int64_t steps) {
  std::vector<Sample> samples;
  auto deadline = Clock::now() + kStandstill;
  int64_t seen = 0;
  while (ended.wait_for(kSample) != std::future_status::ready) {
    if (wait_signal(milliseconds(0)) != 0) static_cast<void>(driver.cancel(job, true));
    if (Clock::now() > deadline) {
      static_cast<void>(driver.cancel(job));
      return deadline_exceeded("the job of no-ops did no step for 5 minutes");
    }
    TROUPE_ASSIGN(const std::string text, driver.status_json(job));
    const int64_t step = nlohmann::json::parse(text).value("step", int64_t{0});
    if (step > seen) deadline = Clock::now() + kStandstill;
    seen = step;
    // A fifth warms up; reports come in batches, so the last few are left out as well.
    if (step >= steps / 5 && step < steps) samples.push_back({step, Clock::now(), processor_seconds(RUSAGE_SELF)});
  }
  const driver::JobUpdate end = ended.get();
  if (end.exit_code != kExitDone) return internal_error("the job of no-ops ended with " + end.result_json);
  return samples;
}

/// Nothing when the steps were over before they could be timed.
Result<std::optional<ordered_json>> time_steps(Embedded& embedded, const Flags& flags, bool rows, int64_t steps_asked) {
  const std::string folder = embedded.folder->path() + (rows ? "/rows-" : "/noop-") + std::to_string(steps_asked);
  TROUPE_ASSIGN(PlannedRun planned, plan_noop_job(JobMode::kDispatch, folder, flags.vision, flags.text, steps_asked));
  planned.job.command_json = nlohmann::json{{"rows", rows}}.dump();
  TROUPE_ASSIGN(const std::string job, embedded.driver->submit(std::move(planned.job)));
  TROUPE_ASSIGN(std::future<driver::JobUpdate> ended, end_of_job(*embedded.driver, job));
  const auto samples = watch(*embedded.driver, job, ended, steps_asked);
  if (!samples.ok()) return samples.error();
  if (samples->size() < 3 || samples->back().step == samples->front().step) return std::optional<ordered_json>();
  const Sample &first = samples->front(), &last = samples->back();
  const auto steps = static_cast<double>(last.step - first.step);
  const auto rounded = [](double value) { return std::round(value * 1e4) / 1e4; };
  return std::optional(
      ordered_json{{"steps", steps_asked},
                   {"step_ms", rounded(std::chrono::duration<double, std::milli>(last.at - first.at).count() / steps)},
                   {"driver_us_per_step", rounded((last.spent - first.spent) * 1e6 / steps)},
                   {"steps_timed", last.step - first.step}});
}

Result<ordered_json> bench_job(Embedded& embedded, const Flags& flags, bool rows) {
  for (int64_t steps = flags.steps;; steps = std::min(steps * kLonger, kMostSteps)) {
    TROUPE_ASSIGN(std::optional<ordered_json> timed, time_steps(embedded, flags, rows, steps));
    if (timed) return std::move(*timed);
    if (steps == kMostSteps) return internal_error("even " + std::to_string(steps) + " steps could not be timed");
  }
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
  std::printf("%s hosts\n", result["hosts"].get<std::string>().c_str());
  for (const char* key : {"noop", "row_each_way"})
    std::printf("  %-14s %8.4f ms a step, driver and worker %7.2f us a step, %lld steps\n", key,
                result[key]["step_ms"].get<double>(), result[key]["driver_us_per_step"].get<double>(),
                static_cast<long long>(result[key]["steps"].get<int64_t>()));
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
  app.add_option("--steps", flags.steps,
                 "steps of each job, of which a fifth warms up; four times as many, and again, while they are over too "
                 "soon to be timed")
      ->check(CLI::Range(kFewestSteps, kMostSteps));
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
