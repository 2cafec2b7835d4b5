#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/data/sample_index.h"
#include "base/result.h"

/// What a look at a block of records found, in the form in which it is kept between runs. Pure functions.
namespace troupe {

/// Hash of everything that decides what a look at a block finds, the picture files excepted.
using BlockKey = std::array<uint64_t, 2>;
/// 32 hexadecimal digits.
std::string block_key_text(const BlockKey& key);

/// A picture or video that a record names, as it was when it was looked at.
struct SeenImage {
  /// As the record writes it, the frames of a video with zero bytes between them; empty: the record itself holds it.
  std::string path;
  uint64_t stamp = 0;  // PictureRoot::stamp, of frames all together
};

/// What a record or one of its turns has of its source's columns: bit i for the i-th.
struct NamedColumns {
  uint32_t held = 0;   // something under the key that the column names
  uint32_t usual = 0;  // nothing there, or the column names none, and something under a key that it has without a name
};

/// What is known of one record. Places and limits on the length are not in it: they are known without a look.
struct BlockEntry {
  enum class Kind : uint8_t { kNotTaken, kSample, kBad } kind = Kind::kNotTaken;
  int32_t tokens = 0, supervised = 0;
  NamedColumns named;
  std::vector<IndexedImage> images;
  std::string id, reason;
  std::vector<SeenImage> seen;  // of a sample as many as images; of a bad record those that were looked at
};

/// A file's bytes: magic, checksum, key, entries.
std::string encode_block(const BlockKey& key, const std::vector<BlockEntry>& entries);
/// DataLoss with the reason: no block, of another version or key, a wrong checksum, other than `records` entries, or
/// values that no record has. Never trusts a count or a size in the file.
Result<std::vector<BlockEntry>> decode_block(std::string_view bytes, const BlockKey& key, size_t records);

}  // namespace troupe
