#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace troupe {

/// A descriptor of a file with bytes of its own, open for reading; the caller closes it. Pipes, devices, sockets and
/// folders are refused without waiting for anybody at their other end. NotFound whose message is the reason alone, such
/// as "No such file or directory". Thread-safe.
Result<int> open_regular_file(const std::string& path);

/// The most that a file which a person wrote may hold.
inline constexpr int64_t kMaxTextBytes = 16 << 20;
/// The whole file as text. NotFound names path and reason; InvalidArgument says that it has more than kMaxTextBytes.
Result<std::string> read_text_file(const std::string& path);

}  // namespace troupe
