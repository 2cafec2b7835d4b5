#pragma once

#include <cstdint>

namespace troupe {

/// A place in a file, both counted from 1; columns in bytes.
struct TextPlace {
  int64_t line = 1, column = 1;
};

}  // namespace troupe
