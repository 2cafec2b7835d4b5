#include "actors/host/profile.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/trace/trace_folder.h"

namespace troupe {

Profile::Profile(const JobContext& job, const std::vector<std::unique_ptr<Actor>>& actors)
    : job_(job), actors_(actors) {
  const ProfileSpec& spec = job.spec.profile;
  wanted_ = spec.on() && (spec.ranks.empty() || std::any_of(actors.begin(), actors.end(), [&](const auto& actor) {
                            const std::string name =
                                job.group(actor->group()).name + "/" + std::to_string(actor->rank());
                            return std::find(spec.ranks.begin(), spec.ranks.end(), name) != spec.ranks.end();
                          }));
}

void Profile::before(int64_t step) {
  // A resumed run may begin inside of the window.
  if (!wanted_ || job_.trace->on() || step < job_.spec.profile.first || step > job_.spec.profile.last) return;
  const auto clock = job_.control->measure_clock();
  if (clock.ok())
    clock_ = *clock;
  else
    job_.control->report_event("trace_failed", nlohmann::json{{"reason", clock.error().to_string()}}.dump());
  job_.trace->start();
}

void Profile::after(int64_t step) {
  if (!job_.trace->on() || (step < job_.spec.profile.last && step < job_.steps)) return;
  job_.trace->stop();
  const Status written = write();
  if (!written.ok())
    job_.control->report_event("trace_failed", nlohmann::json{{"reason", written.error().to_string()}}.dump());
}

Status Profile::write() {
  HostTrace trace;
  trace.slot = job_.assignment.self.value;
  trace.pid = static_cast<int>(::getpid());
  trace.node = job_.assignment.slots[static_cast<size_t>(trace.slot)].node;
  for (const GroupSpec& group : job_.spec.groups) trace.groups.push_back(group.name);
  for (const auto& actor : actors_) trace.actors.emplace_back(actor->group(), actor->rank());
  trace.clock = clock_;
  trace.dropped = job_.trace->dropped();
  trace.spans = job_.trace->take();
  TROUPE_ASSIGN(const std::string path,
                write_host_trace(job_.assignment.run_folder, job_.spec.profile.first, job_.spec.profile.last, trace));
  job_.control->report_event(
      "traced",
      nlohmann::json{{"file", path}, {"spans", trace.spans.size()}, {"clock_error_ns", trace.clock.error_ns}}.dump());
  return {};
}

}  // namespace troupe
