#include "actors/bench/step_bench.h"

#include <ATen/Parallel.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "actors/bench/batch_dataset.h"
#include "actors/bench/bench_failure.h"
#include "actors/bench/local_control.h"
#include "actors/bench/median.h"
#include "actors/host/device.h"
#include "actors/host/executor.h"
#include "actors/host/memory.h"
#include "actors/host/metrics.h"
#include "base/program/gradient_buckets.h"
#include "base/program/unit_memory.h"
#include "base/trace/host_trace.h"

namespace troupe {
namespace {

constexpr int kWarmUpSteps = 2;
constexpr int kMostFencedSteps = 5;
constexpr int kTracedSteps = 5;

const std::map<std::string, DType> kDTypes = {
    {"fp32", DType::kFp32}, {"bf16", DType::kBf16}, {"bf16-pure", DType::kBf16Pure}};

struct BenchFlags {
  std::string model, batch, grid = "24x32", device = "cpu", dtype = "fp32";
  int images = 4, text = 256, threads = 2, steps = 5;
  bool json = false, random = false, trace = false;
};

JobSpec bench_spec(const BenchFlags& flags, int64_t samples) {
  JobSpec spec;
  spec.name = "bench-step";
  spec.model = {flags.model, flags.random ? ModelInit::kRandom : ModelInit::kPretrained, kDTypes.at(flags.dtype)};
  spec.components = {{"vision", {}}, {"merger", {}}, {"text", {}}};
  GroupSpec vision, text;
  vision.name = "vision";
  vision.components = {"vision", "merger"};
  text.name = "text";
  text.components = {"text"};
  spec.groups = {vision, text};
  spec.data.shuffle = false;
  spec.training.steps = kWarmUpSteps + flags.steps +
                        (flags.device == "cpu" ? 0 : std::min(flags.steps, kMostFencedSteps)) +
                        (flags.trace ? kTracedSteps : 0);
  spec.training.global_batch = spec.training.microbatch_samples = samples;
  spec.training.optimizer = {1e-4, {0.9, 0.999}, 1e-8, 0.0, 0.0};
  spec.training.schedule.type = ScheduleKind::kConstant;
  return spec;
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
    if (std::sscanf(flags.grid.c_str(), "%ldx%ld", &shape.grid_h, &shape.grid_w) != 2 || shape.grid_h % 2 ||
        shape.grid_w % 2 || shape.grid_h < 2 || shape.grid_w < 2)
      return invalid_argument("--grid " + flags.grid + ": must be HxW patches, each a multiple of 2, such as 24x32");
    job->data = make_random_batch(shape, job->config, 0);
  }
  const auto samples = static_cast<int64_t>(job->data->index().samples.size());
  for (int64_t s = 0; s < samples; ++s) job->training_samples.push_back(s);
  job->epoch_samples = samples;
  job->spec = bench_spec(flags, samples);
  job->encoder = 0;
  job->decoder = 1;
  job->training = record_training_loop(job->spec, gradient_bucket_counts(job->spec, job->config),
                                       encoder_row_bytes(job->spec, job->config.vision));
  job->evaluation = record_evaluation_loop(job->spec);
  job->steps = *job->spec.training.steps;
  return job;
}

/// A process with both groups' only ranks in it, as the benches run it.
struct BenchHost {
  explicit BenchHost(HostAssignment assignment) : control(std::move(assignment)) {}
  LocalControl control;
  std::unique_ptr<JobContext> job;
  std::unique_ptr<Boundary> boundary;
  std::vector<std::unique_ptr<Actor>> actors;
};

Result<std::unique_ptr<BenchHost>> make_host(const BenchFlags& flags) {
  HostAssignment assignment;
  assignment.job_id = "bench";
  assignment.mode = JobMode::kTrain;
  assignment.generation = Generation(1);
  assignment.slots = {{"local", 0, flags.device, flags.threads, "127.0.0.1"}};
  assignment.group_slots = {{0}, {0}};
  auto host = std::make_unique<BenchHost>(assignment);
  TROUPE_ASSIGN(const at::Device device, open_device(assignment.slots[0]));
  TROUPE_ASSIGN(host->job, bench_job(flags, host->control));
  host->job->device = device;
  charge_by_meter(memory_meter(device));
  at::set_num_threads(flags.threads);
  TROUPE_ASSIGN(host->boundary, Boundary::create(*host->job));
  host->actors.push_back(std::make_unique<VisionActor>(*host->job, 0, 0, *host->boundary));
  host->actors.push_back(std::make_unique<TextActor>(*host->job, 1, 0, *host->boundary));
  for (size_t a = 0; a < host->actors.size(); ++a) {
    const AllocationOwner owner(static_cast<int>(a) + 1);
    TROUPE_RETURN_IF_ERROR(host->actors[a]->set_up());
  }
  return host;
}

/// What the timed steps add up to.
struct Timings {
  std::map<std::string, std::vector<double>> seconds;  // by key of the result
  std::vector<double> losses;
  double flops = 0;
  int64_t patches = 0, tokens = 0;
  std::vector<StepCosts> costs;  // of the traced steps

