#include "actors/host/checkpointing.h"

#include <filesystem>

#include "actors/checkpoint/checkpoint_folder.h"
#include "actors/checkpoint/model_io.h"
#include "actors/host/meeting.h"

namespace troupe {
namespace {
constexpr std::chrono::hours kSaveTimeout{2};
}

Status export_checkpoint(const JobContext& job, std::vector<std::unique_ptr<Actor>>& actors, const std::string& folder) {
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
    TROUPE_RETURN_IF_ERROR(assemble_export(options));
  }
  return meet(job, "exported", kSaveTimeout);
}

}  // namespace troupe
