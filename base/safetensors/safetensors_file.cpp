#include "base/safetensors/safetensors_file.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/json_text.h"
#include "base/regular_file.h"
#include "base/shortened_file.h"

namespace troupe {
namespace {

using Json = nlohmann::json;
constexpr uint64_t kMaxHeaderBytes = 100'000'000;

std::optional<FileDType> dtype_from_name(const std::string& name) {
  for (FileDType d : {FileDType::kF32, FileDType::kBf16, FileDType::kF16, FileDType::kI64})
    if (name == file_dtype_name(d)) return d;
  return std::nullopt;
}

std::string shape_text(const std::vector<int64_t>& shape) { return Json(shape).dump(); }

/// `elements` of a shape from a file, or nothing when it is no shape or too large to be one.
std::optional<int64_t> checked_elements(const Json& shape, std::vector<int64_t>& out) {
  if (!shape.is_array()) return std::nullopt;
  int64_t n = 1;
  for (const Json& e : shape) {
    if (!e.is_number_unsigned()) return std::nullopt;
    const uint64_t size = e.get<uint64_t>();
    if (size > uint64_t{1} << 48) return std::nullopt;
    if (size != 0 && n > (int64_t{1} << 56) / static_cast<int64_t>(size)) return std::nullopt;
    n *= static_cast<int64_t>(size);
    out.push_back(static_cast<int64_t>(size));
  }
  return n;
}

bool is_offsets(const Json& j) {
  return j.is_array() && j.size() == 2 && j[0].is_number_unsigned() && j[1].is_number_unsigned();
}

/// Parses the header while refusing a name that occurs twice, which a JSON object would silently drop.
Result<Json> parse_json(const std::string& path, const char* text, uint64_t length) {
  std::set<std::string> seen;
  std::string doubled;
  bool too_deep = false;
  auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::key && depth == 1 && !seen.insert(parsed.get<std::string>()).second)
      doubled = parsed.get<std::string>();
    too_deep = too_deep || depth >= kMaxJsonDepth;
    return !too_deep;
  };
  try {
    Json header = Json::parse(text, text + length, watch);
    if (too_deep)
      return data_loss(path + ": the safetensors header is nested deeper than " + std::to_string(kMaxJsonDepth) +
                       " levels");
    if (!doubled.empty()) return data_loss(path + ": tensor '" + doubled + "' occurs twice in the header");
    if (!header.is_object()) return data_loss(path + ": the safetensors header is not a JSON object");
    return header;
  } catch (const Json::exception& e) {
    return data_loss(path + ": the safetensors header is not valid JSON: " + e.what());
  }
}

Result<TensorInfo> tensor_from_json(const std::string& path, const std::string& name, const Json& j,
                                    uint64_t data_begin) {
  const std::string where = path + ": tensor '" + name + "'";
  if (!j.is_object() || !j.contains("dtype") || !j.contains("shape") || !j.contains("data_offsets"))
    return data_loss(where + ": header entry needs dtype, shape and data_offsets");
  TensorInfo t;
  t.name = name;
  const std::string dtype_name = j["dtype"].is_string() ? j["dtype"].get<std::string>() : j["dtype"].dump();
  const auto dtype = dtype_from_name(dtype_name);
  if (!dtype)
    return invalid_argument(where + ": dtype '" + dtype_name + "' is not supported; valid: F32, BF16, F16, I64");
  t.dtype = *dtype;
  const auto elements = checked_elements(j["shape"], t.shape);
  if (!elements) return data_loss(where + ": shape " + j["shape"].dump() + " is not valid");
  if (!is_offsets(j["data_offsets"]))
    return data_loss(where + ": data_offsets " + j["data_offsets"].dump() + " are not valid");
  const uint64_t begin = j["data_offsets"][0].get<uint64_t>(), end = j["data_offsets"][1].get<uint64_t>();
  const uint64_t need = static_cast<uint64_t>(*elements) * static_cast<uint64_t>(file_dtype_bytes(t.dtype));
  if (end < begin || end > uint64_t{1} << 60 || end - begin != need)
    return data_loss(where + ": data_offsets " + j["data_offsets"].dump() + " do not hold shape " +
                     shape_text(t.shape) + " of " + dtype_name + " (" + std::to_string(need) + " bytes)");
  t.begin = data_begin + begin;
  t.end = data_begin + end;
  return t;
}

}  // namespace

const char* file_dtype_name(FileDType dtype) {
  switch (dtype) {
    case FileDType::kF32:
      return "F32";
    case FileDType::kBf16:
      return "BF16";
    case FileDType::kF16:
      return "F16";
    case FileDType::kI64:
      return "I64";
  }
  return "?";
}