  void add_phases(const StepOutcome& outcome) {
    const auto spent = [&](int group, Op op) {
      const auto found = outcome.seconds.find({group, op});
      return found == outcome.seconds.end() ? 0.0 : found->second;
    };
    const double vision_forward = spent(0, Op::kForward), text_forward = spent(1, Op::kForward);
    const double vision_backward = spent(0, Op::kBackward), text_backward = spent(1, Op::kBackward);
    seconds["vision_forward_ms"].push_back(vision_forward);
    seconds["text_forward_ms"].push_back(text_forward);
    seconds["vision_backward_ms"].push_back(vision_backward);
    seconds["text_backward_ms"].push_back(text_backward);
    seconds["forward_ms"].push_back(vision_forward + text_forward);
    seconds["backward_ms"].push_back(vision_backward + text_backward);
    seconds["update_ms"].push_back(spent(0, Op::kUpdate) + spent(1, Op::kUpdate) + spent(0, Op::kReduced) +
                                   spent(1, Op::kReduced) + spent(-1, Op::kCombine));
  }
};

/// Runs every step. On a GPU the parts of a step are taken from fenced steps of their own, so that fences do not slow
/// the timed ones.
Result<Timings> run_steps(BenchHost& host, int timed_steps, bool trace) {
  const JobContext& job = *host.job;
  Executor executor(job, host.actors, *host.boundary);
  BatchPlanner planner(job.data->index(), job.training_samples,
                       batch_plan_options(job.spec, job.config.vision, job.epoch_samples));
  Timings timings;
  for (int64_t step = 1; step <= job.steps; ++step) {
    TROUPE_ASSIGN(StepInput input, make_step_input(job, *job.data, planner.plan(step), {{0, 0}, {1, 0}}, {}));
    timings.flops = step_flops(job.config, trained_parts(job.spec), input.plan, job.data->index());
    timings.tokens = input.plan.tokens;
    timings.patches = input.plan.rows * job.config.vision.merge_size * job.config.vision.merge_size;
    const bool traced = trace && step > job.steps - kTracedSteps;
    const bool fenced =
        step > kWarmUpSteps + timed_steps;  // on a GPU a kernel's span then holds the kernel, not its launch
    if (traced) job.trace->start();
    executor.fence_instructions(fenced);
    const auto begin = std::chrono::steady_clock::now();
    TROUPE_ASSIGN(const StepOutcome outcome, executor.train(input, step, {}));
    synchronise(job.device);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    timings.losses.push_back(outcome.sums.loss / static_cast<double>(std::max<int64_t>(input.plan.supervised, 1)));
    if (step <= kWarmUpSteps) continue;
    if (!fenced) timings.seconds["step_ms"].push_back(seconds);
    if (traced) continue;
    if (fenced || job.device.is_cpu()) timings.add_phases(outcome);
  }
  HostTrace of_host;
  of_host.spans = job.trace->take();
  timings.costs = step_costs(of_host);
  return timings;
}

/// Executor and waiting time that was spent neither in tensor work nor on data of peers.
void add_orchestration(const std::vector<StepCosts>& costs, nlohmann::ordered_json& result) {
  std::vector<double> milliseconds, shares;
  for (const StepCosts& c : costs) {
    milliseconds.push_back(static_cast<double>(c.rest_ns) / 1e6);
    shares.push_back(static_cast<double>(c.rest_ns) / static_cast<double>(c.step_ns));
  }
  result["traced_steps"] = costs.size();
  result["orchestration_ms"] = median(milliseconds);
  result["orchestration_share"] = median(shares);
}

Result<nlohmann::ordered_json> measure(const BenchFlags& flags) {
  TROUPE_ASSIGN(const auto host, make_host(flags));
  TROUPE_ASSIGN(Timings timings, run_steps(*host, flags.steps, flags.trace));
  nlohmann::ordered_json result = {{"model", flags.model},       {"device", flags.device},
                                   {"dtype", flags.dtype},       {"threads", flags.threads},
                                   {"patches", timings.patches}, {"tokens", timings.tokens}};
  for (const char* key : {"step_ms", "forward_ms", "backward_ms", "update_ms", "vision_forward_ms",
                          "vision_backward_ms", "text_forward_ms", "text_backward_ms"})
    result[key] = std::round(median(timings.seconds[key]) * 1e5) / 100;
  result["tflops"] = timings.flops / median(timings.seconds["step_ms"]) / 1e12;
  result["peak_rss_mib"] = peak_resident_bytes() >> 20;
  result["peak_memory_mib"] = peak_device_bytes() >> 20;
  result["losses"] = timings.losses;
  if (flags.trace) add_orchestration(timings.costs, result);
  return result;
}

}  // namespace

