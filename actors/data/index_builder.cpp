#include "actors/data/index_builder.h"

#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <thread>

#include "actors/data/block_pool.h"
#include "actors/data/block_reader.h"
#include "actors/data/sample_reader.h"
#include "actors/data/source_doubts.h"

namespace troupe {
namespace {

constexpr int kMaxThreads = 16;

std::string digest_of(const SampleReader& reader, const std::vector<uint64_t>& contents, const SampleIndex& index) {
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(), &XXH3_freeState);
  XXH3_128bits_reset(state.get());
  const auto add = [&](std::initializer_list<int64_t> numbers) {
    XXH3_128bits_update(state.get(), numbers.begin(), numbers.size() * sizeof(int64_t));
  };
  const auto settings = reader.settings_hash(contents);
  add({static_cast<int64_t>(settings[0]), static_cast<int64_t>(settings[1]),
       static_cast<int64_t>(index.samples.size())});
  for (const auto& sample : index.samples) {
    add({sample.source, sample.record, sample.tokens, sample.supervised});
    for (const auto& image : sample.images) {
      add({image.h, image.w, image.token_offset});
      if (image.is_video()) add({image.t, std::bit_cast<int32_t>(image.seconds)});
    }
  }
  const XXH128_hash_t hash = XXH3_128bits_digest(state.get());
  return block_key_text({hash.high64, hash.low64});
}

/// Puts looked-at blocks together in their order; owner thread only.
class IndexBuild {
 public:
  IndexBuild(const SampleReader& reader, const DataSpec& data, const std::vector<DataSource>& sources,
             const IndexRun& run)
      : reader_(reader), data_(data), sources_(sources), run_(run), began_(Clock::now()), said_(began_) {
    for (int s = 0; s < reader.sources(); ++s) progress_.total_bytes += static_cast<int64_t>(reader.bytes(s).size());
  }

  Result<SampleIndex> run() {
    BlockReader looker(reader_, run_.cache, run_.warn);
    const int wanted = data_.workers > 0 ? data_.workers : static_cast<int>(std::thread::hardware_concurrency());
    BlockPool pool(looker, std::clamp(wanted, 1, kMaxThreads));
    for (int s = 0; s < reader_.sources(); ++s) TROUPE_RETURN_IF_ERROR(run_source(s, pool));
    if (run_.warn)
      for (const std::string& doubt : column_doubts(sources_, found_)) run_.warn(doubt);
    if (run_.cache != nullptr) run_.cache->trim();
    index_.digest = digest_of(reader_, contents_, index_);
    progress_.seconds_left = 0;
    if (run_.progress) run_.progress(progress_);
    return std::move(index_);
  }

 private:
  using Clock = std::chrono::steady_clock;

  Status run_source(int source, BlockPool& pool) {
    RecordBlocks blocks = reader_.blocks(source);
    const int64_t before = progress_.done_bytes;
    const size_t samples = index_.samples.size();
    found_.emplace_back();
    bool more = true;
    while (more || pool.waiting() > 0) {
      while (more && pool.waiting() < pool.most_waiting()) {
        RecordBlock block;
        more = blocks.next(block);
        if (more) pool.add(source, std::move(block));
      }
      if (pool.waiting() == 0) break;
      if (auto done = pool.take(run_.progress_every)) {
        TROUPE_RETURN_IF_ERROR(done->look.failed);
        add(source, *done);
        progress_.done_bytes = before + static_cast<int64_t>(done->block.end);
        reader_.forget(source, done->block.begin, done->block.end);
      }
      say();
    }
    progress_.done_bytes = before + static_cast<int64_t>(reader_.bytes(source).size());
    for (const RecordFault& fault : blocks.faults()) {
      const std::string& file = reader_.source(source).path;
      index_.bad.push_back({file, fault.line, blocks.records(), place_name(file, fault.line),
                            fault.reason + " (column " + std::to_string(fault.column) + ")"});
      ++index_.total_records;
    }
    contents_.push_back(blocks.content_hash());
    found_.back().samples = index_.samples.size() > samples;
    return {};
  }

  void add(int source, const BlockPool::Done& done) {
    ++progress_.blocks;
    progress_.cached_blocks += done.look.cached;
    if (!done.look.cached) read_bytes_ += static_cast<int64_t>(done.block.end - done.block.begin);
    for (size_t i = 0; i < done.look.entries.size(); ++i) {
      const BlockEntry& entry = done.look.entries[i];
      found_.back().named.held |= entry.named.held;
      found_.back().named.usual |= entry.named.usual;
      if (entry.kind == BlockEntry::Kind::kNotTaken) continue;
      ++progress_.records;
      ++index_.total_records;
      const RecordSpan& span = done.block.records[i];
      const int64_t record = done.block.first_record + static_cast<int64_t>(i);
      const auto bad = [&](std::string reason) {
        index_.bad.push_back({reader_.source(source).path, span.line, record, entry.id, std::move(reason)});
      };
      if (entry.kind == BlockEntry::Kind::kBad) {
        bad(entry.reason);
      } else if (data_.max_sample_tokens > 0 && entry.tokens > data_.max_sample_tokens) {
        if (data_.too_long != TooLong::kSkip) bad(too_long(entry));
      } else {
        add_sample(source, record, span, entry);
      }
    }
  }

  std::string too_long(const BlockEntry& entry) const {
    return "has " + std::to_string(entry.tokens) + " tokens, more than data.max_sample_tokens " +
           std::to_string(data_.max_sample_tokens) +
           (data_.too_long == TooLong::kTruncateText ? ", and cutting its text to that would cut an image or a video"
                                                     : "");
  }

  void add_sample(int source, int64_t record, const RecordSpan& span, const BlockEntry& entry) {
    SampleView sample;
    sample.source = source;
    sample.record = record;
    sample.byte_offset = span.offset;
    sample.byte_length = span.length;
    sample.tokens = entry.tokens;
    sample.supervised = entry.supervised;
    sample.images = entry.images;
    sample.id = entry.id;
    index_.samples.push_back(sample);
  }

  void say() {
    const auto now = Clock::now();
    if (!run_.progress || now - said_ < run_.progress_every) return;
    said_ = now;
    progress_.seconds_left = seconds_left(std::chrono::duration<double>(now - began_).count(), read_bytes_,
                                          progress_.total_bytes - progress_.done_bytes);
    run_.progress(progress_);
  }

  const SampleReader& reader_;
  const DataSpec& data_;
  const std::vector<DataSource>& sources_;
  const IndexRun& run_;
  const Clock::time_point began_;
  Clock::time_point said_;
  IndexProgress progress_;
  int64_t read_bytes_ = 0;           // of blocks that no cache knew
  std::vector<ColumnsFound> found_;  // of each source so far
  std::vector<uint64_t> contents_;   // of each source
  SampleIndex index_;
};

}  // namespace

Result<SampleIndex> build_sample_index(const DataSpec& data, const std::vector<DataSource>& sources,
                                       const std::string& model_folder, const ModelConfig& config,
                                       const IndexRun& run) {
  TROUPE_ASSIGN(const auto reader, SampleReader::create(data, sources, model_folder, config));
  if (run.warn)
    for (const std::string& doubt : twice_doubts(sources)) run.warn(doubt);
  return IndexBuild(*reader, data, sources, run).run();
}

}  // namespace troupe
