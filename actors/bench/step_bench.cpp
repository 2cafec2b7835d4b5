#include "actors/bench/step_bench.h"

#include <ATen/Parallel.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "actors/bench/batch_dataset.h"
#include "actors/bench/local_control.h"
#include "actors/host/executor.h"
#include "actors/host/memory.h"
#include "actors/host/metrics.h"

namespace troupe {
namespace {

struct BenchFlags {
  std::string model, batch, grid = "24x32", device = "cpu", dtype = "fp32";
  int images = 4, text = 256, threads = 2, steps = 5;
  bool json = false, random = false;
};

JobSpec bench_spec(const BenchFlags& flags, int64_t samples) {
  JobSpec spec;
  spec.name = "bench-step";
  spec.model = {flags.model, flags.random ? ModelInit::kRandom : ModelInit::kPretrained, flags.dtype == "bf16" ? DType::kBf16 : DType::kFp32};
  spec.components = {{"vision", {}}, {"merger", {}}, {"text", {}}};
  GroupSpec vision, text;
  vision.name = "vision";
  vision.components = {"vision", "merger"};
  text.name = "text";
  text.components = {"text"};
  spec.groups = {vision, text};
  spec.data.shuffle = false;
  spec.training.steps = flags.steps + 2;
  spec.training.global_batch = spec.training.microbatch_samples = samples;
  spec.training.optimizer = {1e-4, {0.9, 0.999}, 1e-8, 0.0, 0.0};
  spec.training.schedule.type = ScheduleKind::kConstant;
  return spec;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

Result<std::unique_ptr<JobContext>> bench_job(const BenchFlags& flags, LocalControl& control) {
  auto job = std::make_unique<JobContext>();
  job->control = &control;
  job->assignment = control.assignment();
  TROUPE_ASSIGN(job->config, read_model_config(flags.model));
  if (!flags.batch.empty()) {
    TROUPE_ASSIGN(job->data, open_batch_dataset(flags.batch, job->config));
  } else {
    BatchShape shape{flags.images, 0, 0, flags.text};
    if (std::sscanf(flags.grid.c_str(), "%ldx%ld", &shape.grid_h, &shape.grid_w) != 2 || shape.grid_h % 2 || shape.grid_w % 2 || shape.grid_h < 2 || shape.grid_w < 2)
      return invalid_argument("--grid " + flags.grid + ": must be HxW patches, each a multiple of 2, such as 24x32");
    job->data = make_random_batch(shape, job->config, 0);
  }
  const auto samples = static_cast<int64_t>(job->data->index().samples.size());
  for (int64_t s = 0; s < samples; ++s) job->training_samples.push_back(s);
  job->spec = bench_spec(flags, samples);
  job->encoder = 0;
  job->decoder = 1;
  job->training = record_training_loop(job->spec);
  job->evaluation = record_evaluation_loop(job->spec);
  job->steps = *job->spec.training.steps;
  return job;
}

Result<nlohmann::ordered_json> measure(const BenchFlags& flags) {
  HostAssignment assignment;
  assignment.job_id = "bench";
  assignment.mode = "train";
  assignment.generation = Generation(1);
  assignment.slots = {{"local", 0, "cpu", flags.threads, "127.0.0.1"}};
  assignment.group_slots = {{0}, {0}};
  LocalControl control(assignment);
  TROUPE_ASSIGN(const auto job, bench_job(flags, control));
  at::set_num_threads(flags.threads);
  TROUPE_ASSIGN(const auto boundary, Boundary::create(*job));
  std::vector<std::unique_ptr<Actor>> actors;
  actors.push_back(std::make_unique<VisionActor>(*job, 0, 0, *boundary));
  actors.push_back(std::make_unique<TextActor>(*job, 1, 0, *boundary));
  for (size_t a = 0; a < actors.size(); ++a) {
    count_allocations_for(static_cast<int>(a) + 1);
    TROUPE_RETURN_IF_ERROR(actors[a]->set_up());
  }
  count_allocations_for(0);
  Executor executor(*job, actors, *boundary);
  BatchPlanner planner(job->data->index(), job->training_samples,
                       batch_plan_options(job->spec, job->config.vision.merge_size, static_cast<int64_t>(job->training_samples.size())));
  std::map<std::string, std::vector<double>> times;
  std::vector<double> losses;
  double flops = 0;
  int64_t patches = 0, tokens = 0;
  for (int64_t step = 1; step <= job->steps; ++step) {
    TROUPE_ASSIGN(StepInput input, make_step_input(*job, *job->data, planner.plan(step), {{0, 0}, {1, 0}}, {}));
    flops = step_flops(job->config, input.plan, job->data->index());
    tokens = input.plan.tokens;
    patches = input.plan.rows * job->config.vision.merge_size * job->config.vision.merge_size;
    const auto begin = std::chrono::steady_clock::now();
    TROUPE_ASSIGN(const StepOutcome outcome, executor.train(input, step, {}));
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    losses.push_back(outcome.sums.loss / static_cast<double>(std::max<int64_t>(input.plan.supervised, 1)));
    if (step <= 2) continue;  // warm-up
    const auto spent = [&](int group, Op op) {
      const auto found = outcome.seconds.find({group, op});
      return found == outcome.seconds.end() ? 0.0 : found->second;
    };
    times["step_ms"].push_back(seconds);
    times["vision_forward_ms"].push_back(spent(0, Op::kForward));
    times["text_forward_ms"].push_back(spent(1, Op::kForward));
    times["vision_backward_ms"].push_back(spent(0, Op::kBackward));
    times["text_backward_ms"].push_back(spent(1, Op::kBackward));
    times["forward_ms"].push_back(spent(0, Op::kForward) + spent(1, Op::kForward));
    times["backward_ms"].push_back(spent(0, Op::kBackward) + spent(1, Op::kBackward));
    times["update_ms"].push_back(spent(0, Op::kUpdate) + spent(1, Op::kUpdate) + spent(0, Op::kReduce) + spent(1, Op::kReduce) + spent(-1, Op::kCombine));
  }
  nlohmann::ordered_json result = {{"model", flags.model}, {"device", flags.device}, {"dtype", flags.dtype}, {"threads", flags.threads}, {"patches", patches}, {"tokens", tokens}};
  for (const char* key : {"step_ms", "forward_ms", "backward_ms", "update_ms", "vision_forward_ms", "vision_backward_ms", "text_forward_ms", "text_backward_ms"})
    result[key] = std::round(median(times[key]) * 1e5) / 100;
  result["tflops"] = flops / median(times["step_ms"]) / 1e12;
  result["peak_rss_mib"] = peak_resident_bytes() >> 20;
  result["losses"] = losses;
  return result;
}

}  // namespace

int step_bench_command(int argc, char** argv) {
  BenchFlags flags;
  CLI::App app("Times training steps (forward, backward, AdamW) of one process, both groups on one slot.\n"
               "Example: troupe bench step --device cpu --model DIR --images 4 --grid 24x32 --text 256 --threads 2 --json", "troupe bench step");
  app.add_option("--model", flags.model, "Hugging Face folder")->required();
  app.add_option("--images", flags.images, "samples, each of one image")->check(CLI::Range(1, 4096));
  app.add_option("--grid", flags.grid, "patches of an image, HxW");
  app.add_option("--text", flags.text, "text tokens of a sample")->check(CLI::Range(1, 1 << 20));
  app.add_option("--threads", flags.threads, "intra-op threads")->check(CLI::Range(1, 1024));
  app.add_option("--steps", flags.steps, "timed steps, after two to warm up")->check(CLI::Range(1, 10000));
  app.add_option("--batch", flags.batch, "safetensors with input_ids, labels, pixel_values, image_grid_thw");
  app.add_option("--device", flags.device)->check(CLI::IsMember({"cpu"}));
  app.add_option("--dtype", flags.dtype)->check(CLI::IsMember({"fp32", "bf16"}));
  app.add_flag("--random", flags.random, "random weights from config.json alone");
  app.add_flag("--json", flags.json, "one line of JSON");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  try {
    const auto result = measure(flags);
    if (!result.ok()) {
      std::fprintf(stderr, "troupe bench step: %s\n", result.error().to_string().c_str());
      return result.error().code == ErrorCode::kInvalidArgument || result.error().code == ErrorCode::kNotFound ? 2 : 1;
    }
    std::printf("%s\n", result->dump(flags.json ? -1 : 2).c_str());
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "troupe bench step: %s\n", e.what());
    return 1;
  }
}

}  // namespace troupe
