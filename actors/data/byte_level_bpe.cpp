#include "actors/data/byte_level_bpe.h"

#include <xxhash.h>

#include <bit>
#include <cstring>
#include <limits>
#include <optional>
#include <queue>

namespace troupe {
namespace {

constexpr size_t kShortBytes = 64;  // up to here the next merge is searched for, beyond it is queued

uint64_t pair_key(int32_t left, int32_t right) {
  return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
}

/// Where the search for a pair begins in a table of `size` places, a power of two.
size_t place_of(uint64_t pair, size_t size) { return (pair * 0x9E3779B97F4A7C15u >> 20) & (size - 1); }

/// The alphabet: printable Latin-1 bytes stand for themselves, the others for U+0100 onwards in byte order.
std::array<uint16_t, 256> byte_alphabet() {
  std::array<uint16_t, 256> letters{};
  uint16_t next = 256;
  for (unsigned b = 0; b < 256; ++b) {
    const bool printable = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
    letters[b] = printable ? static_cast<uint16_t>(b) : next++;
  }
  return letters;
}

std::string utf8_of(uint16_t letter) {  // below U+0800
  if (letter < 0x80) return std::string(1, static_cast<char>(letter));
  return {static_cast<char>(0xC0 | letter >> 6), static_cast<char>(0x80 | (letter & 0x3F))};
}

/// The raw bytes that a token's spelling stands for; nothing when a character is not of the alphabet. `bytes_of`: by
/// letter, -1 for none.
std::optional<std::string> raw_bytes(const std::string& spelling, const std::vector<int16_t>& bytes_of) {
  std::string raw;
  raw.reserve(spelling.size());
  for (size_t i = 0; i < spelling.size(); ++i) {
    const auto letter = static_cast<unsigned char>(spelling[i]);
    size_t code = letter;
    if (letter >= 0x80) {
      if (letter < 0xC2 || letter > 0xDF || i + 1 == spelling.size()) return std::nullopt;
      code = static_cast<size_t>(letter & 0x1F) << 6 | (static_cast<unsigned char>(spelling[++i]) & 0x3Fu);
    }
    if (code >= bytes_of.size() || bytes_of[code] < 0) return std::nullopt;
    raw += static_cast<char>(bytes_of[code]);
  }
  return raw;
}

}  // namespace

Result<std::unique_ptr<ByteLevelBpe>> ByteLevelBpe::create(const std::unordered_map<std::string, int64_t>& vocabulary,
                                                           const std::vector<Merge>& merges) {
  std::unique_ptr<ByteLevelBpe> bpe(new ByteLevelBpe());
  std::vector<int16_t> bytes_of(512, -1);
  const auto letters = byte_alphabet();
  for (size_t b = 0; b < 256; ++b) {
    bytes_of[letters[b]] = static_cast<int16_t>(b);
    const auto id = vocabulary.find(utf8_of(letters[b]));
    bpe->byte_ids_[b] = id == vocabulary.end() ? -1 : static_cast<int32_t>(id->second);
  }
  bpe->token_bytes_.reserve(vocabulary.size());
  for (const auto& [spelling, id] : vocabulary)
    if (auto raw = raw_bytes(spelling, bytes_of)) bpe->token_bytes_[id] = std::move(*raw);
  bpe->merges_.assign(std::bit_ceil(merges.size() * 2 + 1), RankedMerge{0, -1, -1});
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const auto& [left, right] = merges[rank];
    const auto l = vocabulary.find(left), r = vocabulary.find(right), m = vocabulary.find(left + right);
    if (l == vocabulary.end() || r == vocabulary.end() || m == vocabulary.end())
      return invalid_argument("merge " + std::to_string(rank) + " ('" + left + "' '" + right +
                              "') names a token that the vocabulary lacks");
    const uint64_t pair = pair_key(static_cast<int32_t>(l->second), static_cast<int32_t>(r->second));
    size_t place = place_of(pair, bpe->merges_.size());
    while (bpe->merges_[place].rank >= 0 && bpe->merges_[place].pair != pair)
      place = (place + 1) & (bpe->merges_.size() - 1);
    if (bpe->merges_[place].rank < 0)
      bpe->merges_[place] = {pair, static_cast<int32_t>(rank), static_cast<int32_t>(m->second)};
  }
  return bpe;
}

const std::string* ByteLevelBpe::bytes(int64_t id) const {
  const auto found = token_bytes_.find(id);
  return found == token_bytes_.end() ? nullptr : &found->second;
}

const ByteLevelBpe::RankedMerge* ByteLevelBpe::merge_of(int32_t left, int32_t right) const {
  const uint64_t pair = pair_key(left, right);
  for (size_t place = place_of(pair, merges_.size());; place = (place + 1) & (merges_.size() - 1)) {
    const RankedMerge& merge = merges_[place];
    if (merge.rank < 0) return nullptr;
    if (merge.pair == pair) return &merge;
  }
}

Error ByteLevelBpe::no_token_for(unsigned char byte) const {
  return invalid_argument("the tokenizer has no token for byte " + std::to_string(byte));
}

