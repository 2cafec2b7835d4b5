#pragma once

#include <memory>
#include <string>

#include "actors/sources/picture_root.h"
#include "base/result.h"

namespace troupe {

/// A picture's or a video's file: where it lies, or the record's own bytes.
struct RecordMedium {
  std::string path;                          // or data URI, as written; of bytes what they are called
  std::shared_ptr<const std::string> bytes;  // shared with whoever looks at the medium; null: the path says where
  RecordMedium() = default;
  RecordMedium(std::string p) : path(std::move(p)) {}  // NOLINT: implicit on purpose
  RecordMedium(std::string name, std::shared_ptr<const std::string> held)
      : path(std::move(name)), bytes(std::move(held)) {}
  /// Whether it is a part of the record: bytes or a data URI.
  bool in_record() const;
};

/// Its own bytes, or as PictureRoot::open says.
Result<MediaBytes> open_medium(const PictureRoot& root, const RecordMedium& medium, const std::string& what = "image");

}  // namespace troupe
