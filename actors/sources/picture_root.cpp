#include "actors/sources/picture_root.h"

#include <sys/stat.h>

#include <algorithm>
#include <climits>
#include <filesystem>

#include "actors/sources/inline_data.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;

std::string with_slashes(std::string path) {
  std::replace(path.begin(), path.end(), '\\', '/');
  return path;
}

uint64_t stamp_of_file(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return 0;
  // The time of the last change of any kind cannot be set back, as that of the content can.
  uint64_t stamp = static_cast<uint64_t>(info.st_size);
  for (const auto part : {static_cast<uint64_t>(info.st_ino), static_cast<uint64_t>(info.st_mtim.tv_sec),
                          static_cast<uint64_t>(info.st_mtim.tv_nsec), static_cast<uint64_t>(info.st_ctim.tv_sec),
                          static_cast<uint64_t>(info.st_ctim.tv_nsec)})
    stamp = (stamp ^ (stamp >> 31)) * 0x9E3779B97F4A7C15ULL + part;
  return stamp | 1;
}

}  // namespace

Result<std::unique_ptr<PictureRoot>> PictureRoot::create(const std::string& root,
                                                         std::shared_ptr<const TarFile> shard) {
  std::unique_ptr<PictureRoot> made(new PictureRoot());
  made->shard_ = std::move(shard);
  std::error_code ignored;
  if (fs::is_regular_file(root, ignored)) {
    TROUPE_ASSIGN(made->archive_, TarFile::open(root));
    if (!made->archive_->fault().empty())
      return invalid_argument(root + " is a tar archive that cannot be read: " + made->archive_->fault());
    made->archive_path_ = root;
  } else {
    made->folder_ = root;
  }
  return made;
}

const TarFile::Member* PictureRoot::member(const std::string& path, std::shared_ptr<const TarFile>& in) const {
  for (const auto& tar : {shard_, archive_}) {
    if (tar == nullptr) continue;
    in = tar;
    if (const auto* found = tar->find(path)) return found;
    if (path.find('\\') != std::string::npos)
      if (const auto* found = tar->find(with_slashes(path))) return found;
  }
  return nullptr;
}

std::string PictureRoot::below_folder(const std::string& path) const {
  const fs::path file = fs::path(folder_) / path;
  std::error_code ignored;
  if (path.find('\\') != std::string::npos && !fs::exists(file, ignored))
    return (fs::path(folder_) / with_slashes(path)).string();
  return file.string();
}

Result<MediaBytes> PictureRoot::open(const std::string& path, const std::string& what) const {
  const std::string name = what + " " + shown_path(path);
  if (is_inline_data(path)) {
    auto decoded = decode_inline_data(path);
    if (!decoded.ok()) return make_error(decoded.error().code, name + " " + decoded.error().message);
    auto owner = std::make_shared<const std::string>(std::move(decoded).value());
    const std::string_view bytes = *owner;
    return MediaBytes(std::move(owner), bytes);
  }
  if (path.find("://") != std::string::npos)
    return invalid_argument(name + " is a URL; files, members of tar archives and data URIs are read");
  if (path.find('\0') != std::string::npos) return invalid_argument(name + " has a zero byte in its path");
  std::shared_ptr<const TarFile> tar;
  if (const auto* found = member(path, tar)) {
    if (!found->fault.empty()) return invalid_argument(name + " " + found->fault);
    return MediaBytes(tar, tar->bytes(*found));
  }
  TROUPE_ASSIGN(const auto file, file_of(path));
  auto mapped = MappedFile::open(file);
  if (!mapped.ok() && path.size() > NAME_MAX)  // the reason repeats the path
    return make_error(mapped.error().code,
                      name + " cannot be opened; its path has " + std::to_string(path.size()) + " bytes");
  if (!mapped.ok()) {
    Error reason = mapped.error();
    std::error_code ignored;
    if (!fs::exists(file, ignored))
      reason.message +=
          std::string("; valid: a file there") + (fs::path(path).is_relative() ? ", or another image_root" : "") +
          (shard_ != nullptr ? ", a member of the archive, or columns: {ignored: KEY} where the record's own "
                               "members are meant"
                             : "");
    return wrap(reason, name);
  }
  const auto bytes = (*mapped)->bytes();
  return MediaBytes(std::move(mapped).value(), bytes);
}

Result<std::string> PictureRoot::file_of(const std::string& path) const {
  std::shared_ptr<const TarFile> tar;
  if (is_inline_data(path) || member(path, tar) != nullptr)
    return not_found(image_name(path) + " is no file of its own");
  if (folder_.empty() && !fs::path(path).is_absolute())
    return not_found(image_name(path) + " is not in the archive " + archive_path_);
  return below_folder(path);
}

uint64_t PictureRoot::stamp(const std::string& path) const {
  if (is_inline_data(path)) return 1;  // part of the record
  std::shared_ptr<const TarFile> tar;
  if (member(path, tar) != nullptr) return tar == shard_ ? 1 : stamp_of_file(archive_path_);
  const auto file = file_of(path);
  return file.ok() ? stamp_of_file(*file) : 0;
}

}  // namespace troupe
