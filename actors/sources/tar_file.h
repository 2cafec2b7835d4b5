#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "base/result.h"

namespace troupe {

/// An uncompressed tar archive, or several behind each other, mapped: its regular members by name and in order, and
/// links whose names have an ending, with the bytes of the member that they point to. Immutable and thread-safe.
/// Folders, links to them and devices are left out, and so is what follows an archive's end mark and is no archive.
/// Cost of opening: one look at each member's header; of reading a member: nothing but its pages.
class TarFile {
 public:
  struct Member {
    std::string name;             // without a leading "./"
    size_t offset = 0, size = 0;  // where it stands: members are in this order
    size_t from = 0;              // where its bytes begin: of a link elsewhere
    bool is_link() const { return from != offset; }
    std::string fault;  // why its bytes cannot be had ("is sparse, which is not read"); empty: they can
  };
  /// A webdataset sample: the members with one key, which is the name up to the first '.' behind the last '/'. What
  /// begins with that '.', such as the ._NAME that macOS writes beside NAME, has no key and is of no sample.
  struct Sample {
    std::string key;
    std::vector<size_t> members;  // positions in members(), in the archive's order
    bool apart = false;           // members of other samples lie between its own
  };

  /// A member whose bytes are another's.
  struct Link {
    size_t member;
    std::string target;  // a member's name
    bool hard;           // of one before it
  };

  /// Whether the bytes begin as a tar archive does.
  static bool is_tar(std::string_view bytes);
  /// NotFound, or InvalidArgument with path and reason: compressed, or no tar at all.
  static Result<std::shared_ptr<const TarFile>> open(const std::string& path);

  const std::vector<Member>& members() const { return members_; }
  /// Why the archive cannot be read behind its last member; empty: it was read to its end.
  const std::string& fault() const { return fault_; }
  /// Whether members stand behind an archive's end mark.
  bool joined() const { return joined_; }
  /// The last member of that name, as unpacking would leave it; null when there is none.
  const Member* find(std::string_view name) const;
  std::string_view bytes(const Member& member) const { return file_->bytes().substr(member.from, member.size); }
  /// In the order of their first members. Cost: 8 bytes a sample beside the result.
  std::vector<Sample> samples() const;
  /// The sample, not apart, of the member whose bytes begin there.
  Sample sample_at(size_t offset) const;
  const MappedFile& file() const { return *file_; }

 private:
  TarFile() = default;
  void sort_names();
  void resolve(const std::vector<Link>& links);
  /// The last one of that name among the first `before` members; null when there is none.
  const Member* last_of(std::string_view name, size_t before) const;
  /// Empty: the member is of no sample.
  std::string_view key_of(size_t member) const;
  std::shared_ptr<const MappedFile> file_;  // shared: members outlive the archive object
  std::vector<Member> members_;
  std::string fault_;
  bool joined_ = false;
  std::vector<uint32_t> by_name_;  // positions in members_, by name and then as they come
};

/// What stands behind the key of a webdataset member, in lower case: "jpg" of "shards/000.JPG".
std::string member_extension(std::string_view name);

}  // namespace troupe
