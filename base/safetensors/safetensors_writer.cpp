#include "base/safetensors/safetensors_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

namespace troupe {
namespace {

/// Header text, padded with spaces so that the tensors begin at a multiple of 8.
std::string header_text(const std::vector<TensorSpec>& tensors, const std::map<std::string, std::string>& metadata,
                        uint64_t& total) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  total = 0;
  for (const TensorSpec& t : tensors) {
    uint64_t bytes = static_cast<uint64_t>(file_dtype_bytes(t.dtype));
    for (int64_t s : t.shape) bytes *= static_cast<uint64_t>(s);
    header[t.name] = {
        {"dtype", file_dtype_name(t.dtype)}, {"shape", t.shape}, {"data_offsets", {total, total + bytes}}};
    total += bytes;
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  return text;
}

std::string partial_name(const std::string& path) { return path + ".partial"; }

}  // namespace

Result<std::unique_ptr<SafetensorsWriter>> SafetensorsWriter::create(
    const std::string& path, const std::vector<TensorSpec>& tensors,
    const std::map<std::string, std::string>& metadata) {
  uint64_t total = 0;
  const std::string text = header_text(tensors, metadata, total);
  const int fd = ::open(partial_name(path).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return not_found(partial_name(path) + ": cannot be created: " + std::strerror(errno));
  std::unique_ptr<SafetensorsWriter> writer(new SafetensorsWriter(path, fd, total));
  std::array<unsigned char, 8> length{};
  for (size_t i = 0; i < 8; ++i) length[i] = static_cast<unsigned char>(uint64_t{text.size()} >> (8 * i));
  TROUPE_RETURN_IF_ERROR(writer->write_all(length.data(), length.size()));
  TROUPE_RETURN_IF_ERROR(writer->write_all(text.data(), text.size()));
  return writer;
}

SafetensorsWriter::~SafetensorsWriter() {
  if (fd_ < 0) return;
  close(fd_);
  unlink(partial_name(path_).c_str());
}

Status SafetensorsWriter::write_all(const void* data, uint64_t bytes) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t n = ::write(fd_, at, std::min<uint64_t>(bytes, uint64_t{1} << 30));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0)
      return make_error(ErrorCode::kResourceExhausted, path_ + ": cannot be written: " + std::strerror(errno));
    at += n;
    bytes -= static_cast<uint64_t>(n);
  }
  return {};
}

Status SafetensorsWriter::append(const void* data, uint64_t bytes) {
  if (bytes > expected_ - written_)
    return invalid_argument(path_ + ": " + std::to_string(written_ + bytes) + " bytes of tensors, declared are " +
                            std::to_string(expected_));
  TROUPE_RETURN_IF_ERROR(write_all(data, bytes));
  written_ += bytes;
  return {};
}

Status SafetensorsWriter::finish() {
  if (written_ != expected_)
    return invalid_argument(path_ + ": " + std::to_string(written_) + " bytes of tensors, declared are " +
                            std::to_string(expected_));
  if (fsync(fd_) != 0)
    return make_error(ErrorCode::kResourceExhausted, path_ + ": cannot be flushed: " + std::strerror(errno));
  if (std::rename(partial_name(path_).c_str(), path_.c_str()) != 0)
    return internal_error(path_ + ": cannot be renamed into place: " + std::strerror(errno));
  close(fd_);
  fd_ = -1;
  return {};
}

}  // namespace troupe
