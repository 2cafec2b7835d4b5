#pragma once

#include <string>

#include "base/config/job_spec.h"
#include "base/config/section.h"

namespace troupe {

/// Turns a checked tree into a JobSpec: types, ranges and words of every key; what is wrong goes to the diagnostics of
/// `root`. Relative paths are taken from `folder`.
JobSpec read_job_spec(const Section& root, const std::string& folder);

/// Equations between keys: batch sizes, components and groups, placement, schedules. Needs no file.
void check_relations(const JobSpec& spec, const Section& root);

/// Paths of model and data, the model's config.json against the meshes. Warnings go to spec.warnings.
void check_files(JobSpec& spec, const Section& root);

}  // namespace troupe
