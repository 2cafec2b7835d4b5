#include <png.h>

#include <algorithm>

#include "actors/check/preview.h"
#include "actors/images/image_file.h"
#include "base/printable_text.h"

namespace troupe {
namespace {

constexpr int64_t kThumbnailSide = 160;  // pixels

/// Text as the terminal's report has it, with what HTML would read as its own spelt out.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : printable(text, /*keep_lines=*/true)) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

std::string base64(const std::vector<uint8_t>& bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const uint32_t a = bytes[i], b = i + 1 < bytes.size() ? bytes[i + 1] : 0u,
                   c = i + 2 < bytes.size() ? bytes[i + 2] : 0u;
    const uint32_t word = a << 16u | b << 8u | c;
    out += kDigits[word >> 18u];
    out += kDigits[word >> 12u & 63u];
    out += i + 1 < bytes.size() ? kDigits[word >> 6u & 63u] : '=';
    out += i + 2 < bytes.size() ? kDigits[word & 63u] : '=';
  }
  return out;
}

/// The mean of the pixels that each pixel of the small picture covers.
RgbImage scaled_down(const RgbImage& image) {
  const int64_t side = std::max(image.width, image.height);
  RgbImage small;
  small.width = std::max<int64_t>(1, side <= kThumbnailSide ? image.width : image.width * kThumbnailSide / side);
  small.height = std::max<int64_t>(1, side <= kThumbnailSide ? image.height : image.height * kThumbnailSide / side);
  for (int64_t y = 0; y < small.height; ++y) {
    for (int64_t x = 0; x < small.width; ++x) {
      const int64_t top = y * image.height / small.height,
                    bottom = std::max(top + 1, (y + 1) * image.height / small.height);
      const int64_t left = x * image.width / small.width,
                    right = std::max(left + 1, (x + 1) * image.width / small.width);
      int64_t sums[3] = {0, 0, 0};
      for (int64_t v = top; v < bottom; ++v)
        for (int64_t u = left; u < right; ++u)
          for (int64_t c = 0; c < 3; ++c) sums[c] += image.pixels[static_cast<size_t>((v * image.width + u) * 3 + c)];
      for (int64_t sum : sums) small.pixels.push_back(static_cast<uint8_t>(sum / ((bottom - top) * (right - left))));
    }
  }
  return small;
}

Result<std::vector<uint8_t>> png_bytes(const RgbImage& image) {
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  png.width = static_cast<png_uint_32>(image.width);
  png.height = static_cast<png_uint_32>(image.height);
  png.format = PNG_FORMAT_RGB;
  png_alloc_size_t size = 0;
  if (!png_image_write_to_memory(&png, nullptr, &size, 0, image.pixels.data(), 0, nullptr))
    return internal_error(std::string("PNG: ") + png.message);
  std::vector<uint8_t> bytes(size);
  if (!png_image_write_to_memory(&png, bytes.data(), &size, 0, image.pixels.data(), 0, nullptr))
    return internal_error(std::string("PNG: ") + png.message);
  bytes.resize(size);
  return bytes;
}

/// An <img>, or why there is none.
std::string thumbnail(const SampleReader& reader, int source, const RecordVideo& medium) {
  const auto image = reader.videos().first_frame(reader.pictures(source), medium);
  if (!image.ok()) return escaped(image.error().message);
  const auto bytes = png_bytes(scaled_down(*image));
  if (!bytes.ok()) return escaped(bytes.error().message);
  return "<img alt=\"\" src=\"data:image/png;base64," + base64(*bytes) + "\">";
}

}  // namespace

Result<std::string> html_page(const std::string& title, const std::string& report, const std::vector<std::string>& bad,
                              const std::vector<std::pair<int, Preview>>& previews, const SampleReader* reader,
                              int64_t merge) {
  std::string page =
      "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>" + escaped(title) +
      "</title><style>body{font:14px "
      "sans-serif;margin:2em}pre{white-space:pre-wrap}b{color:#070;background:#efe}article{border-top:1px solid "
      "#ccc}</style><h1>" +
      escaped(title) + "</h1><pre>" + escaped(report) + "</pre>";
  if (!bad.empty()) {
    page += "<h2>Records that cannot be used</h2><ul>";
    for (const std::string& line : bad) page += "<li>" + escaped(line) + "</li>";
    page += "</ul>";
  }
  for (const auto& [source, preview] : previews) {
    page += "<article><h2>" + escaped(preview.id) + "</h2><p>" + std::to_string(preview.tokens) + " tokens, " +
            std::to_string(preview.supervised) + " supervised</p><pre>";
    for (const PreviewPart& part : preview.parts) {
      if (part.kind == PreviewPart::Kind::kText) page += escaped(part.text);
      if (part.kind == PreviewPart::Kind::kSupervised) page += weight_note(part) + "<b>" + escaped(part.text) + "</b>";
      if (part.kind == PreviewPart::Kind::kImage && reader != nullptr)
        page += "\n" + thumbnail(*reader, source, part.medium) + "\n[" + escaped(part.text) + ": " +
                grid_text(part.image) + " patches, " + std::to_string(part.image.tokens(merge)) + " tokens]\n";
    }
    page += "</pre></article>";
  }
  return page + "</html>\n";
}

}  // namespace troupe
