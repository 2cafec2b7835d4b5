#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/safetensors/safetensors_file.h"

/// Writing safetensors as a stream: the list of tensors is declared first, then their bytes follow in that order, in
/// pieces of any size.
namespace troupe {

/// What will be written: offsets are worked out by the writer.
struct TensorSpec {
  std::string name;
  FileDType dtype = FileDType::kF32;
  std::vector<int64_t> shape;
};

/// Writes to PATH.partial; `finish` flushes to disk and renames to PATH, so that PATH is always whole. Dropped before
/// `finish`: the partial file is removed. Owner thread only. Memory: none beyond the header.
class SafetensorsWriter {
 public:
  static Result<std::unique_ptr<SafetensorsWriter>> create(const std::string& path,
                                                           const std::vector<TensorSpec>& tensors,
                                                           const std::map<std::string, std::string>& metadata = {
                                                               {"format", "pt"}});
  ~SafetensorsWriter();
  SafetensorsWriter(const SafetensorsWriter&) = delete;
  SafetensorsWriter& operator=(const SafetensorsWriter&) = delete;

  /// The next `bytes` bytes. ResourceExhausted when the disk is full; InvalidArgument when more arrives than was
  /// declared.
  Status append(const void* data, uint64_t bytes);
  /// All declared bytes must have been appended.
  Status finish();

 private:
  SafetensorsWriter(std::string path, int fd, uint64_t expected)
      : path_(std::move(path)), fd_(fd), expected_(expected) {}
  Status write_all(const void* data, uint64_t bytes);

  std::string path_;
  int fd_ = -1;
  uint64_t expected_ = 0, written_ = 0;
};

}  // namespace troupe
