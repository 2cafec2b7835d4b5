#include "actors/sources/tar_file.h"

#include <archive.h>
#include <archive_entry.h>
#include <xxhash.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <iterator>
#include <map>
#include <numeric>
#include <tuple>

#include "actors/sources/file_kind.h"

namespace troupe {
namespace {

constexpr size_t kBlock = 512, kMagicAt = 257;
/// Of one archive; a shard has thousands, and a file that states more is made to exhaust memory.
constexpr size_t kMostMembers = size_t{1} << 24;
constexpr int kMostHops = 8;  // of links to links
constexpr std::string_view kCutOff = "is cut off: the archive ends in it";

/// Position of '.' behind the last '/', or the end.
size_t key_end(std::string_view name) {
  const size_t slash = name.rfind('/');
  return std::min(name.find('.', slash == std::string_view::npos ? 0 : slash + 1), name.size());
}

std::string plain_name(std::string name) {
  while (name.starts_with("./")) name.erase(0, 2);
  return name;
}

/// Samples of one key become the first of them.
void join_parts(std::vector<TarFile::Sample>& samples) {
  std::vector<uint64_t> hashes;
  hashes.reserve(samples.size());
  const auto hash = [](const TarFile::Sample& s) { return XXH3_64bits(s.key.data(), s.key.size()); };
  for (const auto& sample : samples) hashes.push_back(hash(sample));
  std::sort(hashes.begin(), hashes.end());
  if (std::adjacent_find(hashes.begin(), hashes.end()) == hashes.end()) return;
  // Of the keys that may come twice; views into `samples`. No hash, as names may be made to collide.
  std::map<std::string_view, size_t> first;
  for (size_t i = 0; i < samples.size(); ++i) {
    const auto [begin, end] = std::equal_range(hashes.begin(), hashes.end(), hash(samples[i]));
    if (end - begin < 2) continue;
    const auto [found, is_new] = first.try_emplace(samples[i].key, i);
    if (is_new) continue;
    TarFile::Sample& whole = samples[found->second];
    whole.apart = true;
    whole.members.insert(whole.members.end(), samples[i].members.begin(), samples[i].members.end());
    samples[i].members.clear();
  }
  first.clear();
  std::erase_if(samples, [](const auto& sample) { return sample.members.empty(); });
}

class Reader {
 public:
  using Link = TarFile::Link;
  explicit Reader(std::string_view bytes) : bytes_(bytes), archive_(archive_read_new(), &archive_read_free) {}

  /// Fills `members`; the reason when the archive cannot be read to its end.
  std::string run(std::vector<TarFile::Member>& members) {
    archive_read_support_format_tar(archive_.get());
    archive_read_set_format_option(archive_.get(), "tar", "read_concatenated_archives", "1");
    if (archive_read_open_memory(archive_.get(), bytes_.data(), bytes_.size()) != ARCHIVE_OK) return reason();
    while (true) {
      archive_entry* entry = nullptr;
      const int code = archive_read_next_header(archive_.get(), &entry);
      if (code == ARCHIVE_EOF) return {};
      if (code != ARCHIVE_OK && code != ARCHIVE_WARN) return is_behind_end() ? "" : reason();
      if (members.size() >= kMostMembers) return "it has more than 2^24 members";
      const bool link = archive_entry_filetype(entry) == AE_IFLNK || archive_entry_hardlink(entry) != nullptr;
      if (archive_entry_filetype(entry) != AE_IFREG && !link) {
        note_end(header(), header());
        continue;
      }
      if (archive_entry_pathname(entry) == nullptr) return "a member has no name";
      if (link)
        add_link(entry, members);
      else
        add(entry, members);
      if (members.back().fault == kCutOff) return "member '" + members.back().name + "' " + std::string(kCutOff);
    }
  }

  const std::vector<Link>& links() const { return links_; }
  bool joined() const { return joined_; }

 private:
  /// Takes where a member's bytes lie. What stands before them, behind the member before, is headers or an end mark.
  void note_end(size_t begin, size_t end) {
    joined_ = joined_ || (ended_ > 0 && has_end_mark(ended_, begin));
    ended_ = (std::max(end, begin + 1) + kBlock - 1) / kBlock * kBlock;
  }
  bool has_end_mark(size_t begin, size_t end) const {
    for (size_t at = begin; at < end && bytes_.size() - std::min(at, bytes_.size()) >= kBlock; at += kBlock)
      if (bytes_.substr(at, kBlock).find_first_not_of('\0') == std::string_view::npos) return true;
    return false;
  }
  /// Whether an end mark, two empty blocks or nothing but zeros, follows the last member, and no archive behind it.
  bool is_behind_end() const {
    const auto rest = bytes_.substr(std::min(ended_, bytes_.size()));
    if (ended_ == 0 || rest.size() < kBlock || rest.find("ustar") != std::string_view::npos) return false;
    return rest.substr(0, 2 * kBlock).find_first_not_of('\0') == std::string_view::npos;
  }

  std::string reason() const {
    const char* text = archive_error_string(archive_.get());
    return text != nullptr ? text : "it is not understood";
  }

  /// Where the header lies that was read last.
  size_t header() const {
    return std::min(bytes_.size(), static_cast<size_t>(archive_read_header_position(archive_.get())));
  }

  /// Its name, and for now where its header lies.
  TarFile::Member member_of(archive_entry* entry) const {
    return {plain_name(archive_entry_pathname(entry)), header(), 0, 0, {}};
  }

