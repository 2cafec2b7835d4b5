#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "actors/sources/tar_file.h"
#include "base/mapped_file.h"
#include "base/result.h"

namespace troupe {

/// The bytes of a picture or another medium, wherever they lie; they stay valid while a copy of the object lives.
class MediaBytes {
 public:
  MediaBytes(std::shared_ptr<const void> owner, std::string_view bytes) : owner_(std::move(owner)), bytes_(bytes) {}
  std::string_view bytes() const { return bytes_; }

 private:
  std::shared_ptr<const void> owner_;  // shared: a mapped file, an archive, or decoded inline data
  std::string_view bytes_;
};

/// Where the pictures and videos of one source are looked for: in its own archive when the source is one, then below a
/// folder or in a tar archive. Immutable and thread-safe.
class PictureRoot {
 public:
  /// `root`: a folder, or a tar archive; `shard`: the source itself when it is an archive, else null. InvalidArgument
  /// when `root` is a file but no tar archive that can be read to its end.
  static Result<std::unique_ptr<PictureRoot>> create(const std::string& root, std::shared_ptr<const TarFile> shard);

  /// A path as a record writes it: the name of a member, a path below the folder unless it is absolute, or a data URI.
  /// When nothing has the name as written, backslashes are read as slashes. URLs are refused. Errors name the path,
  /// with `what` it is before it.
  Result<MediaBytes> open(const std::string& path, const std::string& what = "image") const;
  /// The file that the path names; NotFound when it is no file of its own (a member, inline data).
  Result<std::string> file_of(const std::string& path) const;
  /// A number that changes when the bytes behind a path do, by the file's number, size and times; 0 when there is no
  /// such file. No byte is read.
  uint64_t stamp(const std::string& path) const;

 private:
  PictureRoot() = default;
  /// The archive and the member that a path names; null when it names none.
  const TarFile::Member* member(const std::string& path, std::shared_ptr<const TarFile>& in) const;
  std::string below_folder(const std::string& path) const;

  std::string folder_;  // empty: the root is an archive
  std::string archive_path_;
  std::shared_ptr<const TarFile> archive_, shard_;  // shared with the bytes that were handed out
};

}  // namespace troupe
