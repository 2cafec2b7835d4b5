#include "base/config/job_spec.h"

#include <algorithm>

namespace troupe {

const GroupSpec* JobSpec::group_of_component(const std::string& component) const {
  for (const GroupSpec& g : groups)
    if (std::find(g.components.begin(), g.components.end(), component) != g.components.end()) return &g;
  return nullptr;
}

}  // namespace troupe
