#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/config/cache_settings.h"
#include "base/data/index_block.h"
#include "base/result.h"

namespace troupe {

/// Blocks of indexes on disk, a file each under the block's key, for the runs to come. A file appears whole or not at
/// all; one that is damaged counts as none. Any number of processes may use one folder at once. Thread-safe.
class BlockCache {
 public:
  /// Makes the folder. FailedPrecondition when nothing can be written there.
  static Result<std::unique_ptr<BlockCache>> open(const std::string& folder, int64_t limit_bytes);
  /// The cache that the settings ask for; null, after at most one call of `warn`, when they ask for none or it cannot
  /// be had.
  static std::unique_ptr<BlockCache> open(const CacheSettings& settings,
                                          const std::function<void(const std::string&)>& warn);

  /// The block, which then counts as used just now; nothing when it is not there or damaged.
  std::optional<std::vector<BlockEntry>> get(const BlockKey& key, size_t records);
  Status put(const BlockKey& key, const std::vector<BlockEntry>& entries);
  /// Removes what was used longest ago until at most the limit is held, and what killed writers left.
  void trim();
  const std::string& folder() const { return folder_; }

 private:
  BlockCache(std::string folder, int64_t limit_bytes);
  std::string path_of(const BlockKey& key) const;

  std::string folder_, writer_;  // writer_: tells temporary files of this object from all others
  int64_t limit_bytes_;
  std::atomic<uint64_t> written_{0};  // numbers temporary files
  std::mutex trimming_;
  int64_t since_trim_ = 0;  // bytes, under trimming_
};

}  // namespace troupe
