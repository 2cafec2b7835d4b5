#include "actors/data/block_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <random>

#include "base/mapped_file.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEnding = ".block";
constexpr auto kTemporaryLives = std::chrono::hours(1);  // no writer takes so long for a block
constexpr int64_t kTrimEvery = 16;                       // times in the writing of as much as the limit

Error cannot(const std::string& what, const std::string& path) {
  return make_error(ErrorCode::kFailedPrecondition, "cannot " + what + " " + path + ": " + std::strerror(errno));
}

Status write_file(const std::string& path, std::string_view bytes) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) return cannot("create", path);
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      Error error = cannot("write", path);
      ::close(fd);
      return error;
    }
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return ::close(fd) == 0 ? Status() : Status(cannot("write", path));
}

/// A file of the cache and when it was used last.
struct Held {
  fs::file_time_type used;
  int64_t bytes;
  fs::path path;
};

}  // namespace

BlockCache::BlockCache(std::string folder, int64_t limit_bytes)
    : folder_(std::move(folder)), limit_bytes_(limit_bytes) {
  std::random_device device;  // process numbers of machines that share the folder may be alike
  writer_ = ".tmp" + std::to_string(::getpid()) + "-" + std::to_string(device()) + "-";
}

Result<std::unique_ptr<BlockCache>> BlockCache::open(const std::string& folder, int64_t limit_bytes) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    return make_error(ErrorCode::kFailedPrecondition, "cannot make the folder " + folder + ": " + error.message());
  if (::access(folder.c_str(), W_OK | X_OK) != 0) return cannot("write into", folder);
  return std::unique_ptr<BlockCache>(new BlockCache(folder, limit_bytes));
}

std::unique_ptr<BlockCache> BlockCache::open(const CacheSettings& settings,
                                             const std::function<void(const std::string&)>& warn) {
  std::string warning = settings.warning;
  std::unique_ptr<BlockCache> cache;
  if (!settings.folder.empty()) {
    auto opened = open(settings.folder, settings.limit_bytes);
    if (opened.ok())
      cache = std::move(*opened);
    else
      warning = "the index is built without what earlier runs know: " + opened.error().message +
                "; valid: TROUPE_CACHE=FOLDER, or TROUPE_CACHE=off";
  }
  if (!warning.empty() && warn) warn(warning);
  return cache;
}

std::string BlockCache::path_of(const BlockKey& key) const {
  const std::string name = block_key_text(key);
  return folder_ + "/" + name.substr(0, 2) + "/" + name + std::string(kEnding);
}

std::optional<std::vector<BlockEntry>> BlockCache::get(const BlockKey& key, size_t records) {
  const std::string path = path_of(key);
  const auto file = MappedFile::open(path);
  if (!file.ok()) return std::nullopt;
  auto entries = decode_block((*file)->bytes(), key, records);
  if (!entries.ok()) return std::nullopt;
  ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0);  // in vain in a folder that is read only
  return std::move(entries).value();
}

Status BlockCache::put(const BlockKey& key, const std::vector<BlockEntry>& entries) {
  const std::string path = path_of(key), bytes = encode_block(key, entries);
  const std::string temporary = path + writer_ + std::to_string(written_++);
  std::error_code error;
  fs::create_directory(fs::path(path).parent_path(), error);
  if (auto written = write_file(temporary, bytes); !written.ok()) {
    ::unlink(temporary.c_str());
    return written;
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    Error failed = cannot("rename " + temporary + " to", path);
    ::unlink(temporary.c_str());
    return failed;
  }
  {
    const std::lock_guard lock(trimming_);
    since_trim_ += static_cast<int64_t>(bytes.size());
    if (since_trim_ < limit_bytes_ / kTrimEvery) return {};
  }
  trim();
  return {};
}

void BlockCache::trim() {
  const std::lock_guard lock(trimming_);
  since_trim_ = 0;
  std::vector<Held> held;
  int64_t bytes = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder_, error), end; !error && at != end; at.increment(error)) {
    std::error_code gone;  // another process may trim too
    if (!at->is_regular_file(gone) || gone) continue;
    Held file{at->last_write_time(gone), 0, at->path()};
    if (!gone) file.bytes = static_cast<int64_t>(at->file_size(gone));
    if (gone) continue;
    const bool temporary = file.path.extension() != kEnding;
    if (temporary && fs::file_time_type::clock::now() - file.used > kTemporaryLives) fs::remove(file.path, gone);
    if (temporary) continue;
    bytes += file.bytes;
    held.push_back(std::move(file));
  }
  std::sort(held.begin(), held.end(), [](const Held& a, const Held& b) { return a.used < b.used; });
  for (size_t i = 0; i < held.size() && bytes > limit_bytes_; ++i) {
    std::error_code gone;
    fs::remove(held[i].path, gone);
    bytes -= held[i].bytes;
  }
}

}  // namespace troupe