int step_bench_command(int argc, char** argv) {
  BenchFlags flags;
  CLI::App app(
      "Times training steps (forward, backward, AdamW) of one process, both groups on one slot.\n"
      "Example: troupe bench step --device cpu --model DIR --images 4 --grid 24x32 --text 256 --threads 2 --json",
      "troupe bench step");
  app.add_option("--model", flags.model, "Hugging Face folder")->required();
  app.add_option("--images", flags.images, "samples, each of one image")->check(CLI::Range(1, 4096));
  app.add_option("--grid", flags.grid, "patches of an image, HxW");
  app.add_option("--text", flags.text, "text tokens of a sample")->check(CLI::Range(1, 1 << 20));
  app.add_option("--threads", flags.threads, "intra-op threads")->check(CLI::Range(1, 1024));
  app.add_option("--steps", flags.steps, "timed steps, after two to warm up")->check(CLI::Range(1, 10000));
  app.add_option("--batch", flags.batch, "safetensors with input_ids, labels, pixel_values, image_grid_thw");
  app.add_option("--device", flags.device, "cpu, cuda (the first GPU) or cuda:N");
  app.add_option("--dtype", flags.dtype)->check(CLI::IsMember(kDTypes));
  app.add_flag("--random", flags.random, "random weights from config.json alone");
  app.add_flag("--trace", flags.trace, "trace five more steps and say what orchestration takes of them");
  app.add_flag("--json", flags.json, "one line of JSON");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  if (flags.device == "cuda") flags.device = "cuda:0";
  try {
    const auto result = measure(flags);
    if (!result.ok()) return bench_failure("step", result.error(), flags.json);
    std::printf("%s\n", result->dump(flags.json ? -1 : 2).c_str());
    return 0;
  } catch (const std::exception& e) {
    return bench_failure("step", internal_error(e.what()), flags.json);
  }
}

}  // namespace troupe
