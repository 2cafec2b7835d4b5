#include "actors/data/byte_level_bpe.h"

#include <optional>
#include <queue>

namespace troupe {
namespace {

constexpr size_t kCachedWordBytes = 48;  // longer words hardly ever come back
constexpr size_t kCachedWordsAShard = 1 << 14;

uint64_t pair_key(int32_t left, int32_t right) {
  return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
}

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
  bpe->merges_.reserve(merges.size() * 2);
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const auto& [left, right] = merges[rank];
    const auto l = vocabulary.find(left), r = vocabulary.find(right), m = vocabulary.find(left + right);
    if (l == vocabulary.end() || r == vocabulary.end() || m == vocabulary.end())
      return invalid_argument("merge " + std::to_string(rank) + " ('" + left + "' '" + right +
                              "') names a token that the vocabulary lacks");
    bpe->merges_.try_emplace(pair_key(static_cast<int32_t>(l->second), static_cast<int32_t>(r->second)),
                             MergeResult{static_cast<int32_t>(rank), static_cast<int32_t>(m->second)});
  }
  return bpe;
}

const std::string* ByteLevelBpe::bytes(int64_t id) const {
  const auto found = token_bytes_.find(id);
  return found == token_bytes_.end() ? nullptr : &found->second;
}

Status ByteLevelBpe::encode(std::string_view word, std::vector<int64_t>& ids) const {
  if (word.size() > kCachedWordBytes) return merge(word, ids);
  std::string key(word);
  Shard& shard = cache_[std::hash<std::string>()(key) % kShards];
  {
    const std::lock_guard lock(shard.mutex);
    if (const auto hit = shard.words.find(key); hit != shard.words.end()) {
      ids.insert(ids.end(), hit->second.begin(), hit->second.end());
      return {};
    }
  }
  std::vector<int64_t> fresh;
  TROUPE_RETURN_IF_ERROR(merge(word, fresh));
  ids.insert(ids.end(), fresh.begin(), fresh.end());
  const std::lock_guard lock(shard.mutex);
  if (shard.words.size() >= kCachedWordsAShard) shard.words.clear();  // bounded; common words are back at once
  shard.words.emplace(std::move(key), std::move(fresh));
  return {};
}

Status ByteLevelBpe::merge(std::string_view word, std::vector<int64_t>& ids) const {
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
    if (byte_ids_[byte] < 0) return invalid_argument("the tokenizer has no token for byte " + std::to_string(byte));
    symbols[static_cast<size_t>(i)] = {byte_ids_[byte], i - 1, i + 1 < n ? i + 1 : -1};
  }
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
  const auto offer = [&](int32_t left) {
    const Symbol& a = symbols[static_cast<size_t>(left)];
    if (a.next < 0) return;
    const Symbol& b = symbols[static_cast<size_t>(a.next)];
    const auto found = merges_.find(pair_key(a.id, b.id));
    if (found != merges_.end()) queue.push({found->second.rank, left, a.next, a.id, b.id, found->second.id});
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
