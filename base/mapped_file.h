#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace troupe {

/// A file mapped read-only for as long as the object lives; only the pages that are looked at are read. Bytes that
/// the file no longer has end the process when they are looked at, and it says which file that was
/// (base/shortened_file.h). Thread-safe.
class MappedFile {
 public:
  /// NotFound naming the path and the system's reason. A folder is refused; an empty file has empty bytes.
  static Result<std::shared_ptr<const MappedFile>> open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  std::string_view bytes() const { return {data_, size_}; }
  /// Says that the bytes [begin, end) are not needed for now, so that they no longer count as this process's memory;
  /// they are read again when they are looked at.
  void forget(size_t begin, size_t end) const;

 private:
  MappedFile(const char* data, size_t size, int named) : data_(data), size_(size), named_(named) {}
  const char* data_;
  size_t size_;
  int named_;
};

}  // namespace troupe
