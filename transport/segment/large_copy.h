#pragma once

#include <cstddef>

namespace troupe {

/// memcpy for what another process reads next: a payload that the shared cache would not hold anyway is written past
/// it, which spares reading every line of the target first.
void copy_to_reader(std::byte* to, const std::byte* from, size_t bytes);

}  // namespace troupe