Status ByteLevelBpe::encode(std::string_view word, WordCache& cache, std::vector<int64_t>& ids) const {
  if (word.size() > kShortBytes) return merge_long(word, ids);
  if (word.size() > WordCache::kBytes) return merge_short(word, ids);
  const uint64_t hash = XXH3_64bits(word.data(), word.size());
  WordCache::Entry& entry = cache.entries_[hash & (WordCache::kEntries - 1)];
  if (entry.hash == hash && entry.bytes == word.size() &&
      std::memcmp(entry.word.data(), word.data(), word.size()) == 0) {
    ids.insert(ids.end(), entry.ids.begin(), entry.ids.begin() + entry.count);
    return {};
  }
  const size_t before = ids.size();
  TROUPE_RETURN_IF_ERROR(merge_short(word, ids));
  const size_t count = ids.size() - before;
  if (count > WordCache::kIds) return {};
  entry.hash = hash;
  entry.bytes = static_cast<uint8_t>(word.size());
  entry.count = static_cast<uint8_t>(count);
  std::memcpy(entry.word.data(), word.data(), word.size());
  for (size_t i = 0; i < count; ++i) entry.ids[i] = static_cast<int32_t>(ids[before + i]);
  return {};
}

Status ByteLevelBpe::merge_short(std::string_view word, std::vector<int64_t>& ids) const {
  constexpr int32_t kNone = std::numeric_limits<int32_t>::max();
  struct Part {
    int32_t id, rank, merged;  // rank and result of merging with the next part
  };
  std::array<Part, kShortBytes> parts;
  size_t count = word.size();
  for (size_t i = 0; i < count; ++i) {
    const auto byte = static_cast<unsigned char>(word[i]);
    if (byte_ids_[byte] < 0) return no_token_for(byte);
    parts[i].id = byte_ids_[byte];
  }
  const auto look = [&](size_t i) {
    const RankedMerge* merge = i + 1 < count ? merge_of(parts[i].id, parts[i + 1].id) : nullptr;
    parts[i].rank = merge == nullptr ? kNone : merge->rank;
    parts[i].merged = merge == nullptr ? -1 : merge->id;
  };
  for (size_t i = 0; i < count; ++i) look(i);
  for (;;) {
    size_t best = 0;
    for (size_t i = 1; i < count; ++i)
      if (parts[i].rank < parts[best].rank) best = i;
    if (count == 0 || parts[best].rank == kNone) break;
    parts[best].id = parts[best].merged;
    --count;
    for (size_t i = best + 1; i < count; ++i) parts[i] = parts[i + 1];
    look(best);
    if (best > 0) look(best - 1);
  }
  for (size_t i = 0; i < count; ++i) ids.push_back(parts[i].id);
  return {};
}

Status ByteLevelBpe::merge_long(std::string_view word, std::vector<int64_t>& ids) const {
  struct Symbol {
    int32_t id, previous, next;
  };
  struct Candidate {
    int32_t rank, left, right, left_id, right_id, merged;
    bool operator>(const Candidate& o) const { return rank != o.rank ? rank > o.rank : left > o.left; }
  };
  if (word.size() > size_t{1} << 30)
    return invalid_argument("a word of " + std::to_string(word.size()) + " bytes is longer than 1 GiB");
  const auto n = static_cast<int32_t>(word.size());
  std::vector<Symbol> symbols(word.size());
  for (int32_t i = 0; i < n; ++i) {
    const auto byte = static_cast<unsigned char>(word[static_cast<size_t>(i)]);
    if (byte_ids_[byte] < 0) return no_token_for(byte);
    symbols[static_cast<size_t>(i)] = {byte_ids_[byte], i - 1, i + 1 < n ? i + 1 : -1};
  }
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
  const auto offer = [&](int32_t left) {
    const Symbol& a = symbols[static_cast<size_t>(left)];
    if (a.next < 0) return;
    const Symbol& b = symbols[static_cast<size_t>(a.next)];
    const RankedMerge* found = merge_of(a.id, b.id);
    if (found != nullptr) queue.push({found->rank, left, a.next, a.id, b.id, found->id});
  };
  for (int32_t i = 0; i < n; ++i) offer(i);
  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    Symbol& left = symbols[static_cast<size_t>(best.left)];
    Symbol& right = symbols[static_cast<size_t>(best.right)];
    if (left.id != best.left_id || right.id != best.right_id || left.next != best.right)
      continue;  // overtaken by another merge
    left.id = best.merged;
    left.next = right.next;
    right.id = -1;
    if (left.next >= 0) symbols[static_cast<size_t>(left.next)].previous = best.left;
    if (left.previous >= 0) offer(left.previous);
    offer(best.left);
  }
  for (int32_t i = n > 0 ? 0 : -1; i >= 0; i = symbols[static_cast<size_t>(i)].next)
    ids.push_back(symbols[static_cast<size_t>(i)].id);
  return {};
}

}  // namespace troupe
