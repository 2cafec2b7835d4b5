#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "actors/data/block_cache.h"
#include "actors/data/record_blocks.h"
#include "actors/data/sample_reader.h"
#include "actors/data/seen_grids.h"

namespace troupe {

/// Looks at the records of blocks: what a cache knows of a block is taken as far as the picture files are the same, the
/// rest is read, and what is new goes into the cache. Thread-safe; reader and cache outlive it.
class BlockReader {
 public:
  /// `cache`: null for none. `warn` is told at most once that it cannot be written.
  BlockReader(const SampleReader& reader, BlockCache* cache, std::function<void(const std::string&)> warn);

  struct Look {
    std::vector<BlockEntry> entries;  // one a record
    bool cached = false;              // not one record was read
    Status failed;                    // there was no memory for a record, and the look is of no use
  };
  Look look(int source, const RecordBlock& block);

 private:
  /// `path`: as SeenImage has it.
  uint64_t stamp_of(int source, const std::string& path);
  uint64_t stamp_of_frames(int source, const std::string& paths);
  /// The grid, and the stamp that the file had before the look at it.
  Result<IndexedImage> grid_of(int source, const std::string& path, uint64_t& stamp);
  /// ResourceExhausted is nobody's record's fault; what else is wrong stands in the entry.
  Result<BlockEntry> look_at(int source, const RecordSpan& span);
  Status look_at_media(int source, const Record& record, BlockEntry& entry, std::vector<IndexedImage>& grids);
  /// Brings an entry that was kept up to date with the picture files. False: its record must be read again.
  bool refresh(int source, BlockEntry& entry, bool& changed);
  BlockKey key_of(int source, const RecordBlock& block) const;
  bool taken(int source, const RecordBlock& block, size_t i) const;
  void keep(const BlockKey& key, const std::vector<BlockEntry>& entries);

  const SampleReader& reader_;
  BlockCache* cache_;
  std::function<void(const std::string&)> warn_;
  std::atomic<bool> writable_{true};
  std::vector<std::string> settings_;  // of each source: what decides a look, the program included
  SeenGrids seen_;
};

/// Whether record `record` of a source is used: the first take_records, or a fraction spread evenly over the file.
bool is_taken(const DataSource& source, int64_t record);

/// "FILE:LINE", the name of a record that has none, and "FILE:LINE (record N)" for element N, from 1, of an array.
std::string place_name(const std::string& path, int64_t line, int64_t element = 0);

}  // namespace troupe
