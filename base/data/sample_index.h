#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

/// What is known about every sample before anything is decoded. Written once by the indexer (actors/data), read by the driver and
/// by every rank; all batch plans are pure functions of it.
namespace troupe {

/// One image of a sample. A grid is in patches; a merged token covers merge x merge patches.
struct IndexedImage {
  int32_t t = 1, h = 0, w = 0;      // grid in patches (t, h, w), h and w multiples of the merge size
  int32_t token_offset = 0;         // first image-pad token in the sample
  int64_t patches() const { return int64_t{t} * h * w; }
  int64_t tokens(int64_t merge) const { return patches() / (merge * merge); }
};

struct IndexedSample {
  int32_t source = 0;          // position in data.sources
  int64_t record = 0;          // position in the source, from 0
  int64_t byte_offset = 0, byte_length = 0;
  int32_t tokens = 0;          // whole sample, image tokens included
  int32_t supervised = 0;      // positions with a target (after the shift)
  std::vector<IndexedImage> images;
  std::string id;              // the record's own id, or "FILE:LINE"
};

/// A record that cannot be used, and why.
struct BadRecord {
  std::string file;
  int64_t line = 0, record = 0;
  std::string id, reason;
};

struct SampleIndex {
  std::string digest;  // of content, tokenizer, template and pixel limits
  std::vector<IndexedSample> samples;
  std::vector<BadRecord> bad;
  int64_t total_records = 0;

  /// One file, little-endian, checksummed. Written to a temporary name and renamed.
  Status write(const std::string& path) const;
  static Result<SampleIndex> read(const std::string& path);
};

/// Whether the sample is held out when `eval.split` is `fraction`: the same answer everywhere and for every seed, since it depends on
/// the sample's source and record number only. The rule is XXH64(source, record as little-endian int64, seed 0) < fraction * 2^64.
bool in_eval_split(const IndexedSample& sample, double fraction);

}  // namespace troupe
