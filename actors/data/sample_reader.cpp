#include "actors/data/sample_reader.h"

#include <spdlog/spdlog.h>
#include <xxhash.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "actors/images/image_size.h"
#include "actors/sources/inline_data.h"

namespace troupe {

Result<std::array<int64_t, 2>> pixel_bounds(const DataSpec& data, const ProcessorConfig& processor) {
  const int64_t least = data.min_pixels ? *data.min_pixels : processor.min_pixels.value_or(56 * 56);
  const int64_t most = data.max_pixels ? *data.max_pixels : processor.max_pixels.value_or(28 * 28 * 1280);
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
  for (const auto& source : sources) {
    TROUPE_ASSIGN(auto file, MappedFile::open(source.path));
    std::shared_ptr<const TarFile> shard;
    if (TarFile::is_tar(file->bytes())) {
      TROUPE_ASSIGN(shard, TarFile::open(source.path));
    }
    const std::string folder = std::filesystem::path(source.path).parent_path().string();
    auto pictures = PictureRoot::create(source.image_root.empty() ? folder : source.image_root, shard);
    if (!pictures.ok())
      return make_error(pictures.error().code, "key '" + source.key + ".image_root': " + pictures.error().message +
                                                   "; valid: a folder, or a tar archive of pictures");
    reader->files_.push_back(std::move(file));
    reader->shards_.push_back(std::move(shard));
    reader->pictures_.push_back(std::move(*pictures));
  }
  TROUPE_ASSIGN(reader->processor_, read_processor_config(model_folder));
  TROUPE_RETURN_IF_ERROR(reader->processor_.check_against(config.vision, model_folder));
  TROUPE_ASSIGN(const auto bounds, pixel_bounds(data, reader->processor_));
  reader->min_pixels_ = bounds[0];
  reader->max_pixels_ = bounds[1];
  TROUPE_ASSIGN(reader->template_, read_chat_template(model_folder));
  if (reader->template_.source.empty())
    spdlog::warn("{} has no chat template; Qwen's default form is used", model_folder);
  TROUPE_ASSIGN(std::shared_ptr<const Tokenizer> tokenizer, Tokenizer::load(model_folder));
  TROUPE_ASSIGN(reader->form_, ChatForm::create(std::move(tokenizer), reader->template_, config, data.supervise));
  return reader;
}

RecordFile SampleReader::records(int source) const {
  const auto& shard = shards_[static_cast<size_t>(source)];
  if (shard == nullptr) return find_records(bytes(source));
  RecordFile out;
  int64_t number = 0;
  for (const auto& sample : shard->samples()) {
    ++number;
    const size_t before = out.records.size();
    for (const size_t i : sample.members) {
      const auto& member = shard->members()[i];
      if (member_extension(member.name) == "json")
        out.records.push_back({static_cast<int64_t>(member.offset), static_cast<int64_t>(member.size), number, 1});
    }
    if (out.records.size() == before)
      out.fault =
          RecordFile::Fault{number, 1, "sample '" + sample.key + "' has no member KEY.json, which holds the turns"};
  }
  if (number == 0) out.fault = RecordFile::Fault{1, 1, "the archive holds no file"};
  return out;
}

Status SampleReader::read_record(int source, const RecordSpan& span, Record& record) const {
  const auto s = static_cast<size_t>(source);
  const auto text = bytes(source).substr(static_cast<size_t>(span.offset), static_cast<size_t>(span.length));
  const auto& spelling = sources_[s].spelling;
  if (shards_[s] == nullptr) return parse_record(text, record, spelling, {span.line, span.column});
  const auto& members = shards_[s]->members();
  // Members are in the archive's order, so a record's neighbours are found from its offset.
  const auto at = std::partition_point(members.begin(), members.end(),
                                       [&](const auto& m) { return m.offset < static_cast<size_t>(span.offset); });
  if (at == members.end()) return parse_record(text, record, spelling);
  const std::string key = at->name.substr(0, at->name.size() - member_extension(at->name).size());
  auto first = at, last = at;
  while (first != members.begin() && std::prev(first)->name.starts_with(key)) --first;
  while (last != members.end() && last->name.starts_with(key)) ++last;
  std::vector<std::string> pictures;
  for (auto m = first; m != last; ++m)
    for (const char* type : {"jpg", "jpeg", "png", "webp", "gif", "bmp", "tif", "tiff"}) {
      const std::string extension = member_extension(m->name);
      if (extension == type || extension.ends_with(std::string(".") + type)) pictures.push_back(m->name);
    }
  if (record.id.empty()) record.id = key.substr(0, key.size() - 1);
  return parse_record_with_pictures(text, pictures, record, spelling, {1, 1});
}

Error SampleReader::changed(const SampleView& sample, const std::string& how) const {
  return data_loss("sample " + std::string(sample.id) + " of " + source(sample.source).path +
                   " changed since it was indexed: " + how);
}

Result<Record> SampleReader::indexed_record(const SampleView& sample) const {
  if (sample.source < 0 || sample.source >= sources())
    return data_loss("the index names source " + std::to_string(sample.source) + "; there are " +
                     std::to_string(sources()));
  const auto size = static_cast<int64_t>(bytes(sample.source).size());
  if (sample.byte_offset < 0 || sample.byte_length < 0 || sample.byte_offset > size ||
      sample.byte_length > size - sample.byte_offset)
    return changed(sample, "the file is shorter");
  Record record;
  const auto parsed = read_record(sample.source, {sample.byte_offset, sample.byte_length, 1, 1}, record);
  if (!parsed.ok()) return changed(sample, parsed.error().message);
  return record;
}

Result<IndexedImage> SampleReader::grid(int source, const std::string& path) const {
  TROUPE_ASSIGN(const auto file, open_image(source, path));
  const auto header = read_image_header(file.bytes());
  if (!header.ok()) return make_error(header.error().code, image_name(path) + " " + header.error().message);
  const auto& vision = config_.vision;
  const auto scaled =
      scaled_size({header->height(), header->width()}, vision.patch_size * vision.merge_size, min_pixels_, max_pixels_);
  if (!scaled.ok()) return make_error(scaled.error().code, image_name(path) + " " + scaled.error().message);
  return grid_of(*scaled, vision.patch_size);
}

Result<SampleTokens> SampleReader::tokenize(int source, const Record& record,
                                            const std::vector<IndexedImage>* grids) const {
  std::vector<IndexedImage> images;
  if (grids != nullptr) {
    images = *grids;
  } else {
    for (const auto& path : record.images) {
      TROUPE_ASSIGN(const auto image, grid(source, path));
      images.push_back(image);
    }
  }
  TROUPE_ASSIGN(auto tokens, form_->tokenize(record, std::move(images)));
  if (data_.too_long == TooLong::kTruncateText && data_.max_sample_tokens > 0)
    truncate_text(tokens, data_.max_sample_tokens, config_.vision.merge_size);
  return tokens;
}

std::array<uint64_t, 2> SampleReader::settings_hash() const {
  std::string text = "troupe samples 2\n";
  const auto add = [&text](const auto& value) { text += value + '\n'; };
  const auto number = [&text](auto value) { text += std::to_string(value) + '\n'; };
  for (size_t i = 0; i < sources_.size(); ++i) {
    number(XXH3_64bits(files_[i]->bytes().data(), files_[i]->bytes().size()));
    number(files_[i]->bytes().size());
    number(sources_[i].take_fraction);
    number(sources_[i].take_records);
    for (const auto* words : {&sources_[i].spelling.columns, &sources_[i].spelling.roles})
      for (const auto& [name, word] : *words) add(name + '\n' + word);
  }
  number(form_->tokenizer().content_hash());
  number(template_.hash);
  add(template_.default_system.value_or(""));
  number(template_.default_system.has_value());
  for (const int64_t value :
       {min_pixels_, max_pixels_, config_.vision.patch_size, config_.vision.merge_size, config_.image_token,
        config_.vision_start_token, config_.vision_end_token, data_.max_sample_tokens,
        static_cast<int64_t>(data_.too_long), static_cast<int64_t>(data_.supervise)})
    number(value);
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return {hash.high64, hash.low64};
}

}  // namespace troupe
