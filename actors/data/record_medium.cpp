#include "actors/data/record_medium.h"

#include "actors/sources/inline_data.h"

namespace troupe {

bool RecordMedium::in_record() const { return bytes != nullptr || is_inline_data(path); }

Result<MediaBytes> open_medium(const PictureRoot& root, const RecordMedium& medium, const std::string& what) {
  if (medium.bytes != nullptr) return MediaBytes(medium.bytes, *medium.bytes);
  return root.open(medium.path, what);
}

}  // namespace troupe
