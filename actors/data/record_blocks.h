#pragma once

#include <xxhash.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "actors/data/record_file.h"
#include "actors/parquet/row_file.h"
#include "actors/sources/tar_file.h"
#include "base/data/index_block.h"
#include "base/mapped_file.h"

namespace troupe {

/// A run of neighbouring records of a source.
struct RecordBlock {
  int64_t first_record = 0;   // its position in the source
  size_t begin = 0, end = 0;  // the bytes that it covers: blocks follow each other without gaps
  std::vector<RecordSpan> records;
  BlockKey content{};  // hash of these bytes and of where the records lie in them; of shard and rows, of the whole file
};

/// Cuts a source into blocks of at most kMostRecords records and about kBlockBytes bytes, the first ones the same when
/// the file grows. In a shard the records are the members KEY.json; rows are records, and a block's are of one group.
/// Cost: one pass over the bytes, of which it keeps none mapped longer than needed. One thread only; file, shard and
/// rows outlive it.
class RecordBlocks {
 public:
  static constexpr size_t kMostRecords = 512, kBlockBytes = size_t{1} << 20;
  /// Of rows, whose pictures lie between their texts and are hardly looked at.
  static constexpr size_t kRowBlockBytes = size_t{16} << 20;

  /// `shard`: the file itself when it is an archive, else null; `rows`: likewise when it has rows.
  RecordBlocks(const MappedFile& file, const TarFile* shard, const RowFile* rows = nullptr);
  /// The next block; false when there is none. The last one covers the rest of the bytes.
  bool next(RecordBlock& block);

  // Once `next` was false:
  int64_t records() const { return records_; }
  const std::vector<RecordFault>& faults() const { return faults_; }
  /// XXH3 of all bytes.
  uint64_t content_hash() const { return XXH3_64bits_digest(whole_.get()); }

 private:
  /// Hashes all of the file, which a record of a shard or of rows depends on.
  void hash_whole(const MappedFile& file);
  void find_samples(const TarFile& shard);
  bool next_record(RecordSpan& span);
  size_t end_of(const RecordSpan& span) const;
  bool is_full(const RecordBlock& block) const;
  void hash_content(RecordBlock& block);

  std::string_view bytes_;
  std::optional<RecordScanner> scanner_;  // of JSON and lines
  std::vector<RecordSpan> samples_;       // of a shard
  const RowFile* rows_;                   // null: no rows
  std::optional<BlockKey> whole_hash_;    // of shard and rows
  std::vector<RecordFault> faults_;
  std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> whole_;
  size_t at_ = 0;  // bytes covered by blocks
  int64_t records_ = 0;
  bool done_ = false;
};

}  // namespace troupe
