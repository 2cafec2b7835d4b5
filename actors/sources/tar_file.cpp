#include "actors/sources/tar_file.h"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <cctype>

#include "actors/sources/file_kind.h"

namespace troupe {
namespace {

constexpr size_t kBlock = 512, kMagicAt = 257;
/// Of one archive; a shard has thousands, and a file that states more is made to exhaust memory.
constexpr size_t kMostMembers = size_t{1} << 24;
constexpr std::string_view kCutOff = "is cut off: the archive ends in it";

/// Position of '.' behind the last '/', or the end.
size_t key_end(std::string_view name) {
  const size_t slash = name.rfind('/');
  return std::min(name.find('.', slash == std::string_view::npos ? 0 : slash + 1), name.size());
}

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes), archive_(archive_read_new(), &archive_read_free) {}

  /// Fills `members`; the reason when the archive cannot be read to its end.
  std::string run(std::vector<TarFile::Member>& members) {
    archive_read_support_format_tar(archive_.get());
    if (archive_read_open_memory(archive_.get(), bytes_.data(), bytes_.size()) != ARCHIVE_OK) return reason();
    while (true) {
      archive_entry* entry = nullptr;
      const int code = archive_read_next_header(archive_.get(), &entry);
      if (code == ARCHIVE_EOF) return {};
      if (code != ARCHIVE_OK && code != ARCHIVE_WARN) return reason();
      if (members.size() >= kMostMembers) return "it has more than 2^24 members";
      if (archive_entry_filetype(entry) != AE_IFREG || archive_entry_hardlink(entry) != nullptr) continue;
      if (archive_entry_pathname(entry) == nullptr) return "a member has no name";
      add(entry, members);
      if (members.back().fault == kCutOff) return "member '" + members.back().name + "' " + std::string(kCutOff);
    }
  }

 private:
  std::string reason() const {
    const char* text = archive_error_string(archive_.get());
    return text != nullptr ? text : "it is not understood";
  }

  void add(archive_entry* entry, std::vector<TarFile::Member>& members) {
    TarFile::Member member{archive_entry_pathname(entry), 0, static_cast<size_t>(archive_entry_size(entry)), {}};
    while (member.name.starts_with("./")) member.name.erase(0, 2);
    member.offset = std::min(bytes_.size(), static_cast<size_t>(archive_read_header_position(archive_.get())));
    member.fault = archive_entry_sparse_count(entry) > 0 ? "is sparse, which is not read" : place(member);
    if (!member.fault.empty()) member.size = 0;
    members.push_back(std::move(member));
  }

  /// Finds where the member's bytes lie; the reason when they cannot be had.
  std::string place(TarFile::Member& member) {
    if (member.size == 0) return {};
    // The archive is read from one piece of memory, so a member's first block is where the member lies.
    const void* data = nullptr;
    size_t size = 0;
    la_int64_t at = 0;
    const int code = archive_read_data_block(archive_.get(), &data, &size, &at);
    if (code != ARCHIVE_OK && code != ARCHIVE_WARN) return "cannot be read: " + reason();
    const char* begin = static_cast<const char*>(data);
    if (at != 0 || begin < bytes_.data() || begin >= bytes_.data() + bytes_.size())
      return "does not lie in the archive as one piece";
    member.offset = static_cast<size_t>(begin - bytes_.data());
    return member.size > bytes_.size() - member.offset ? std::string(kCutOff) : std::string();
  }

  std::string_view bytes_;
  std::unique_ptr<archive, decltype(&archive_read_free)> archive_;
};

}  // namespace

bool TarFile::is_tar(std::string_view bytes) { return bytes.size() >= kBlock && bytes.substr(kMagicAt, 5) == "ustar"; }

Result<std::shared_ptr<const TarFile>> TarFile::open(const std::string& path) {
  std::shared_ptr<TarFile> tar(new TarFile());
  TROUPE_ASSIGN(tar->file_, MappedFile::open(path));
  const auto bytes = tar->file_->bytes();
  if (const auto name = compression_of(bytes); !name.empty())
    return invalid_argument(path + " is compressed (" + std::string(name) +
                            "), and members of it cannot be reached; valid: an uncompressed tar archive");
  if (!is_tar(bytes)) return invalid_argument(path + " is not a tar archive");
  tar->fault_ = Reader(bytes).run(tar->members_);
  tar->file_->forget(0, bytes.size());
  for (size_t i = 0; i < tar->members_.size(); ++i) tar->by_name_[tar->members_[i].name] = i;
  return std::shared_ptr<const TarFile>(std::move(tar));
}

const TarFile::Member* TarFile::find(std::string_view name) const {
  while (name.starts_with("./")) name.remove_prefix(2);
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &members_[found->second];
}

std::vector<TarFile::Sample> TarFile::samples() const {
  std::vector<Sample> samples;
  for (size_t i = 0; i < members_.size(); ++i) {
    const auto key = std::string_view(members_[i].name).substr(0, key_end(members_[i].name));
    if (samples.empty() || samples.back().key != key) samples.push_back({std::string(key), {}});
    samples.back().members.push_back(i);
  }
  return samples;
}

std::string member_extension(std::string_view name) {
  const size_t end = key_end(name);
  std::string extension(name.substr(std::min(name.size(), end + 1)));
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return extension;
}

}  // namespace troupe