  /// One of a folder, whose name has no ending, is of no sample.
  void add_link(archive_entry* entry, std::vector<TarFile::Member>& members) {
    TarFile::Member member = member_of(entry);
    if (key_end(member.name) == member.name.size()) return;
    const char *hard = archive_entry_hardlink(entry), *soft = archive_entry_symlink(entry);
    const auto beside = std::filesystem::path(member.name).parent_path() / (soft != nullptr ? soft : "");
    std::string target = plain_name(hard != nullptr ? hard : beside.lexically_normal().string());
    while (target.ends_with('/')) target.pop_back();
    links_.push_back({members.size(), std::move(target), hard != nullptr});
    member.fault = "is a link to '" + links_.back().target + "', which is not in the archive";
    note_end(member.offset, member.offset);
    members.push_back(std::move(member));
  }

  void add(archive_entry* entry, std::vector<TarFile::Member>& members) {
    TarFile::Member member = member_of(entry);
    member.size = static_cast<size_t>(archive_entry_size(entry));
    member.fault = archive_entry_sparse_count(entry) > 0 ? "is sparse, which is not read" : place(member);
    if (!member.fault.empty()) member.size = 0;
    member.from = member.offset;
    note_end(member.offset, member.offset + member.size);
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
  std::vector<Link> links_;
  size_t ended_ = 0;     // the block behind the last member
  bool joined_ = false;  // members stand behind an archive's end mark
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
  Reader reader(bytes);
  tar->fault_ = reader.run(tar->members_);
  tar->file_->forget(0, bytes.size());
  tar->joined_ = reader.joined();
  tar->sort_names();
  tar->resolve(reader.links());
  return std::shared_ptr<const TarFile>(std::move(tar));
}

void TarFile::sort_names() {
  by_name_.resize(members_.size());
  std::iota(by_name_.begin(), by_name_.end(), 0U);
  std::sort(by_name_.begin(), by_name_.end(), [&](uint32_t a, uint32_t b) {
    const int order = members_[a].name.compare(members_[b].name);
    return order != 0 ? order < 0 : a < b;
  });
}

void TarFile::resolve(const std::vector<Link>& links) {
  for (int hop = 0; hop < kMostHops; ++hop)
    for (const Link& link : links) {
      Member& member = members_[link.member];
      const Member* target = last_of(link.target, link.hard ? link.member : members_.size());
      if (member.fault.empty() || target == nullptr || target == &member) continue;
      if (target->fault.empty()) std::tie(member.from, member.size) = std::pair(target->from, target->size);
      // Words of words would grow with each link of a chain.
      member.fault = target->fault.empty() ? "" : "is a link to '" + link.target + "', which cannot be had itself";
    }
  // Links to folders are of no sample.
  std::vector<bool> gone(members_.size());
  for (const Link& link : links) {
    const std::string folder = link.target + "/";
    const auto below = std::lower_bound(by_name_.begin(), by_name_.end(), folder,
                                        [&](uint32_t i, const std::string& name) { return members_[i].name < name; });
    const bool folder_of_all = link.target.empty() || link.target == ".";
    const bool is_folder = folder_of_all || (below != by_name_.end() && members_[*below].name.starts_with(folder));
    gone[link.member] = is_folder && !members_[link.member].fault.empty();
  }
  if (std::find(gone.begin(), gone.end(), true) == gone.end()) return;
  size_t kept = 0;
  for (size_t i = 0; i < members_.size(); ++i)
    if (!gone[i] && kept++ != i) members_[kept - 1] = std::move(members_[i]);
  members_.resize(kept);
  sort_names();
}

const TarFile::Member* TarFile::last_of(std::string_view name, size_t before) const {
  const auto behind = std::upper_bound(by_name_.begin(), by_name_.end(), name, [&](std::string_view n, uint32_t i) {
    return n != members_[i].name ? n < members_[i].name : before <= i;
  });
  if (behind == by_name_.begin()) return nullptr;
  const Member& last = members_[*std::prev(behind)];
  return last.name == name ? &last : nullptr;
}

const TarFile::Member* TarFile::find(std::string_view name) const {
  while (name.starts_with("./")) name.remove_prefix(2);
  return last_of(name, members_.size());
}

std::string_view TarFile::key_of(size_t member) const {
  const std::string_view name = members_[member].name;
  const auto key = name.substr(0, key_end(name));
  return key.ends_with('/') ? std::string_view() : key;
}

std::vector<TarFile::Sample> TarFile::samples() const {
  std::vector<Sample> samples;
  for (size_t i = 0; i < members_.size(); ++i) {
    const auto key = key_of(i);
    if (key.empty()) continue;
    if (samples.empty() || samples.back().key != key) samples.push_back({std::string(key), {}});
    samples.back().members.push_back(i);
  }
  join_parts(samples);
  return samples;
}

TarFile::Sample TarFile::sample_at(size_t offset) const {
  const auto at =
      std::partition_point(members_.begin(), members_.end(), [&](const auto& m) { return m.offset < offset; });
  if (at == members_.end()) return {};
  const auto own = static_cast<size_t>(at - members_.begin());
  Sample sample{std::string(key_of(own)), {}};
  const auto is_near = [&](size_t i) { return key_of(i).empty() || key_of(i) == sample.key; };
  size_t first = own;
  while (first > 0 && is_near(first - 1)) --first;
  for (size_t i = first; i < members_.size() && is_near(i); ++i)
    if (key_of(i) == sample.key) sample.members.push_back(i);
  return sample;
}

std::string member_extension(std::string_view name) {
  const size_t end = key_end(name);
  std::string extension(name.substr(std::min(name.size(), end + 1)));
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return extension;
}

}  // namespace troupe
