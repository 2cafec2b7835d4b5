#pragma once

#include <chrono>
#include <string>

#include "actors/host/job_context.h"

/// A meeting of all hosts of a job through the rendezvous store; rare moments only (saving, exporting), never a normal
/// step.
namespace troupe {

/// Returns when every host has called it with the same `name` (unique within the generation). DeadlineExceeded says how
/// many came.
Status meet(const JobContext& job, const std::string& name, std::chrono::milliseconds timeout);

/// True on the one host that does what is done once a job.
inline bool is_leader(const JobContext& job) { return job.assignment.self.value == 0; }

}  // namespace troupe
