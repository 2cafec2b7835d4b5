#pragma once

#include <cstdint>
#include <string>

#include "base/config/job_spec.h"
#include "base/result.h"

/// What the index task and `troupe check` alike say of data that cannot be trained on. Pure functions.
namespace troupe {

/// "2 of 16 records cannot be used", and what becomes of them: left out by on_bad_record: skip, or that skip goes on
/// without them, where any would be left.
std::string unusable_records(int64_t bad, int64_t records, OnBadRecord policy);

/// Whether the samples that are not held out fill a batch, come to a step, and to the steps that are to be dumped or
/// traced. InvalidArgument: a line for each complaint, beginning with its key. `samples`: without the `held_out` ones.
Status check_enough_samples(const JobSpec& spec, int64_t samples, int64_t held_out);

}  // namespace troupe
