#include "cli/planning.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <sstream>

#include "base/checkpoint/checkpoint_folder.h"
#include "base/config/job_spec_parser.h"
#include "driver/plan/instruction_order.h"
#include "driver/run/run_folder.h"

namespace troupe::cli {
namespace fs = std::filesystem;

namespace {

Result<PlannedRun> plan_placed(JobSpec spec, const Manifest* manifest, bool training) {
  TROUPE_ASSIGN(const ModelConfig config, read_model_config(spec.model.path));
  JobSpec held = spec;  // what it takes memory for: an evaluation has neither gradients nor an optimizer
  for (auto& [name, component] : held.components) component.train = component.train && training;
  TROUPE_ASSIGN(JobPlan plan, plan_job(held, manifest, config));
  std::vector<int> buckets = gradient_bucket_counts(spec, config);
  TROUPE_RETURN_IF_ERROR(check_instruction_order(spec, buckets));
  PlannedRun run{std::move(spec), std::move(plan), std::move(buckets), {}};
  driver::PlannedJob& job = run.job;
  job.name = run.spec.name;
  job.job_yaml = job_spec_to_yaml(run.spec);
  for (const Slot& slot : run.plan.slots)
    job.slots.push_back({slot.node, slot.index, slot.device, slot.threads, slot.data_address});
  job.group_slots = run.plan.group_slots;
  for (const GroupSpec& group : run.spec.groups) job.group_names.push_back(group.name);
  job.needs_index = !run.spec.data.sources.empty();
  job.needs_eval_index = !run.spec.eval.sources.empty();
  job.total_steps = run.spec.training.steps.value_or(0);
  job.log_every = run.spec.log_every;
  job.plan_text = render_plan(run.plan, run.spec);
  job.warnings = run.plan.warnings;
  return run;
}

}  // namespace

Result<PlannedRun> plan_run(JobSpec spec, const Manifest* manifest, bool training) {
  const KeyPlaces places = spec.places;
  Result<PlannedRun> run = plan_placed(std::move(spec), manifest, training);
  return run.ok() ? std::move(run) : Result<PlannedRun>(places.located(run.error()));
}

std::vector<driver::ExpectedWorker> expected_workers(const Manifest* manifest) {
  if (!manifest) return {{kLocalNode, ""}};
  std::vector<driver::ExpectedWorker> workers;
  for (const ManifestNode& node : manifest->nodes) workers.push_back({node.name, node.address});
  return workers;
}

std::string absolute_folder(const std::string& path) {
  std::string plain = fs::absolute(path).lexically_normal().string();
  while (plain.size() > 1 && plain.back() == '/') plain.pop_back();
  return plain;
}

Result<std::string> choose_run_folder(const std::string& name, const std::string& run_dir, const std::string& resume) {
  std::string chosen = run_dir;
  if (chosen.empty() && !resume.empty() && resume != "auto") chosen = resume;
  if (chosen.empty()) {
    chosen = "runs/" + (name.empty() ? std::string("job") : name);
    if (resume.empty()) {
      std::random_device device;
      char id[9];
      std::snprintf(id, sizeof(id), "%08x", device());
      chosen += std::string("-") + id;
    }
  }
  std::error_code error;
  if (!resume.empty() && resume != "auto" && !fs::is_directory(resume, error))
    return not_found("--resume " + resume + ": no such run folder");
  return absolute_folder(chosen);
}

Status check_resume(const JobSpec& spec, const std::string& run_folder, const std::string& resume) {
  if (resume.empty()) return {};
  const std::string folder = resume == "auto" ? run_folder : resume;
  const driver::LatestCheckpoint latest = driver::latest_checkpoint_in(folder);
  if (latest.path.empty() && !latest.passed_over.empty())
    return data_loss("--resume " + resume + ": no checkpoint of " + folder +
                     " is complete: " + latest.passed_over.front() +
                     "; valid: a run folder with a complete one, or one without checkpoints to start from step 1");
  if (latest.path.empty() && resume != "auto")
    return not_found("--resume " + resume +
                     ": has no complete checkpoint; valid: a run folder with checkpoints/step-NNNNNNNN, or auto");
  if (latest.path.empty()) return {};
  TROUPE_ASSIGN(const CheckpointManifest saved, read_checkpoint(latest.path, /*verify=*/false));
  return check_resumable(saved, manifest_of_spec(spec, saved.step), latest.path);  // the host adds the data's digest
}

int64_t steps_of_run(const std::string& run_folder, const std::string& resume) {
  if (resume.empty()) return 0;
  const std::string path = (resume == "auto" ? run_folder : resume) + "/job.yaml";
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  const Result<JobSpec> before = parse_job_spec(text.str(), path);
  return before ? before->training.steps.value_or(0) : 0;
}

Status check_disk(const JobPlan& plan, const JobSpec& spec, const std::string& run_folder, uint64_t free_bytes) {
  // Both moments, and in bf16 the master weights: fp32 but in bf16-pure.
  const bool fp32 = spec.model.dtype == DType::kFp32, pure = spec.model.dtype == DType::kBf16Pure;
  const int64_t element = fp32 ? 4 : 2, state = fp32 ? 8 : pure ? 4 : 12;
  int64_t trained = 0;
  for (const GroupPlan& group : plan.groups) trained += group.trained_parameters;
  const int64_t weights = plan.parameters * element, checkpoint = weights + trained * state;
  const CheckpointSpec& c = spec.checkpoint;
  const int64_t saves = c.every <= 0          ? 0
                        : spec.training.steps ? *spec.training.steps / c.every
                                              : std::numeric_limits<int64_t>::max();
  // An older one goes when a newer one is complete; an export is put together from the parts that ranks wrote.
  const int64_t at_once = std::min<int64_t>(saves, c.keep + int64_t{1}), at_end = std::min<int64_t>(saves, c.keep);
  const int64_t exported = c.export_at_end ? 2 * weights : 0;
  const int64_t needed = std::max(at_once * checkpoint, at_end * checkpoint + exported);
  if (static_cast<uint64_t>(needed) <= free_bytes) return {};
  auto mib = [](uint64_t bytes) { return std::to_string((bytes + (1 << 20) - 1) >> 20) + " MiB"; };
  return make_error(ErrorCode::kResourceExhausted,
                    "run folder " + run_folder + ": " + mib(free_bytes) + " of disk are free, but " +
                        std::to_string(at_once) + " checkpoints at a time take about " +
                        mib(static_cast<uint64_t>(at_once * checkpoint)) + " and the export, with its parts, " +
                        mib(static_cast<uint64_t>(exported)) +
                        "; valid: a --run-dir with more space, a smaller checkpoint.keep, or checkpoint.every=0 and "
                        "checkpoint.export=never");
}

uint64_t bytes_below(const std::string& folder) {
  uint64_t bytes = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code gone;  // an unreadable size counts as none
    const uint64_t size = at->is_regular_file(gone) ? at->file_size(gone) : 0;
    if (!gone) bytes += size;
  }
  return bytes;
}

std::string own_program() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).string();
}

std::string actor_program(const std::string& asked) {
  if (!asked.empty()) return fs::absolute(asked).string();
  return fs::path(own_program()).replace_filename("troupe-actor").string();
}

}  // namespace troupe::cli
