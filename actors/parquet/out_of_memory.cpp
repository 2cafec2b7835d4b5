#include "actors/parquet/out_of_memory.h"

#include <parquet/exception.h>

#include <new>

namespace troupe {

bool is_out_of_memory(const std::exception& e) {
  if (dynamic_cast<const std::bad_alloc*>(&e) != nullptr) return true;
  const auto* arrow = dynamic_cast<const parquet::ParquetStatusException*>(&e);
  return arrow != nullptr && arrow->status().IsOutOfMemory();
}

}  // namespace troupe
