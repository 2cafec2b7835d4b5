#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"

/// Processes of this program that measure together, watched by the one that started them.
namespace troupe {

/// Hears or says a line, without its newline.
using OnLine = std::function<void(const std::string& line)>;

/// Runs each of `bodies` in a process of its own until all have ended; `heard` gets what they say, at once. When one
/// fails, is ended by a signal (Unavailable) or the caller is asked to end by SIGINT, SIGTERM or SIGHUP (Cancelled),
/// the others are killed and that is the error. They die with the caller. To be called before any thread is started.
Status run_processes(const std::vector<std::function<Status(const OnLine& say)>>& bodies, const OnLine& heard);

}  // namespace troupe
