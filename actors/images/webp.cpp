#include <webp/decode.h>
#include <webp/demux.h>

#include <memory>

#include "actors/images/byte_reader.h"
#include "actors/images/codecs.h"
#include "actors/images/exif.h"
#include "actors/images/pixel_forms.h"

namespace troupe::codecs {
namespace {

constexpr uint32_t kAnimated = 0x02, kHasXmp = 0x04, kHasExif = 0x08;  // of the flags in VP8X

bool has_flag(std::string_view file, uint32_t flag) {
  return bytes::part(file, 12, 4) == "VP8X" && (bytes::at(file, 20) & flag) != 0;
}

Status decode_still(std::string_view file, const ImageHeader& header, RgbImage& image) {
  const auto* data = reinterpret_cast<const uint8_t*>(file.data());
  WebPBitstreamFeatures features{};
  if (WebPGetFeatures(data, file.size(), &features) != VP8_STATUS_OK || features.width != header.stored_width ||
      features.height != header.stored_height)
    return data_loss("is a WebP file whose headers disagree");
  const int channels = features.has_alpha != 0 ? 4 : 3;
  image.pixels.resize(static_cast<size_t>(header.stored_width * header.stored_height * channels));
  const auto decode = channels == 4 ? WebPDecodeRGBAInto : WebPDecodeRGBInto;
  if (decode(data, file.size(), image.pixels.data(), image.pixels.size(), features.width * channels) == nullptr)
    return data_loss("is a WebP file that does not decode");
  if (channels == 4) lay_on_white(image.pixels);
  return {};
}

/// The canvas as it looks while the first frame is shown.
Status decode_first_frame(std::string_view file, const ImageHeader& header, RgbImage& image) {
  const WebPData data{reinterpret_cast<const uint8_t*>(file.data()), file.size()};
  WebPAnimDecoderOptions options;
  if (!WebPAnimDecoderOptionsInit(&options)) return internal_error("libwebpdemux is of another version");
  options.color_mode = MODE_RGBA;
  options.use_threads = 0;
  const std::unique_ptr<WebPAnimDecoder, void (*)(WebPAnimDecoder*)> decoder(WebPAnimDecoderNew(&data, &options),
                                                                             WebPAnimDecoderDelete);
  WebPAnimInfo info{};
  if (decoder == nullptr || !WebPAnimDecoderGetInfo(decoder.get(), &info) || info.canvas_width != header.stored_width ||
      info.canvas_height != header.stored_height)
    return data_loss("is an animated WebP file whose headers disagree");
  uint8_t* canvas = nullptr;
  int shown_until_ms = 0;
  if (!WebPAnimDecoderGetNext(decoder.get(), &canvas, &shown_until_ms))
    return data_loss("is an animated WebP file whose first frame does not decode");
  image.pixels.assign(canvas, canvas + header.stored_width * header.stored_height * 4);
  lay_on_white(image.pixels);
  return {};
}

}  // namespace

Result<ImageHeader> webp_header(std::string_view file) {
  ImageHeader header{ImageType::kWebp, 0, 0, 1};
  std::string_view exif, xmp;
  const size_t end = size_t{bytes::le32(file, 4)} + 8;
  if (end > file.size()) return invalid_argument("is a WebP file that is cut off");
  for (size_t at = 12; at + 8 <= end;) {
    const auto type = bytes::part(file, at, 4);
    const size_t size = bytes::le32(file, at + 4), body = at + 8;
    if (type == "VP8X") {
      header.stored_width = bytes::le24(file, body + 4) + 1;
      header.stored_height = bytes::le24(file, body + 7) + 1;
    } else if (type == "VP8 " && header.stored_width == 0) {
      header.stored_width = bytes::le16(file, body + 6) & 0x3FFFu;
      header.stored_height = bytes::le16(file, body + 8) & 0x3FFFu;
    } else if (type == "VP8L" && header.stored_width == 0) {
      const uint32_t bits = bytes::le32(file, body + 1);
      header.stored_width = (bits & 0x3FFFu) + 1;
      header.stored_height = (bits >> 14 & 0x3FFFu) + 1;
    } else if (type == "EXIF" && exif.empty() && has_flag(file, kHasExif)) {
      exif = bytes::part(file, body, size);
    } else if (type == "XMP " && xmp.empty() && has_flag(file, kHasXmp)) {
      xmp = bytes::part(file, body, size);
    }
    at = body + size + (size & 1);
  }
  header.orientation = stated_orientation(exif, xmp);
  return header;
}

Status decode_webp(std::string_view file, const ImageHeader& header, RgbImage& image) {
  return has_flag(file, kAnimated) ? decode_first_frame(file, header, image) : decode_still(file, header, image);
}

}  // namespace troupe::codecs
