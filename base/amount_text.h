#pragma once

#include <cstdint>
#include <string>

namespace troupe {

/// "11.29 MiB": an amount of memory or disk for a person.
std::string bytes_text(int64_t bytes);
/// "1.00 M": a number of things for a person.
std::string count_text(int64_t count);

}  // namespace troupe
