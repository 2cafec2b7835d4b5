#include "actors/host/checkpointing.h"

#include <filesystem>

#include "actors/checkpoint/model_io.h"
#include "actors/host/meeting.h"
#include "base/checkpoint/checkpoint_folder.h"

namespace troupe {
namespace {

constexpr std::chrono::hours kSaveTimeout{2};

std::string rank_file(const JobContext& job, const Actor& actor) {
  return job.group(actor.group()).name + "-" + std::to_string(actor.rank()) + ".safetensors";
}

CheckpointManifest manifest_of(const JobContext& job, const TrainingPosition& position) {
  CheckpointManifest m = manifest_of_spec(job.spec, position.step);
  m.skipped_steps = position.skipped_steps;
  m.data.index = job.data->index().digest;
  return m;
}

}  // namespace

Status agree_on_space(const JobContext& job, int64_t step, int64_t own_bytes, uint64_t free_bytes) {
  KvStore& store = job.control->store();
  const std::string name = "space-" + std::to_string(step);
  const std::string key = job.assignment.job_id + "/g" + std::to_string(job.assignment.generation.value) + "/" + name;
  TROUPE_RETURN_IF_ERROR(store.add(key, own_bytes).status());
  TROUPE_RETURN_IF_ERROR(meet(job, name, kSaveTimeout));
  TROUPE_ASSIGN(const int64_t needed, store.add(key, 0));
  if (is_leader(job)) TROUPE_RETURN_IF_ERROR(store.set(key + "/free", std::to_string(free_bytes)));
  TROUPE_ASSIGN(const std::string said, store.get(key + "/free", kSaveTimeout));
  const uint64_t free = std::stoull(said);
  if (static_cast<uint64_t>(needed) <= free) return {};
  const auto mib = [](uint64_t bytes) { return std::to_string((bytes + (1 << 20) - 1) >> 20) + " MiB"; };
  return make_error(ErrorCode::kResourceExhausted, "the checkpoint of step " + std::to_string(step) + " takes " +
                                                       mib(static_cast<uint64_t>(needed)) + ", but " + mib(free) +
                                                       " of disk are free in " + job.assignment.run_folder +
                                                       "; make space there, then go on with --resume auto");
}

Status save_checkpoint(const JobContext& job, std::vector<std::unique_ptr<Actor>>& actors,
                       const TrainingPosition& position) {
  int64_t own_bytes = 0;
  for (const auto& actor : actors) actor->settle();
  for (const auto& actor : actors)
    if (actor->trained()) own_bytes += rank_state_bytes(actor->store(), *actor->optimizer());
  TROUPE_RETURN_IF_ERROR(agree_on_space(job, position.step, own_bytes, free_disk_bytes(job.assignment.run_folder)));
  TROUPE_ASSIGN(const std::string folder,
                begin_checkpoint(job.assignment.run_folder, position.step, job.assignment.generation));
  for (const auto& actor : actors)
    if (actor->trained())
      TROUPE_RETURN_IF_ERROR(
          save_rank_state(actor->store(), *actor->optimizer(), folder + "/" + rank_file(job, *actor)));
  const std::string name = "save-" + std::to_string(position.step);
  TROUPE_RETURN_IF_ERROR(meet(job, name, kSaveTimeout));
  if (is_leader(job)) {
    TROUPE_ASSIGN(const std::string kept,
                  commit_checkpoint(folder, job.assignment.run_folder, manifest_of(job, position)));
    job.control->report_event("checkpoint",
                              "{\"step\": " + std::to_string(position.step) + ", \"path\": \"" + kept + "\"}");
    TROUPE_RETURN_IF_ERROR(prune_checkpoints(job.assignment.run_folder, job.spec.checkpoint.keep));
  }
  return meet(job, name + "-committed", kSaveTimeout);
}

Result<TrainingPosition> restore_checkpoint(const JobContext& job, std::vector<std::unique_ptr<Actor>>& actors) {
  const std::string& folder = job.assignment.resume_from;
  TROUPE_ASSIGN(const CheckpointManifest saved, read_checkpoint(folder, /*verify=*/is_leader(job)));
  TROUPE_RETURN_IF_ERROR(check_resumable(saved, manifest_of(job, {saved.step, saved.skipped_steps}), folder));
  for (const auto& actor : actors)
    if (actor->trained())
      TROUPE_RETURN_IF_ERROR(
          load_rank_state(actor->store(), *actor->optimizer(), folder + "/" + rank_file(job, *actor)));
  return TrainingPosition{saved.step, saved.skipped_steps};
}

Status export_checkpoint(const JobContext& job, std::vector<std::unique_ptr<Actor>>& actors,
                         const std::string& folder) {
  for (const auto& actor : actors) actor->settle();
  for (const auto& actor : actors) TROUPE_RETURN_IF_ERROR(write_export_parts(actor->store(), actor->world(), folder));
  TROUPE_RETURN_IF_ERROR(meet(job, "export", kSaveTimeout));
  if (is_leader(job)) {
    ExportOptions options;
    options.source_folder = job.spec.model.path;
    options.target_folder = folder;
    options.random_init = job.spec.model.init == ModelInit::kRandom;
    for (const auto& [name, component] : job.spec.components)
      if (!component.train) options.untouched_components.push_back(name);
    options.min_pixels = job.spec.data.min_pixels.value_or(0);
    options.max_pixels = job.spec.data.max_pixels.value_or(0);
    options.video = job.spec.data.video;
    TROUPE_RETURN_IF_ERROR(assemble_export(options));
  }
  return meet(job, "exported", kSaveTimeout);
}

}  // namespace troupe
