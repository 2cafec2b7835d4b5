#include "base/version/program_hash.h"

#include <xxhash.h>

#include "base/mapped_file.h"

namespace troupe {

Result<uint64_t> program_hash() {
  TROUPE_ASSIGN(const auto file, MappedFile::open("/proc/self/exe"));
  return XXH3_64bits(file->bytes().data(), file->bytes().size());
}

}  // namespace troupe
