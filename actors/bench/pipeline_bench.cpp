#include "actors/bench/pipeline_bench.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "actors/bench/bench_failure.h"
#include "actors/bench/busy_pipeline.h"

namespace troupe {
namespace {

constexpr double kBar = 1.05;  // of the shortest possible step, with two credits and more

struct PipelineFlags {
  int units = 8, steps = 3;
  double text_ms = 24;
  bool json = false;
};

struct Case {
  double ratio = 1;  // vision/text
  int credits = 2;
  int late = -1;  // this encoder unit takes five times as long
};

BusyJob job_of(const PipelineFlags& flags, const Case& c) {
  Recorder r({"vision", "text"});
  r.edge(0, 1, true);
  r.credits(c.credits);
  r.for_units(0, [&] { r.forward(0); });
  r.for_units(1, [&] {
    r.forward(1);
    r.backward(1);
  });
  r.for_units(0, [&] { r.backward(0); });
  r.combine();
  BusyJob job;
  job.program = r.finish();
  job.shape.units = {flags.units, flags.units};
  job.shape.feeds.resize(1);
  for (int u = 0; u < flags.units; ++u) job.shape.feeds[0].push_back({u});
  // A third of a unit is forward.
  job.seconds = [text = flags.text_ms / 1e3, c](Op op, int group, int unit) {
    const double whole = group == 0 ? text * c.ratio * (unit == c.late ? 5 : 1) : text;
    return whole * (op == Op::kForward ? 1 : 2) / 3;
  };
  job.steps = flags.steps;
  return job;
}

Result<nlohmann::ordered_json> measure(const PipelineFlags& flags, const Case& c) {
  const BusyJob job = job_of(flags, c);
  TROUPE_ASSIGN(const BusyOutcome outcome, run_busy_job(job));
  for (const auto& sums : outcome.sums)
    if (sums != expected_sums(job)) return data_loss("the pipeline's sums are wrong");
  const double least = *std::min_element(outcome.step_seconds.begin(), outcome.step_seconds.end());
  const double bound = shortest_possible(job.program, job.shape, job.seconds);
  const double planned = play(job.program, expand(job.program, job.shape), job.seconds).length;
  return nlohmann::ordered_json{{"vision_over_text", c.ratio},
                                {"credits", c.credits},
                                {"late_unit", c.late},
                                {"step_ms", least * 1e3},
                                {"shortest_ms", bound * 1e3},
                                {"schedule_ms", planned * 1e3},
                                {"over_shortest", least / bound},
                                {"over_schedule", least / planned}};
}

/// With a late unit the bar is the schedule's own length: what waits for the unit has to wait.
bool holds(const nlohmann::ordered_json& row) {
  if (row["credits"] < 2) return true;
  return row[row["late_unit"] < 0 ? "over_shortest" : "over_schedule"] <= kBar;
}

Result<nlohmann::ordered_json> measure_all(const PipelineFlags& flags) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const double ratio : {0.25, 1.0, 4.0})
    for (const int credits : {1, 2, 4}) {
      TROUPE_ASSIGN(auto row, measure(flags, {ratio, credits, -1}));
      rows.push_back(std::move(row));
    }
  for (const double ratio : {0.25, 1.0, 4.0}) {
    TROUPE_ASSIGN(auto row, measure(flags, {ratio, 2, flags.units / 2}));
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

int pipeline_bench_command(int argc, char** argv) {
  PipelineFlags flags;
  CLI::App app(
      "Steps of two groups on a host each, whose units sleep: how near they come to the shortest step that the units "
      "allow.\n"
      "Example: troupe bench pipeline --units 8 --text-ms 24",
      "troupe bench pipeline");
  app.add_option("--units", flags.units, "units of each group")->check(CLI::Range(2, 1000));
  app.add_option("--text-ms", flags.text_ms, "a text unit's forward and backward, in milliseconds")
      ->check(CLI::Range(1.0, 10000.0));
  app.add_option("--steps", flags.steps, "steps of each case; the shortest counts")->check(CLI::Range(1, 1000));
  app.add_flag("--json", flags.json, "one line of JSON");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  const auto rows = measure_all(flags);
  if (!rows.ok()) return bench_failure("pipeline", rows.error(), flags.json);
  const bool good = std::all_of(rows->begin(), rows->end(), holds);
  if (flags.json) {
    std::printf("%s\n", rows->dump().c_str());
    return good ? 0 : 1;
  }
  std::printf("vision/text  credits  late unit   step ms  schedule ms  shortest ms  over schedule  over shortest\n");
  for (const auto& row : *rows)
    std::printf("%11.2f  %7d  %9d  %8.1f  %11.1f  %11.1f  %13.3f  %13.3f%s\n", row["vision_over_text"].get<double>(),
                row["credits"].get<int>(), row["late_unit"].get<int>(), row["step_ms"].get<double>(),
                row["schedule_ms"].get<double>(), row["shortest_ms"].get<double>(), row["over_schedule"].get<double>(),
                row["over_shortest"].get<double>(), holds(row) ? "" : "  MISSED");
  return good ? 0 : 1;
}

}  // namespace troupe
