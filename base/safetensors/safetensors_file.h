#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

/// Reading safetensors: an 8-byte little-endian header length, a JSON header, then the tensors' bytes without gaps.
/// Source: the format description of the safetensors project.
namespace troupe {

/// Element types on disk. Others are refused by name.
enum class FileDType : uint8_t { kF32, kBf16, kF16, kI64 };
const char* file_dtype_name(FileDType dtype);  // "F32", "BF16", "F16", "I64"
int64_t file_dtype_bytes(FileDType dtype);

/// One tensor of a file. `begin` and `end` are offsets in bytes from the start of the file.
struct TensorInfo {
  std::string name;
  FileDType dtype = FileDType::kF32;
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0;
  int64_t elements() const;
  uint64_t bytes() const { return end - begin; }
};

/// A memory-mapped, read-only file. The mapping lives as long as the object; pages are read when touched. Thread-safe
/// after open.
class SafetensorsFile {
 public:
  /// Checks everything that the header promises: a header of at most 100 MB, known dtypes, shapes that match their
  /// bytes, tensors that do not overlap and leave no gap, a file that is neither shorter (DataLoss with expected and
  /// real size) nor longer (trailing bytes are accepted only when all are zero) than its tensors.
  static Result<std::shared_ptr<SafetensorsFile>> open(const std::string& path);
  ~SafetensorsFile();
  SafetensorsFile(const SafetensorsFile&) = delete;
  SafetensorsFile& operator=(const SafetensorsFile&) = delete;

  const std::string& path() const { return path_; }
  /// In the order of their bytes.
  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  const TensorInfo* find(const std::string& name) const;
  /// The header's "__metadata__".
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  /// First byte of a tensor of this file, valid as long as the file object.
  const std::byte* data(const TensorInfo& tensor) const { return map_ + tensor.begin; }

 private:
  SafetensorsFile() = default;
  Status map(const std::string& path);
  Status parse();
  Status parse_header(const char* text, uint64_t length);
  Status check_extent();

  std::string path_;
  const std::byte* map_ = nullptr;
  int named_ = -1;
  uint64_t size_ = 0, data_begin_ = 0;
  std::vector<TensorInfo> tensors_;
  std::map<std::string, size_t> by_name_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace troupe
