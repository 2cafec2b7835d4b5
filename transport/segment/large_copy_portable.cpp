#include <cstring>

#include "transport/segment/large_copy.h"

namespace troupe {

void copy_to_reader(std::byte* to, const std::byte* from, size_t bytes) { std::memcpy(to, from, bytes); }

}  // namespace troupe
