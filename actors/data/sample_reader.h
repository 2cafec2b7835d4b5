#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "actors/data/chat_form.h"
#include "actors/data/record.h"
#include "actors/data/record_blocks.h"
#include "actors/data/video_reader.h"
#include "actors/images/image_file.h"
#include "actors/parquet/row_pool.h"
#include "actors/sources/picture_root.h"
#include "base/config/job_spec.h"
#include "base/data/sample_index.h"
#include "base/mapped_file.h"
#include "base/model/model_config.h"
#include "base/model/processor_config.h"

namespace troupe {

/// From bytes in a source to tokens and image files: what the indexer and the dataset both do, in one place so that
/// they cannot differ. Thread-safe; the sources stay mapped while it lives.
class SampleReader {
 public:
  /// Errors name the file: a source that cannot be opened, tokenizer, template or processor files that are not
  /// understood.
  static Result<std::unique_ptr<SampleReader>> create(const DataSpec& data, const std::vector<DataSource>& sources,
                                                      const std::string& model_folder, const ModelConfig& config);

  int sources() const { return static_cast<int>(sources_.size()); }
  const DataSource& source(int i) const { return sources_[static_cast<size_t>(i)]; }
  std::string_view bytes(int source) const { return files_[static_cast<size_t>(source)]->bytes(); }
  const ChatForm& form() const { return *form_; }
  const ProcessorConfig& processor() const { return processor_; }
  int64_t min_pixels() const { return min_pixels_; }
  int64_t max_pixels() const { return max_pixels_; }

  /// The records of a source, found by its content: JSON array, JSON lines, a tar archive (webdataset form), or the
  /// rows of a Parquet file.
  RecordBlocks blocks(int source) const;
  /// Says that the bytes [begin, end) of a source are not needed for now (MappedFile::forget).
  void forget(int source, size_t begin, size_t end) const;
  /// The record at a place that `blocks` gave.
  Status read_record(int source, const RecordSpan& span, Record& record) const;
  /// The record that an index knows; DataLoss when it is not there any more or the index is of other sources.
  Result<Record> indexed_record(const SampleView& sample) const;
  /// DataLoss that names the sample, its source and how it differs from what the index knows.
  Error changed(const SampleView& sample, const std::string& how) const;
  const PictureRoot& pictures(int source) const { return *pictures_[static_cast<size_t>(source)]; }
  /// Opens an image of a record: its own bytes, or as PictureRoot::open says.
  Result<MediaBytes> open_image(int source, const RecordMedium& image) const;
  /// The grid of an image by its header; errors name path and reason.
  Result<IndexedImage> grid(int source, const RecordMedium& image) const;
  /// Of a video likewise. InvalidArgument when the folder's video processor file is not understood.
  Result<IndexedImage> grid(int source, const RecordVideo& video) const;
  const VideoReader& videos() const { return *videos_; }
  /// Whether the folder's own chat template writes the record as `tokenize` lays it out: ChatTemplate::check.
  Status check_template(const Record& record) const { return template_.check(record); }
  /// Tokens of a record, with the grids of its images and videos, in
  /// reading order, read from their headers unless given. data.too_long: truncate_text is
  /// applied.
  Result<SampleTokens> tokenize(int source, const Record& record, const std::vector<IndexedImage>* grids) const;
  /// Hash of everything that decides which samples there are and their tokens and grids, the image files excepted:
  /// sources (`contents`: RecordBlocks::content_hash of each), tokenizer, template, limits, options.
  std::array<uint64_t, 2> settings_hash(const std::vector<uint64_t>& contents) const;
  /// What decides, beside its bytes and the image files, what a look at a record of this source finds.
  std::string look_settings(int source) const;

 private:
  SampleReader() = default;
  Status open_source(const DataSource& source);
  Status read_video_settings(const std::string& model_folder);
  /// Tokenizer, template and shapes, as text to be hashed.
  std::string form_settings() const;
  std::vector<DataSource> sources_;
  std::vector<std::shared_ptr<const MappedFile>> files_;
  std::vector<std::shared_ptr<const TarFile>> shards_;  // null for a source that is no archive; shared with pictures_
  std::vector<std::unique_ptr<PictureRoot>> pictures_;
  std::vector<std::shared_ptr<const RowFile>> row_files_;  // null for a source without rows; shared with rows_
  std::vector<uint64_t> row_readers_;                      // hash of the code that reads them
  std::unique_ptr<RowPool> rows_;
  std::unique_ptr<VideoReader> videos_;
  Status videos_understood_;  // what the folder says of videos; needed only where there are any
  std::unique_ptr<ChatForm> form_;
  ChatTemplate template_;
  ProcessorConfig processor_;
  DataSpec data_;
  ModelConfig config_;
  int64_t min_pixels_ = 0, max_pixels_ = 0;
};

/// Pixel limits in force: the spec's, else the folder's, else the published processor's. InvalidArgument when the least
/// exceeds the greatest.
Result<std::array<int64_t, 2>> pixel_bounds(const DataSpec& data, const ProcessorConfig& processor);

}  // namespace troupe