int64_t file_dtype_bytes(FileDType dtype) {
  switch (dtype) {
    case FileDType::kF32:
      return 4;
    case FileDType::kBf16:
    case FileDType::kF16:
      return 2;
    case FileDType::kI64:
      return 8;
  }
  return 0;
}

int64_t TensorInfo::elements() const {
  int64_t n = 1;
  for (int64_t s : shape) n *= s;
  return n;
}

SafetensorsFile::~SafetensorsFile() {
  forget_mapping(named_);
  if (map_) munmap(const_cast<std::byte*>(map_), size_);
}

Result<std::shared_ptr<SafetensorsFile>> SafetensorsFile::open(const std::string& path) {
  // shared_ptr: views of a file's tensors (model folders, loaders) keep the mapping alive independently of each other.
  std::shared_ptr<SafetensorsFile> file(new SafetensorsFile());
  file->path_ = path;
  TROUPE_RETURN_IF_ERROR(file->map(path));
  TROUPE_RETURN_IF_ERROR(file->parse());
  return file;
}

Status SafetensorsFile::map(const std::string& path) {
  const Result<int> opened = open_regular_file(path);
  if (!opened.ok()) return not_found(path + ": cannot be opened: " + opened.error().message);
  const int fd = *opened;
  struct stat st {};
  if (fstat(fd, &st) != 0) {
    const int error = errno;
    close(fd);
    return not_found(path + ": cannot be measured: " + std::strerror(error));
  }
  size_ = static_cast<uint64_t>(st.st_size);
  if (size_ < 8) {
    close(fd);
    return data_loss(path + ": truncated: a safetensors file has at least 8 bytes, this one has " +
                     std::to_string(size_));
  }
  void* address = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd, 0);
  const int error = errno;
  close(fd);
  if (address == MAP_FAILED) return internal_error(path + ": cannot be mapped: " + std::strerror(error));
  map_ = static_cast<const std::byte*>(address);
  named_ = name_mapping(map_, size_, path);
  return {};
}

Status SafetensorsFile::parse() {
  uint64_t length = 0;
  for (size_t i = 8; i-- > 0;) length = length << 8 | std::to_integer<uint64_t>(map_[i]);
  if (length > kMaxHeaderBytes)
    return data_loss(path_ + ": header length " + std::to_string(length) + " is above the limit of " +
                     std::to_string(kMaxHeaderBytes) + "; not a safetensors file");
  if (length > size_ - 8)
    return data_loss(path_ + ": truncated: the header needs " + std::to_string(length + 8) + " bytes, the file has " +
                     std::to_string(size_));
  data_begin_ = 8 + length;
  TROUPE_RETURN_IF_ERROR(parse_header(reinterpret_cast<const char*>(map_ + 8), length));
  return check_extent();
}

Status SafetensorsFile::parse_header(const char* text, uint64_t length) {
  TROUPE_ASSIGN(const Json header, parse_json(path_, text, length));
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      for (const auto& [key, value] : entry.items())
        if (value.is_string()) metadata_[key] = value.get<std::string>();
      continue;
    }
    TROUPE_ASSIGN(TensorInfo tensor, tensor_from_json(path_, name, entry, data_begin_));
    tensors_.push_back(std::move(tensor));
  }
  std::sort(tensors_.begin(), tensors_.end(), [](const TensorInfo& a, const TensorInfo& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  for (size_t i = 0; i < tensors_.size(); ++i) by_name_[tensors_[i].name] = i;
  return {};
}

Status SafetensorsFile::check_extent() {
  uint64_t at = data_begin_;
  for (const TensorInfo& t : tensors_) {
    if (t.begin != at)
      return data_loss(path_ + ": tensor '" + t.name + "' begins at byte " + std::to_string(t.begin) + ", expected " +
                       std::to_string(at) + (t.begin < at ? " (it overlaps the tensor before it)" : " (a gap)"));
    at = t.end;
  }
  if (at > size_)
    return data_loss(path_ + ": truncated: its tensors need " + std::to_string(at) + " bytes, the file has " +
                     std::to_string(size_));
  const bool zero_tail = std::all_of(map_ + at, map_ + size_, [](std::byte b) { return b == std::byte{0}; });
  if (!zero_tail)
    return data_loss(path_ + ": " + std::to_string(size_ - at) + " bytes follow the last tensor: expected size " +
                     std::to_string(at) + ", real size " + std::to_string(size_));
  return {};
}

const TensorInfo* SafetensorsFile::find(const std::string& name) const {
  auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : &tensors_[it->second];
}

}  // namespace troupe
