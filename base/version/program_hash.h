#pragma once

#include <cstdint>

#include "base/result.h"

namespace troupe {

/// Hash of this process's program file: what is kept for later runs under it is never taken for the work of another
/// build. Cost: one pass over the file.
Result<uint64_t> program_hash();

}  // namespace troupe
