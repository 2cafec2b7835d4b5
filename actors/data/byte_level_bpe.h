#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"

namespace troupe {

/// Words that were encoded lately and their ids; direct-mapped, so a newcomer takes the place of an older one. For one
/// thread at a time.
class WordCache {
 public:
  WordCache() : entries_(kEntries) {}

 private:
  friend class ByteLevelBpe;
  static constexpr size_t kEntries = 1 << 15, kBytes = 22, kIds = 8;  // longer words hardly ever come back
  struct Entry {                                                      // one cache line
    uint64_t hash = 0;
    std::array<int32_t, kIds> ids{};
    std::array<char, kBytes> word{};
    uint8_t bytes = 0, count = 0;
  };
  std::vector<Entry> entries_;
};

/// Byte-pair encoding over bytes: the vocabulary and merges of a tokenizer.json. Immutable after create(). Source:
/// Sennrich et al., arXiv:1508.07909; the byte alphabet of GPT-2.
class ByteLevelBpe {
 public:
  using Merge = std::pair<std::string, std::string>;
  /// Tokens and merges are spelt in the byte alphabet (one printable character a byte). InvalidArgument when a merge
  /// names a token that the vocabulary lacks.
  static Result<std::unique_ptr<ByteLevelBpe>> create(const std::unordered_map<std::string, int64_t>& vocabulary,
                                                      const std::vector<Merge>& merges);

  /// Appends the ids of one word (raw bytes). InvalidArgument when the vocabulary has no token for one of its bytes.
  Status encode(std::string_view word, WordCache& cache, std::vector<int64_t>& ids) const;
  /// The raw bytes of a token; nullptr when the id is not in the vocabulary.
  const std::string* bytes(int64_t id) const;

 private:
  /// A pair of tokens that merges: its place in the list of merges, and what comes out.
  struct RankedMerge {
    uint64_t pair;
    int32_t rank, id;
  };
  /// nullptr when the pair does not merge.
  const RankedMerge* merge_of(int32_t left, int32_t right) const;
  Status merge_short(std::string_view word, std::vector<int64_t>& ids) const;
  Status merge_long(std::string_view word, std::vector<int64_t>& ids) const;
  Error no_token_for(unsigned char byte) const;

  std::array<int32_t, 256> byte_ids_{};
  std::vector<RankedMerge> merges_;  // open addressing, a power of two; an empty place has rank -1
  std::unordered_map<int64_t, std::string> token_bytes_;
};

}  // namespace troupe
