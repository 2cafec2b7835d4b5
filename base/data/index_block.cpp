#include "base/data/index_block.h"

#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/data/byte_codec.h"

namespace troupe {
namespace {

constexpr std::string_view kMagic = "TRPBLCK4";
constexpr size_t kChecked = 16;  // offset of the first byte that the checksum covers
constexpr size_t kLeastEntryBytes = 49, kLeastSeenBytes = 16;

void write_entry(const BlockEntry& entry, ByteWriter& w) {
  w.number(static_cast<uint8_t>(entry.kind));
  w.number(entry.tokens);
  w.number(entry.supervised);
  w.number(entry.named);
  w.text(entry.id);
  w.text(entry.reason);
  w.number<uint64_t>(entry.images.size());
  for (const auto& image : entry.images) w.number(image);
  w.number<uint64_t>(entry.seen.size());
  for (const auto& seen : entry.seen) {
    w.text(seen.path);
    w.number(seen.stamp);
  }
}

bool makes_sense(const IndexedImage& image) {
  if (image.t <= 0 || image.h <= 0 || image.w <= 0 || image.token_offset < 0) return false;
  if (image.kind == MediumKind::kImage) return image.t == 1 && image.seconds == 0;
  return image.kind == MediumKind::kVideo && std::isfinite(image.seconds) && image.seconds > 0;
}

/// Whether an entry is one that a look at a record can give.
bool makes_sense(const BlockEntry& entry) {
  if (entry.kind > BlockEntry::Kind::kBad || entry.tokens < 0) return false;
  if (entry.supervised < 0 || entry.supervised > entry.tokens) return false;
  if (entry.kind == BlockEntry::Kind::kSample && entry.images.size() != entry.seen.size()) return false;
  return std::all_of(entry.images.begin(), entry.images.end(),
                     [](const IndexedImage& image) { return makes_sense(image); });
}

BlockEntry read_entry(ByteReader& r) {
  BlockEntry entry;
  entry.kind = static_cast<BlockEntry::Kind>(r.number<uint8_t>());
  entry.tokens = r.number<int32_t>();
  entry.supervised = r.number<int32_t>();
  entry.named = r.number<NamedColumns>();
  entry.id = r.text();
  entry.reason = r.text();
  entry.images.resize(r.count(sizeof(IndexedImage)));
  for (auto& image : entry.images) image = r.number<IndexedImage>();
  entry.seen.resize(r.count(kLeastSeenBytes));
  for (auto& seen : entry.seen) {
    seen.path = r.text();
    seen.stamp = r.number<uint64_t>();
  }
  return entry;
}

}  // namespace

std::string block_key_text(const BlockKey& key) {
  char text[33];
  std::snprintf(text, sizeof(text), "%016llx%016llx", static_cast<unsigned long long>(key[0]),
                static_cast<unsigned long long>(key[1]));
  return text;
}

std::string encode_block(const BlockKey& key, const std::vector<BlockEntry>& entries) {
  ByteWriter w;
  w.number(key);
  w.number<uint64_t>(entries.size());
  for (const auto& entry : entries) write_entry(entry, w);
  const std::string body = w.take();
  ByteWriter head;
  head.number(XXH3_64bits(body.data(), body.size()));
  return std::string(kMagic) + head.take() + body;
}

Result<std::vector<BlockEntry>> decode_block(std::string_view bytes, const BlockKey& key, size_t records) {
  if (bytes.size() < kChecked || !bytes.starts_with(kMagic)) return data_loss("is no block of an index");
  ByteReader r(bytes.substr(kMagic.size()));
  const auto body = bytes.substr(kChecked);
  if (r.number<uint64_t>() != XXH3_64bits(body.data(), body.size())) return data_loss("has a wrong checksum");
  if (r.number<BlockKey>() != key) return data_loss("is another block");
  std::vector<BlockEntry> entries(r.count(kLeastEntryBytes));
  if (entries.size() != records) return data_loss("has another number of records");
  for (auto& entry : entries) {
    entry = read_entry(r);
    if (!r.ok() || !makes_sense(entry)) return data_loss("does not parse");
  }
  if (!r.at_end()) return data_loss("does not parse");
  return entries;
}

}  // namespace troupe
