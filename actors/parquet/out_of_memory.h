#pragma once

#include <exception>

namespace troupe {

/// Whether an exception of Arrow or of the standard library says that there was no memory, which is nobody's data's
/// fault.
bool is_out_of_memory(const std::exception& e);

}  // namespace troupe
