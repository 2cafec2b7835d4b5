#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "base/result.h"

/// What is known about every sample before anything is decoded. Written once by the indexer (actors/data), read by the
/// driver and by every rank; all batch plans are pure functions of it.
namespace troupe {

enum class MediumKind : int32_t { kImage, kVideo };

/// One image or video of a sample. A grid is in patches; a merged token covers merge x merge patches of one t.
struct IndexedImage {
  int32_t t = 1, h = 0, w = 0;  // grid in patches (t, h, w), h and w multiples of the merge size; of an image t is 1
  int32_t token_offset = 0;     // first pad token in the sample
  MediumKind kind = MediumKind::kImage;  // which says which pads stand for it
  float seconds = 0;                     // of a video: from one t to the next
  bool is_video() const { return kind == MediumKind::kVideo; }
  int64_t patches() const { return int64_t{t} * h * w; }
  int64_t tokens(int64_t merge) const { return patches() / (merge * merge); }
};

/// A sample on its way into an index.
struct IndexedSample {
  int32_t source = 0;  // position in data.sources
  int64_t record = 0;  // position in the source, from 0
  int64_t byte_offset = 0, byte_length = 0;
  int32_t tokens = 0;                // whole sample, image tokens included
  int32_t supervised = 0;            // positions with a target (after the shift)
  std::vector<IndexedImage> images;  // and videos, in reading order
  std::string id;                    // the record's own id, or "FILE:LINE"
};

/// A sample of an index: the fields of IndexedSample, with images and id where the index keeps them. Valid as long as
/// the index (or the IndexedSample that it was made from) is and no sample is added to it.
struct SampleView {
  int32_t source = 0;
  int64_t record = 0, byte_offset = 0, byte_length = 0;
  int32_t tokens = 0, supervised = 0;
  std::span<const IndexedImage> images;
  std::string_view id;
  SampleView() = default;
  SampleView(const IndexedSample& s)  // NOLINT: implicit on purpose
      : source(s.source),
        record(s.record),
        byte_offset(s.byte_offset),
        byte_length(s.byte_length),
        tokens(s.tokens),
        supervised(s.supervised),
        images(s.images),
        id(s.id) {}
};

/// The samples of an index in its order, in columns that lie in memory as they lie in the file: a list that was read is
/// mapped, and the processes of a machine share its pages. Reading is thread-safe; copies of a mapped list share the
/// mapping.
class SampleList {
 public:
  size_t size() const { return rows().size(); }
  bool empty() const { return rows().empty(); }
  SampleView operator[](size_t i) const;
  /// Owned lists only (a list that was read is complete).
  void push_back(const SampleView& sample);

  class Iterator {
   public:
    using value_type = SampleView;
    using difference_type = std::ptrdiff_t;
    Iterator(const SampleList* list, size_t at) : list_(list), at_(at) {}
    SampleView operator*() const { return (*list_)[at_]; }
    Iterator& operator++() { return ++at_, *this; }
    bool operator==(const Iterator& other) const { return at_ == other.at_; }

   private:
    const SampleList* list_;
    size_t at_;
  };
  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, size()}; }

 private:
  friend struct SampleIndex;
  /// A sample's fixed part, as written.
  struct Row {
    int64_t record, byte_offset, byte_length;
    uint64_t first_image, first_id_byte;
    int32_t source, tokens, supervised;
    uint32_t images, id_bytes, reserved;
  };
  static_assert(sizeof(Row) == 64);
  std::span<const Row> rows() const { return file_ ? mapped_rows_ : std::span<const Row>(rows_); }
  std::span<const IndexedImage> images() const {
    return file_ ? mapped_images_ : std::span<const IndexedImage>(images_);
  }
  std::string_view ids() const { return file_ ? mapped_ids_ : std::string_view(ids_); }

  std::vector<Row> rows_;
  std::vector<IndexedImage> images_;
  std::string ids_;
  std::shared_ptr<const MappedFile> file_;  // shared: copies of the list look into one mapping
  std::span<const Row> mapped_rows_;
  std::span<const IndexedImage> mapped_images_;
  std::string_view mapped_ids_;
};

/// A record that cannot be used, and why.
struct BadRecord {
  std::string file;
  int64_t line = 0, record = 0;
  std::string id, reason;
  /// FILE:LINE: record 'ID': REASON
  std::string to_string() const;
};

struct SampleIndex {
  std::string digest;  // of content, tokenizer, template and pixel limits
  SampleList samples;
  std::vector<BadRecord> bad;
  int64_t total_records = 0;

  /// One file, little-endian, checksummed. Written to a temporary name and renamed.
  Status write(const std::string& path) const;
  /// Maps the file and checks all of it; cost: one pass over its bytes. NotFound, or DataLoss naming the file.
  static Result<SampleIndex> read(const std::string& path);
};

/// Whether the sample is held out when `eval.split` is `fraction`: the same answer everywhere and for every seed, since
/// it depends on the sample's source and record number only. The rule is XXH64(source, record as little-endian int64,
/// seed 0) < fraction * 2^64.
bool in_eval_split(const SampleView& sample, double fraction);

}  // namespace troupe
