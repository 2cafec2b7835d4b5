#pragma once

#include <string>
#include <vector>

#include "base/config/job_spec.h"
#include "base/program/gradient_buckets.h"
#include "base/program/program.h"
#include "base/result.h"

/// The order in which a step's instructions run, for `troupe plan` and for the check before a job starts.
namespace troupe {

/// Counts of a step as the spec alone tells them: every text unit full, one encoder unit for each (or none).
StepShape shape_from_spec(const JobSpec& spec, const Program& program, bool with_images);

/// Checks the job's order for a step without any image, the smallest and the largest step that the spec allows.
/// `buckets` here and below: of gradients, by group (gradient_bucket_counts).
Status check_instruction_order(const JobSpec& spec, const std::vector<int>& buckets = {});

/// The instructions of one full step, one a line, as every host runs its own part of them.
std::vector<std::string> instruction_order(const JobSpec& spec, const std::vector<int>& buckets = {});

/// The same for a person: the units of one group beside each other, at most as many lines as fit a screen.
std::string render_instruction_order(const JobSpec& spec, const std::vector<int>& buckets = {});

}  // namespace troupe
