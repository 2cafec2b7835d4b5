#include "actors/data/block_reader.h"

#include <xxhash.h>

#include <cmath>
#include <filesystem>

#include "actors/data/placeholders.h"
#include "base/version/program_hash.h"

namespace troupe {
namespace {

constexpr char kBetweenFrames = '\0';  // no path has one

/// SeenImage::path of a video: what lies outside of the record.
std::string seen_path(const RecordVideo& video) {
  if (video.is_file()) return video.file.in_record() ? std::string() : video.file.path;
  std::string paths;
  for (const auto& frame : video.frames)
    if (!frame.in_record()) paths += frame.path + kBetweenFrames;
  return paths;
}

}  // namespace

bool is_taken(const DataSource& source, int64_t record) {
  if (source.take_records >= 0) return record < source.take_records;
  if (source.take_fraction >= 1) return true;
  // Record i is taken when the running count round(f * i) moves on: spread evenly, and round(f * total) in all.
  const auto count = [&](int64_t records) { return std::llround(source.take_fraction * static_cast<double>(records)); };
  return count(record + 1) > count(record);
}

std::string place_name(const std::string& path, int64_t line, int64_t element) {
  return std::filesystem::path(path).filename().string() + ":" + std::to_string(line) +
         (element > 0 ? " (record " + std::to_string(element) + ")" : "");
}

BlockReader::BlockReader(const SampleReader& reader, BlockCache* cache, std::function<void(const std::string&)> warn)
    : reader_(reader), cache_(cache), warn_(std::move(warn)) {
  const auto program = cache != nullptr ? program_hash() : Result<uint64_t>(uint64_t{0});
  if (!program.ok()) {
    cache_ = nullptr;
    if (warn_) warn_("the index is built without what earlier runs know: " + program.error().message);
  }
  for (int s = 0; s < reader.sources(); ++s)
    settings_.push_back(reader.look_settings(s) + std::to_string(program.ok() ? *program : 0));
}

bool BlockReader::taken(int source, const RecordBlock& block, size_t i) const {
  return is_taken(reader_.source(source), block.first_record + static_cast<int64_t>(i));
}

BlockKey BlockReader::key_of(int source, const RecordBlock& block) const {
  std::string text = settings_[static_cast<size_t>(source)];
  for (const uint64_t part : block.content) text += '\n' + std::to_string(part);
  text += '\n';
  for (size_t i = 0; i < block.records.size(); ++i) text += taken(source, block, i) ? '1' : '0';
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return {hash.high64, hash.low64};
}

BlockReader::Look BlockReader::look(int source, const RecordBlock& block) {
  Look out;
  const BlockKey key = key_of(source, block);
  bool changed = false, known = false;
  if (cache_ != nullptr) {
    if (auto kept = cache_->get(key, block.records.size())) {
      out.entries = std::move(*kept);
      known = true;
    }
  }
  out.cached = true;
  out.entries.resize(block.records.size());
  for (size_t i = 0; i < block.records.size(); ++i) {
    if (!taken(source, block, i)) continue;
    BlockEntry& entry = out.entries[i];
    if (known && entry.kind != BlockEntry::Kind::kNotTaken && refresh(source, entry, changed)) continue;
    auto looked = look_at(source, block.records[i]);
    if (!looked.ok()) {
      out.failed = looked.error();
      return out;
    }
    entry = std::move(*looked);
    changed = true;
    out.cached = false;
  }
  if (changed) keep(key, out.entries);
  return out;
}

bool BlockReader::refresh(int source, BlockEntry& entry, bool& changed) {
  const bool sample = entry.kind == BlockEntry::Kind::kSample;
  for (size_t i = 0; i < entry.seen.size(); ++i) {
    SeenImage& known = entry.seen[i];
    if (known.path.empty()) continue;
    if (stamp_of(source, known.path) == known.stamp) continue;
    if (!sample || entry.images[i].is_video()) return false;  // a video's fps is in the record
    const auto grid = grid_of(source, known.path, known.stamp);
    if (!grid.ok() || grid->h != entry.images[i].h || grid->w != entry.images[i].w) return false;
    changed = true;
  }
  return true;
}

uint64_t BlockReader::stamp_of_frames(int source, const std::string& paths) {
  std::vector<uint64_t> stamps;
  for (size_t at = 0, end; at < paths.size(); at = end + 1) {
    end = paths.find(kBetweenFrames, at);
    stamps.push_back(stamp_of(source, paths.substr(at, end - at)));
  }
  return XXH3_64bits(stamps.data(), stamps.size() * sizeof(uint64_t));
}

uint64_t BlockReader::stamp_of(int source, const std::string& path) {
  if (!path.empty() && path.back() == kBetweenFrames) return stamp_of_frames(source, path);
  if (const auto before = seen_.find(source, path)) return before->stamp;
  const uint64_t stamp = reader_.pictures(source).stamp(path);
  seen_.put(source, path, {stamp, std::nullopt});
  return stamp;
}

Result<IndexedImage> BlockReader::grid_of(int source, const std::string& path, uint64_t& stamp) {
  if (const auto before = seen_.find(source, path); before && before->grid) {
    stamp = before->stamp;
    return *before->grid;
  }
  stamp = reader_.pictures(source).stamp(path);
  TROUPE_ASSIGN(const auto grid, reader_.grid(source, path));
  seen_.put(source, path, {stamp, grid});
  return grid;
}

Result<BlockEntry> BlockReader::look_at(int source, const RecordSpan& span) {
  BlockEntry entry;
  Record record;
  const auto parsed = reader_.read_record(source, span, record);
  entry.id = record.id.empty() ? place_name(reader_.source(source).path, span.line, span.element) : record.id;
  entry.named = record.named;
  entry.kind = BlockEntry::Kind::kBad;
  if (!parsed.ok()) {
    if (parsed.error().code == ErrorCode::kResourceExhausted)
      return wrap(parsed.error(), "record " + entry.id + " of " + reader_.source(source).path);
    entry.reason = parsed.error().message;
    return entry;
  }
  std::vector<IndexedImage> grids;
  if (const auto looked = look_at_media(source, record, entry, grids); !looked.ok()) {
    entry.reason = looked.error().to_string();
    return entry;
  }
  const auto tokens = reader_.tokenize(source, record, &grids);
  if (!tokens.ok()) {
    entry.reason = tokens.error().to_string();
    return entry;
  }
  if (const Status written = reader_.check_template(record); !written.ok()) {
    entry.reason = written.error().message;
    return entry;
  }
  entry.kind = BlockEntry::Kind::kSample;
  entry.tokens = static_cast<int32_t>(tokens->ids.size());
  entry.supervised = static_cast<int32_t>(tokens->supervised_count());
  entry.images = tokens->images;
  return entry;
}

Status BlockReader::look_at_media(int source, const Record& record, BlockEntry& entry,
                                  std::vector<IndexedImage>& grids) {
  for (const auto& medium : media_in_order(record.turns)) {
    if (medium.video) {
      const RecordVideo& video = record.videos[medium.number];
      entry.seen.push_back({seen_path(video), 1});
      if (!entry.seen.back().path.empty()) entry.seen.back().stamp = stamp_of(source, entry.seen.back().path);
      TROUPE_ASSIGN(const auto grid, reader_.grid(source, video));
      grids.push_back(grid);
      continue;
    }
    const RecordMedium& image = record.images[medium.number];
    entry.seen.push_back({image.in_record() ? std::string() : image.path, 1});
    const auto grid =
        image.in_record() ? reader_.grid(source, image) : grid_of(source, image.path, entry.seen.back().stamp);
    if (!grid.ok()) return grid.error();
    grids.push_back(*grid);
  }
  return {};
}

void BlockReader::keep(const BlockKey& key, const std::vector<BlockEntry>& entries) {
  if (cache_ == nullptr || !writable_) return;
  const auto kept = cache_->put(key, entries);
  if (kept.ok() || !writable_.exchange(false) || !warn_) return;
  warn_("the index is not kept for later runs: " + kept.error().message +
        "; valid: TROUPE_CACHE=FOLDER, or TROUPE_CACHE=off");
}

}  // namespace troupe
