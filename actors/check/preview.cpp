#include "actors/check/preview.h"

#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "actors/data/placeholders.h"
#include "base/printable_text.h"

namespace troupe {
namespace {

std::string image_text(const PreviewPart& part, int64_t merge) {
  const IndexedImage& i = part.image;
  return "[" + printable(part.text, /*keep_lines=*/false) + ": " + grid_text(part.image) + " patches, " +
         std::to_string(i.tokens(merge)) + " tokens]";
}

PreviewPart image_part(const Record& record, const MediumPlace& medium, const IndexedImage& image) {
  PreviewPart part{PreviewPart::Kind::kImage, {}, image, {}};
  if (!medium.video) {
    part.medium.frames = {record.images[medium.number]};
    part.text = picture_name(record.images[medium.number].path);
    return part;
  }
  part.medium = record.videos[medium.number];
  const bool file = part.medium.is_file();
  part.text = picture_name(file ? part.medium.file.path : part.medium.frames[0].path) +
              (file ? "" : " and " + std::to_string(part.medium.frames.size() - 1) + " more frames");
  return part;
}

}  // namespace

Result<Preview> preview_sample(const SampleReader& reader, const SampleView& sample, int64_t merge) {
  TROUPE_ASSIGN(const Record record, reader.indexed_record(sample));
  const std::vector<IndexedImage> grids(sample.images.begin(), sample.images.end());
  const auto media = media_in_order(record.turns);
  if (grids.size() != media.size()) return reader.changed(sample, "its number of images and videos differs");
  TROUPE_ASSIGN(const SampleTokens tokens, reader.tokenize(sample.source, record, &grids));
  Preview preview{std::string(sample.id), static_cast<int64_t>(tokens.ids.size()), tokens.supervised_count(), {}};
  size_t at = 0, next_image = 0;
  while (at < tokens.ids.size()) {
    if (next_image < tokens.images.size() && static_cast<int64_t>(at) == tokens.images[next_image].token_offset) {
      preview.parts.push_back(image_part(record, media[next_image], tokens.images[next_image]));
      at += static_cast<size_t>(tokens.images[next_image++].tokens(merge));
      continue;
    }
    size_t end = at + 1;
    while (end < tokens.ids.size() && tokens.supervised[end] == tokens.supervised[at] &&
           !(next_image < tokens.images.size() && static_cast<int64_t>(end) == tokens.images[next_image].token_offset))
      ++end;
    TROUPE_ASSIGN(std::string text,
                  reader.form().tokenizer().decode({tokens.ids.begin() + static_cast<ptrdiff_t>(at),
                                                    tokens.ids.begin() + static_cast<ptrdiff_t>(end)}));
    preview.parts.push_back({tokens.supervised[at] ? PreviewPart::Kind::kSupervised : PreviewPart::Kind::kText,
                             std::move(text),
                             {},
                             {},
                             tokens.weights.empty() ? 1 : tokens.weights[at]});
    at = end;
  }
  return preview;
}

std::string grid_text(const IndexedImage& image) {
  const std::string frame = std::to_string(image.w) + " x " + std::to_string(image.h);
  return image.is_video() ? std::to_string(image.t) + " x " + frame : frame;
}

std::string picture_name(const std::string& path) {
  const size_t comma = path.find(',');
  return path.starts_with("data:") && comma != std::string::npos ? path.substr(0, comma) + ",..." : path;
}

std::string weight_note(const PreviewPart& part) {
  if (part.kind != PreviewPart::Kind::kSupervised || part.weight == 1) return {};
  std::array<char, 32> number{};
  std::snprintf(number.data(), number.size(), "%g", static_cast<double>(part.weight));
  return std::string("[counts ") + number.data() + "] ";
}

std::string preview_text(const Preview& preview, int64_t merge, bool colour) {
  std::string text = "record '" + printable(preview.id, /*keep_lines=*/false) + "': " + std::to_string(preview.tokens) +
                     " tokens, " + std::to_string(preview.supervised) + " supervised\n";
  for (const PreviewPart& part : preview.parts) {
    const std::string shown = printable(part.text, /*keep_lines=*/true);
    if (part.kind == PreviewPart::Kind::kText) text += shown;
    if (part.kind == PreviewPart::Kind::kImage) text += image_text(part, merge);
    if (part.kind == PreviewPart::Kind::kSupervised)
      text += weight_note(part) + (colour ? "\x1b[1;32m" + shown + "\x1b[0m" : ">>" + shown + "<<");
  }
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text + "\n";
}

nlohmann::ordered_json preview_json(const Preview& preview, int64_t merge) {
  nlohmann::ordered_json parts = nlohmann::ordered_json::array();
  for (const PreviewPart& part : preview.parts) {
    const IndexedImage& i = part.image;
    if (part.kind == PreviewPart::Kind::kImage) {
      parts.push_back({{"image", part.text}, {"t", i.t}, {"h", i.h}, {"w", i.w}, {"tokens", i.tokens(merge)}});
      continue;
    }
    const bool supervised = part.kind == PreviewPart::Kind::kSupervised;
    parts.push_back({{"text", part.text}, {"supervised", supervised}});
    if (supervised) parts.back()["weight"] = part.weight;
  }
  return {{"id", preview.id}, {"tokens", preview.tokens}, {"supervised", preview.supervised}, {"parts", parts}};
}

}  // namespace troupe
