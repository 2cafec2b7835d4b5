#include "cli/planning.h"

#include <algorithm>
#include <filesystem>
#include <random>

#include "base/checkpoint/checkpoint_folder.h"
#include "base/config/job_spec_parser.h"
#include "driver/plan/instruction_order.h"

namespace troupe::cli {
namespace fs = std::filesystem;

Result<PlannedRun> plan_run(JobSpec spec, const Manifest* manifest) {
  TROUPE_ASSIGN(const ModelConfig config, read_model_config(spec.model.path));
  TROUPE_ASSIGN(JobPlan plan, plan_job(spec, manifest, config));
  TROUPE_RETURN_IF_ERROR(check_instruction_order(spec));
  PlannedRun run{std::move(spec), std::move(plan), {}};
  driver::PlannedJob& job = run.job;
  job.name = run.spec.name;
  job.job_yaml = job_spec_to_yaml(run.spec);
  for (const Slot& slot : run.plan.slots) job.slots.push_back({slot.node, slot.index, slot.device, slot.threads, slot.data_address});
  job.group_slots = run.plan.group_slots;
  for (const GroupSpec& group : run.spec.groups) job.group_names.push_back(group.name);
  job.needs_index = !run.spec.data.sources.empty();
  job.needs_eval_index = !run.spec.eval.sources.empty();
  job.total_steps = run.spec.training.steps.value_or(0);
  job.log_every = run.spec.log_every;
  job.plan_text = render_plan(run.plan, run.spec);
  return run;
}

std::vector<driver::ExpectedWorker> expected_workers(const Manifest* manifest) {
  if (!manifest) return {{kLocalNode, ""}};
  std::vector<driver::ExpectedWorker> workers;
  for (const ManifestNode& node : manifest->nodes) workers.push_back({node.name, node.address});
  return workers;
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
  return fs::absolute(chosen).lexically_normal().string();
}

Status check_resume(const JobSpec& spec, const std::string& run_folder, const std::string& resume) {
  if (resume.empty()) return {};
  const std::string folder = resume == "auto" ? run_folder : resume;
  const Result<std::string> latest = latest_checkpoint(folder);
  if (!latest) {
    if (resume == "auto") return {};
    return not_found("--resume " + resume + ": has no complete checkpoint; valid: a run folder with checkpoints/step-NNNNNNNN, or auto");
  }
  TROUPE_ASSIGN(const CheckpointManifest saved, read_checkpoint(*latest, /*verify=*/false));
  CheckpointManifest wanted;
  wanted.dtype = spec.model.dtype == DType::kFp32 ? "fp32" : spec.model.dtype == DType::kBf16 ? "bf16" : "bf16-pure";
  for (const GroupSpec& g : spec.groups) wanted.groups.push_back({g.name, g.mesh, g.zero, g.tp_sequence});
  TROUPE_RETURN_IF_ERROR(check_same_layout(saved, wanted, *latest));
  const int64_t batch = spec.training.global_batch;
  if (saved.samples_done == saved.step * batch) return {};
  return invalid_argument(*latest + ": saved after " + std::to_string(saved.samples_done) + " samples in " + std::to_string(saved.step) +
                          " steps; training.global_batch " + std::to_string(batch) + " would go on at another sample; valid: " +
                          std::to_string(saved.samples_done / std::max<int64_t>(1, saved.step)));
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
