#pragma once

#include <cstddef>
#include <string>
#include <string_view>

/// Says which mapped file it was when bytes that were there are gone: the system ends a process that reads them by
/// SIGBUS, without a name.
namespace troupe {

/// Names the mapping [data, data + bytes) `path` until forget_mapping(slot), which comes before the unmapping: a read
/// in it that fails writes one line to standard error, and SIGBUS ends the process. Any other SIGBUS goes to the
/// handler that was there before. The first call installs the handler, for the whole process. -1 when
/// kMostNamedMappings are named: this one then is not. Thread-safe, lock-free.
int name_mapping(const void* data, size_t bytes, const std::string& path);
void forget_mapping(int slot);
inline constexpr int kMostNamedMappings = 1024;

/// What a process that ended so wrote last, from the text of its log and without the program's name; empty: nothing.
std::string shortened_file_said_in(std::string_view log);

}  // namespace troupe
