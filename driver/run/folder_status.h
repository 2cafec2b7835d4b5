#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.h"

/// What a run folder says by itself, for `troupe status RUN` when no driver answers.
namespace troupe::driver {

/// The keys of a driver's status as far as events.jsonl and result.json of `folder` know them, and "last_event". The
/// phase is "ended" with a result, "lost" without one when no run holds the folder, else the last one written. A host
/// is "exited" from its exit event on; the others are what the run is. NotFound: `folder` is no run folder.
/// Thread-safe.
Result<nlohmann::json> folder_status(const std::string& folder);

}  // namespace troupe::driver
