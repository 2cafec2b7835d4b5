#include "actors/host/meeting.h"

namespace troupe {

Status meet(const JobContext& job, const std::string& name, std::chrono::milliseconds timeout) {
  KvStore& store = job.control->store();
  const std::string key =
      job.assignment.job_id + "/g" + std::to_string(job.assignment.generation.value) + "/meet/" + name;
  const auto hosts = static_cast<int64_t>(job.assignment.slots.size());
  TROUPE_ASSIGN(const int64_t arrived, store.add(key, 1));
  if (arrived == hosts) return store.set(key + "/all", "1");
  const auto all = store.get(key + "/all", timeout);
  if (!all.ok())
    return wrap(all.error(), "meeting '" + name + "': " + std::to_string(arrived) + " of " + std::to_string(hosts) +
                                 " hosts had come when this one did");
  return {};
}

}  // namespace troupe
