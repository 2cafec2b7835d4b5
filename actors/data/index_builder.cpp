#include "actors/data/index_builder.h"

#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <thread>
#include <variant>

#include "actors/data/sample_reader.h"

namespace troupe {
namespace {

constexpr int kMaxThreads = 16;
constexpr size_t kChunk = 64;  // records a thread takes at a time
constexpr auto kProgressEvery = std::chrono::seconds(1);

/// A record to look at.
struct Job {
  int source;
  int64_t record;
  RecordSpan span;
};
struct Dropped {};  // too long, and the spec says to skip such samples
using Outcome = std::variant<Dropped, IndexedSample, BadRecord>;

std::string place_of(const std::string& file, int64_t line) {
  return std::filesystem::path(file).filename().string() + ":" + std::to_string(line);
}

Outcome look_at(const SampleReader& reader, const DataSpec& data, const Job& job) {
  const std::string& file = reader.source(job.source).path;
  Record record;
  const auto bad = [&](std::string reason) {
    return BadRecord{file, job.span.line, job.record, record.id, std::move(reason)};
  };
  const auto parsed = reader.read_record(job.source, job.span, record);
  if (record.id.empty()) record.id = place_of(file, job.span.line);
  if (!parsed.ok()) return bad(parsed.error().message);
  const auto tokens = reader.tokenize(job.source, record, nullptr);
  if (!tokens.ok()) return bad(tokens.error().to_string());
  const auto length = static_cast<int64_t>(tokens->ids.size());
  if (data.max_sample_tokens > 0 && length > data.max_sample_tokens) {
    if (data.too_long == TooLong::kSkip) return Dropped{};
    const char* why =
        data.too_long == TooLong::kTruncateText ? ", and cutting its text to that would cut an image" : "";
    return bad("has " + std::to_string(length) + " tokens, more than data.max_sample_tokens " +
               std::to_string(data.max_sample_tokens) + why);
  }
  IndexedSample sample;
  sample.source = job.source;
  sample.record = job.record;
  sample.byte_offset = job.span.offset;
  sample.byte_length = job.span.length;
  sample.tokens = static_cast<int32_t>(length);
  sample.supervised = static_cast<int32_t>(tokens->supervised_count());
  sample.images = tokens->images;
  sample.id = record.id;
  return sample;
}

/// Runs `work(i)` for every i < count on `threads` threads; the calling thread reports.
void for_each_record(size_t count, int threads, const std::function<void(size_t)>& work,
                     const std::function<void(int64_t, int64_t)>& progress) {
  std::atomic<size_t> next{0}, done{0};
  std::mutex mutex;
  std::condition_variable finished;
  int running = threads;
  const auto loop = [&] {
    for (size_t begin = next.fetch_add(kChunk); begin < count; begin = next.fetch_add(kChunk)) {
      const size_t end = std::min(count, begin + kChunk);
      for (size_t i = begin; i < end; ++i) work(i);
      done += end - begin;
    }
    const std::lock_guard lock(mutex);
    if (--running == 0) finished.notify_all();
  };
  std::vector<std::thread> pool;
  for (int i = 0; i < threads; ++i) pool.emplace_back(loop);
  std::unique_lock lock(mutex);
  while (!finished.wait_for(lock, kProgressEvery, [&] { return running == 0; }))
    if (progress) progress(static_cast<int64_t>(done.load()), static_cast<int64_t>(count));
  lock.unlock();
  for (auto& thread : pool) thread.join();
  if (progress) progress(static_cast<int64_t>(count), static_cast<int64_t>(count));
}

std::string digest_of(const SampleReader& reader, const SampleIndex& index) {
  const auto settings = reader.settings_hash();
  std::vector<int64_t> numbers{static_cast<int64_t>(settings[0]), static_cast<int64_t>(settings[1]),
                               static_cast<int64_t>(index.samples.size())};
  for (const auto& sample : index.samples) {
    numbers.insert(numbers.end(), {sample.source, sample.record, sample.tokens, sample.supervised});
    for (const auto& image : sample.images) numbers.insert(numbers.end(), {image.h, image.w, image.token_offset});
  }
  const XXH128_hash_t hash = XXH3_128bits(numbers.data(), numbers.size() * sizeof(int64_t));
  char text[33];
  std::snprintf(text, sizeof(text), "%016llx%016llx", static_cast<unsigned long long>(hash.high64),
                static_cast<unsigned long long>(hash.low64));
  return text;
}

}  // namespace

bool is_taken(const DataSource& source, int64_t record, int64_t total) {
  if (source.take_records >= 0) return record < source.take_records;
  if (source.take_fraction >= 1) return true;
  // Record i is taken when the running count round(f * i) moves on: spread evenly, and round(f * total) in all.
  const auto count = [&](int64_t records) { return std::llround(source.take_fraction * static_cast<double>(records)); };
  return record < total && count(record + 1) > count(record);
}

Result<SampleIndex> build_sample_index(const DataSpec& data, const std::vector<DataSource>& sources,
                                       const std::string& model_folder, const ModelConfig& config,
                                       const std::function<void(int64_t, int64_t)>& progress) {
  TROUPE_ASSIGN(const auto reader, SampleReader::create(data, sources, model_folder, config));
  SampleIndex index;
  std::vector<Job> jobs;
  for (int s = 0; s < reader->sources(); ++s) {
    const RecordFile file = reader->records(s);
    const auto total = static_cast<int64_t>(file.records.size());
    for (int64_t r = 0; r < total; ++r)
      if (is_taken(reader->source(s), r, total)) jobs.push_back({s, r, file.records[static_cast<size_t>(r)]});
    if (file.fault)
      index.bad.push_back({reader->source(s).path, file.fault->line, total,
                           place_of(reader->source(s).path, file.fault->line),
                           file.fault->reason + " (column " + std::to_string(file.fault->column) + ")"});
  }
  index.total_records = static_cast<int64_t>(jobs.size() + index.bad.size());
  std::vector<Outcome> outcomes(jobs.size());
  const int wanted = data.workers > 0 ? data.workers : static_cast<int>(std::thread::hardware_concurrency());
  const int useful = static_cast<int>(std::min<size_t>(jobs.size() / kChunk + 1, kMaxThreads));
  for_each_record(
      jobs.size(), std::clamp(wanted, 1, useful), [&](size_t i) { outcomes[i] = look_at(*reader, data, jobs[i]); },
      progress);
  for (auto& outcome : outcomes) {
    if (auto* sample = std::get_if<IndexedSample>(&outcome)) index.samples.push_back(*sample);
    if (auto* bad = std::get_if<BadRecord>(&outcome)) index.bad.push_back(std::move(*bad));
  }
  index.digest = digest_of(*reader, index);
  return index;
}

}  // namespace troupe
