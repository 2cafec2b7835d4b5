#include "actors/data/sample_reader.h"

#include <spdlog/spdlog.h>
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <iterator>

#include "actors/data/placeholders.h"
#include "actors/data/record_table.h"
#include "actors/data/shard_samples.h"
#include "actors/images/image_size.h"
#include "actors/parquet/parquet_rows.h"
#include "actors/sources/file_kind.h"
#include "actors/sources/inline_data.h"

namespace troupe {
namespace {

constexpr size_t kLookedAtBytes = 512;

/// What a file is that begins like no JSON, tar or Parquet; empty when it begins like one.
std::string unread_kind(const std::string& path, std::string_view bytes) {
  if (auto kind = foreign_kind(bytes); !kind.empty()) return kind;
  if (TarFile::is_tar(bytes) || is_parquet(bytes)) return {};
  std::string_view begin = bytes.substr(0, kLookedAtBytes);
  if (begin.starts_with("\xEF\xBB\xBF")) begin.remove_prefix(3);
  const size_t first = begin.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || begin[first] == '{' || begin[first] == '[') return {};
  const std::string ending = std::filesystem::path(path).extension().string();
  if (ending == ".csv" || ending == ".tsv") return "a table of values with commas or tabs between";
  return begin.find('\0') == std::string_view::npos ? "" : "a file of bytes that are no text";
}

Status check_kind(const DataSource& source, std::string_view bytes) {
  const std::string kind = unread_kind(source.path, bytes);
  if (kind.empty()) return {};
  const std::string key = source.key.empty() ? "" : "key '" + source.key + ".path': ";
  return invalid_argument(key + source.path + " is " + kind +
                          ", which is not read; valid: JSON or JSON lines in UTF-8, an uncompressed tar archive, or "
                          "Parquet");
}

Error of_source(const DataSource& source, const char* key, const Error& error) {
  return make_error(error.code, (source.key.empty() ? "" : "key '" + source.key + "." + key + "': ") + error.message);
}

/// Values as lines of a text that is hashed.
class SettingsText {
 public:
  explicit SettingsText(std::string begin = {}) : text_(std::move(begin)) {}
  void word(const std::string& value) { text_ += value + '\n'; }
  template <typename T>
  void number(T value) {
    word(std::to_string(value));
  }
  void spelling(const RecordSpelling& spelling) {
    for (const auto* words : {&spelling.columns, &spelling.roles})
      for (const auto& [name, meaning] : *words) word(name + '\n' + meaning);
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

}  // namespace

Result<std::array<int64_t, 2>> pixel_bounds(const DataSpec& data, const ProcessorConfig& processor) {
  const int64_t least = data.min_pixels ? *data.min_pixels : processor.min_pixels.value_or(kDefaultImageMinPixels);
  const int64_t most = data.max_pixels ? *data.max_pixels : processor.max_pixels.value_or(kDefaultImageMaxPixels);
  if (least < 0 || most <= 0 || least > most) {
    const char* key = data.max_pixels ? "key 'data.max_pixels': " : data.min_pixels ? "key 'data.min_pixels': " : "";
    const auto from = [](bool spec, bool folder) {
      return spec ? "" : folder ? " (of the model folder)" : " (the default of the original processor)";
    };
    return invalid_argument(std::string(key) + "the pixel limits are min_pixels " + std::to_string(least) +
                            from(data.min_pixels.has_value(), processor.min_pixels.has_value()) + " and max_pixels " +
                            std::to_string(most) + from(data.max_pixels.has_value(), processor.max_pixels.has_value()) +
                            "; valid: 0 <= min_pixels <= max_pixels");
  }
  return std::array<int64_t, 2>{least, most};
}

Result<std::unique_ptr<SampleReader>> SampleReader::create(const DataSpec& data, const std::vector<DataSource>& sources,
                                                           const std::string& model_folder, const ModelConfig& config) {
  std::unique_ptr<SampleReader> reader(new SampleReader());
  reader->sources_ = sources;
  reader->data_ = data;
  reader->config_ = config;
  for (const auto& source : sources) TROUPE_RETURN_IF_ERROR(reader->open_source(source));
  reader->rows_ = std::make_unique<RowPool>(reader->row_files_);
  TROUPE_ASSIGN(reader->processor_, read_processor_config(model_folder));
  TROUPE_RETURN_IF_ERROR(reader->processor_.check_against(config.vision, model_folder));
  TROUPE_ASSIGN(const auto bounds, pixel_bounds(data, reader->processor_));
  reader->min_pixels_ = bounds[0];
  reader->max_pixels_ = bounds[1];
  TROUPE_RETURN_IF_ERROR(reader->read_video_settings(model_folder));
  TROUPE_ASSIGN(reader->template_, read_chat_template(model_folder));
  if (reader->template_.source.empty())
    spdlog::warn("{} has no chat template; Qwen's default form is used", model_folder);
  TROUPE_ASSIGN(std::shared_ptr<const Tokenizer> tokenizer, Tokenizer::load(model_folder));
  TROUPE_ASSIGN(reader->form_, ChatForm::create(std::move(tokenizer), reader->template_, config, data.supervise));
  return reader;
}

Status SampleReader::open_source(const DataSource& source) {
  TROUPE_ASSIGN(auto file, MappedFile::open(source.path));
  TROUPE_RETURN_IF_ERROR(check_kind(source, file->bytes()));
  std::shared_ptr<const TarFile> shard;
  if (TarFile::is_tar(file->bytes())) {
    TROUPE_ASSIGN(shard, TarFile::open(source.path));
  }
  ParquetRows rows;
  if (is_parquet(file->bytes())) {
    auto opened = open_parquet(file, source.path, known_keys(source.spelling));
    if (!opened.ok()) return of_source(source, "path", opened.error());
    rows = std::move(*opened);
  }
  const std::string folder = std::filesystem::path(source.path).parent_path().string();
  auto pictures = PictureRoot::create(source.image_root.empty() ? folder : source.image_root, shard);
  if (!pictures.ok())
    return of_source(source, "image_root",
                     make_error(pictures.error().code,
                                pictures.error().message + "; valid: a folder, or a tar archive of pictures"));
  files_.push_back(std::move(file));
  shards_.push_back(std::move(shard));
  row_files_.push_back(std::move(rows.file));
  row_readers_.push_back(rows.reader);
  pictures_.push_back(std::move(*pictures));
  return {};
}

Status SampleReader::read_video_settings(const std::string& model_folder) {
  const auto read = [&]() -> Result<VideoSettings> {
    TROUPE_ASSIGN(const auto processor, read_video_processor_config(model_folder));
    TROUPE_RETURN_IF_ERROR(processor.check_against(config_.vision, model_folder));
    return video_settings(data_.video, processor, config_.vision);
  };
  const auto settings = read();
  if (!settings.ok()) videos_understood_ = settings.error();
  videos_ = std::make_unique<VideoReader>(settings.ok() ? *settings : VideoSettings(), make_video_files());
  return data_.video.given() ? videos_understood_ : Status();
}

RecordBlocks SampleReader::blocks(int source) const {
  const auto s = static_cast<size_t>(source);
  return {*files_[s], shards_[s].get(), row_files_[s].get()};
}

void SampleReader::forget(int source, size_t begin, size_t end) const {
  const auto s = static_cast<size_t>(source);
  files_[s]->forget(begin, end);
  if (shards_[s] != nullptr) shards_[s]->file().forget(begin, end);
}

Status SampleReader::read_record(int source, const RecordSpan& span, Record& record) const {
  const auto s = static_cast<size_t>(source);
  const auto& spelling = sources_[s].spelling;
  if (row_files_[s] != nullptr) {
    TROUPE_ASSIGN(const auto row, rows_->row(source, span.offset));
    return parse_row(row->object, record, spelling);
  }
  const auto text = bytes(source).substr(static_cast<size_t>(span.offset), static_cast<size_t>(span.length));
  if (shards_[s] == nullptr) {
    if (text.ends_with("},")) return invalid_argument("ends in a comma; " + std::string(kLinesOrArray));
    if (text == "{") return invalid_argument("begins an object over several lines; " + std::string(kLinesOrArray));
    return parse_record(text, record, spelling, {span.line, span.column});
  }
  const TarFile::Sample sample = shards_[s]->sample_at(static_cast<size_t>(span.offset));
  if (record.id.empty()) record.id = sample.key;
  const auto beside = [&] { return media_beside(*shards_[s], sample); };
  return parse_record_with_media(text, beside, record, spelling, {1, 1});
}

Error SampleReader::changed(const SampleView& sample, const std::string& how) const {
  return data_loss("sample " + std::string(sample.id) + " of " + source(sample.source).path +
                   " changed since it was indexed: " + how);
}

Result<Record> SampleReader::indexed_record(const SampleView& sample) const {
  if (sample.source < 0 || sample.source >= sources())
    return data_loss("the index names source " + std::to_string(sample.source) + "; there are " +
                     std::to_string(sources()));
  const auto& rows = row_files_[static_cast<size_t>(sample.source)];
  const int64_t size = rows != nullptr ? rows->rows() : static_cast<int64_t>(bytes(sample.source).size());
  if (sample.byte_offset < 0 || sample.byte_length < 0 || sample.byte_offset > size ||
      sample.byte_length > size - sample.byte_offset)
    return changed(sample, "the file is shorter");
  Record record;
  const auto parsed = read_record(sample.source, {sample.byte_offset, sample.byte_length, 1, 1}, record);
  if (!parsed.ok() && parsed.error().code == ErrorCode::kResourceExhausted)
    return wrap(parsed.error(), "sample " + std::string(sample.id) + " of " + source(sample.source).path);
  if (!parsed.ok()) return changed(sample, parsed.error().message);
  return record;
}

Result<MediaBytes> SampleReader::open_image(int source, const RecordMedium& image) const {
  return open_medium(pictures(source), image);
}

Result<IndexedImage> SampleReader::grid(int source, const RecordMedium& image) const {
  TROUPE_ASSIGN(const auto file, open_image(source, image));
  const auto header = read_image_header(file.bytes());
  if (!header.ok()) return make_error(header.error().code, image_name(image.path) + " " + header.error().message);
  const auto& vision = config_.vision;
  const auto scaled =
      scaled_size({header->height(), header->width()}, vision.patch_size * vision.merge_size, min_pixels_, max_pixels_);
  if (!scaled.ok()) return make_error(scaled.error().code, image_name(image.path) + " " + scaled.error().message);
  return grid_of(*scaled, vision.patch_size);
}

Result<IndexedImage> SampleReader::grid(int source, const RecordVideo& video) const {
  TROUPE_RETURN_IF_ERROR(videos_understood_);
  return videos_->grid(pictures(source), video);
}

Result<SampleTokens> SampleReader::tokenize(int source, const Record& record,
                                            const std::vector<IndexedImage>* grids) const {
  std::vector<IndexedImage> images;
  if (grids != nullptr) {
    images = *grids;
  } else {
    for (const auto& medium : media_in_order(record.turns)) {
      TROUPE_ASSIGN(const auto image, medium.video ? grid(source, record.videos[medium.number])
                                                   : grid(source, record.images[medium.number]));
      images.push_back(image);
    }
  }
  TROUPE_ASSIGN(auto tokens, form_->tokenize(record, std::move(images)));
  if (data_.too_long == TooLong::kTruncateText && data_.max_sample_tokens > 0)
    truncate_text(tokens, data_.max_sample_tokens, config_.vision.merge_size);
  return tokens;
}

std::array<uint64_t, 2> SampleReader::settings_hash(const std::vector<uint64_t>& contents) const {
  SettingsText text("troupe samples 2\n");
  for (size_t i = 0; i < sources_.size(); ++i) {
    text.number(contents[i]);
    text.number(files_[i]->bytes().size());
    text.number(sources_[i].take_fraction);
    text.number(sources_[i].take_records);
    text.spelling(sources_[i].spelling);
  }
  const std::string all = text.take() + form_settings() + std::to_string(data_.max_sample_tokens) + '\n' +
                          std::to_string(static_cast<int64_t>(data_.too_long)) + '\n' +
                          std::to_string(static_cast<int64_t>(data_.supervise)) + '\n';
  const XXH128_hash_t hash = XXH3_128bits(all.data(), all.size());
  return {hash.high64, hash.low64};
}

std::string SampleReader::look_settings(int source) const {
  const auto& from = this->source(source);
  SettingsText text("troupe look 2\n");
  text.word(std::filesystem::path(from.path).filename().string());  // names records that have no id
  text.word(from.image_root.empty() ? std::filesystem::path(from.path).parent_path().string() : from.image_root);
  text.spelling(from.spelling);
  text.number(row_readers_[static_cast<size_t>(source)]);
  text.number(static_cast<int64_t>(data_.supervise));
  text.number(data_.too_long == TooLong::kTruncateText ? data_.max_sample_tokens : 0);
  text.number(videos_->version());
  text.word(header_library_versions());
  const VideoSettings& video = videos_->settings();
  for (const double value : {video.sampling.fps, video.frame_list_fps}) text.number(std::bit_cast<int64_t>(value));
  for (const int64_t value : {video.sampling.min_frames, video.sampling.max_frames, video.min_pixels, video.max_pixels,
                              video.most_pixels_altogether.value_or(0), video.temporal_patch_size, config_.video_token})
    text.number(value);
  return text.take() + form_settings();
}

std::string SampleReader::form_settings() const {
  SettingsText text;
  text.number(form_->tokenizer().content_hash());
  text.number(template_.hash);
  text.word(template_.default_system.value_or(""));
  text.number(template_.default_system.has_value());
  for (const int64_t value : {min_pixels_, max_pixels_, config_.vision.patch_size, config_.vision.merge_size,
                              config_.image_token, config_.vision_start_token, config_.vision_end_token})
    text.number(value);
  return text.take();
}

}  // namespace troupe
