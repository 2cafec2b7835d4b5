#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"

namespace troupe {

/// Byte-pair encoding over bytes: the vocabulary and merges of a tokenizer.json, with a cache of words. Thread-safe
/// after create(). Source: Sennrich et al., arXiv:1508.07909; the byte alphabet of GPT-2.
class ByteLevelBpe {
 public:
  using Merge = std::pair<std::string, std::string>;
  /// Tokens and merges are spelt in the byte alphabet (one printable character a byte). InvalidArgument when a merge
  /// names a token that the vocabulary lacks.
  static Result<std::unique_ptr<ByteLevelBpe>> create(const std::unordered_map<std::string, int64_t>& vocabulary,
                                                      const std::vector<Merge>& merges);

  /// Appends the ids of one word (raw bytes). InvalidArgument when the vocabulary has no token for one of its bytes.
  Status encode(std::string_view word, std::vector<int64_t>& ids) const;
  /// The raw bytes of a token; nullptr when the id is not in the vocabulary.
  const std::string* bytes(int64_t id) const;

 private:
  struct MergeResult {
    int32_t rank, id;
  };
  struct Shard {
    std::mutex mutex;
    std::unordered_map<std::string, std::vector<int64_t>> words;
  };
  static constexpr size_t kShards = 16;
  Status merge(std::string_view word, std::vector<int64_t>& ids) const;

  std::array<int32_t, 256> byte_ids_{};
  std::unordered_map<uint64_t, MergeResult> merges_;  // (left id, right id) -> rank and merged id
  std::unordered_map<int64_t, std::string> token_bytes_;
  mutable std::array<Shard, kShards> cache_;
};

}  // namespace troupe
