#include <tiffio.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>

#include "actors/images/byte_reader.h"
#include "actors/images/codecs.h"
#include "actors/images/exif.h"

namespace troupe::codecs {
namespace {

constexpr uint64_t kMostExtraSamples = 64;  // of which alpha is looked for

/// The first directory of a classic or a big TIFF file.
class Directory {
 public:
  explicit Directory(std::string_view file) : file_{file, file.starts_with("II")}, big_(file_.u16(2) == 43) {
    const uint64_t at = big_ ? file_.u64(8) : file_.u32(4);
    if (at >= file.size()) return;
    first_ = static_cast<size_t>(at) + (big_ ? 8 : 2);
    const uint64_t stated = big_ ? file_.u64(static_cast<size_t>(at)) : file_.u16(static_cast<size_t>(at));
    const uint64_t there = first_ > file.size() ? 0 : (file.size() - first_) / size();
    entries_ = static_cast<size_t>(std::min({stated, there, kMostEntries}));
  }

  /// Value number `i` of a tag of whole numbers; nothing when the tag is missing or the file too short.
  std::optional<uint64_t> value(uint32_t tag, uint64_t i = 0) const {
    const auto entry = find(tag);
    if (!entry || i >= count(*entry)) return std::nullopt;
    const uint32_t type = file_.u16(*entry + 2);
    const size_t width = type == 3 ? 2 : type == 4 ? 4 : type == 16 ? 8 : type == 1 ? 1 : 0;
    if (width == 0) return std::nullopt;
    const size_t field = *entry + (big_ ? 12 : 8);
    uint64_t at = field + i * width;
    if (count(*entry) > (big_ ? 8 : 4) / width) at = (big_ ? file_.u64(field) : file_.u32(field)) + i * width;
    if (at >= file_.data.size() || file_.data.size() - at < width) return std::nullopt;
    const auto where = static_cast<size_t>(at);
    return width == 1   ? bytes::at(file_.data, where)
           : width == 2 ? file_.u16(where)
           : width == 4 ? file_.u32(where)
                        : file_.u64(where);
  }
  /// A tag's bytes; empty when it is missing, of another type or not in the file.
  std::string_view text(uint32_t tag) const {
    const auto entry = find(tag);
    const uint32_t type = entry ? file_.u16(*entry + 2) : 0;
    const uint64_t size = entry ? count(*entry) : 0, in_place = big_ ? 8 : 4;
    if ((type != 1 && type != 7) || size <= in_place) return {};
    const size_t field = *entry + (big_ ? 12 : 8);
    const uint64_t at = big_ ? file_.u64(field) : file_.u32(field), end = file_.data.size();
    if (at > end || size > end - at) return {};
    return file_.data.substr(static_cast<size_t>(at), static_cast<size_t>(size));
  }
  uint64_t count_of(uint32_t tag) const {
    const auto entry = find(tag);
    return entry ? count(*entry) : 0;
  }

 private:
  static constexpr uint64_t kMostEntries = 4096;
  size_t size() const { return big_ ? 20 : 12; }
  uint64_t count(size_t entry) const { return big_ ? file_.u64(entry + 4) : file_.u32(entry + 4); }
  std::optional<size_t> find(uint32_t tag) const {
    for (size_t i = 0; i < entries_; ++i)
      if (file_.u16(first_ + i * size()) == tag) return first_ + i * size();
    return std::nullopt;
  }

  bytes::Ordered file_;
  bool big_;
  size_t first_ = 0, entries_ = 0;
};

/// Whether every strip or tile lies inside of the file.
bool is_whole(const Directory& directory, size_t file_bytes) {
  const bool tiled = directory.count_of(TIFFTAG_TILEOFFSETS) > 0;
  const uint32_t offsets = tiled ? TIFFTAG_TILEOFFSETS : TIFFTAG_STRIPOFFSETS;
  const uint32_t sizes = tiled ? TIFFTAG_TILEBYTECOUNTS : TIFFTAG_STRIPBYTECOUNTS;
  const uint64_t pieces = directory.count_of(offsets);
  for (uint64_t i = 0; i < pieces; ++i) {
    const auto offset = directory.value(offsets, i), size = directory.value(sizes, i);
    if (!offset || *offset > file_bytes || (size && *size > file_bytes - *offset)) return false;
  }
  return pieces > 0;
}

struct Source {
  std::string_view data;
  uint64_t at;
  char message[256];
};

Source& source_of(thandle_t handle) { return *static_cast<Source*>(handle); }

tmsize_t read(thandle_t handle, void* out, tmsize_t size) {
  Source& source = source_of(handle);
  if (source.at >= source.data.size() || size <= 0) return 0;
  const size_t count = std::min(static_cast<size_t>(size), source.data.size() - static_cast<size_t>(source.at));
  std::memcpy(out, source.data.data() + source.at, count);
  source.at += count;
  return static_cast<tmsize_t>(count);
}
tmsize_t refuse_write(thandle_t, void*, tmsize_t) { return 0; }
toff_t seek(thandle_t handle, toff_t offset, int whence) {
  Source& source = source_of(handle);
  source.at = offset + (whence == SEEK_CUR ? source.at : whence == SEEK_END ? source.data.size() : 0);
  return source.at;
}
int close(thandle_t) { return 0; }
toff_t size_of(thandle_t handle) { return source_of(handle).data.size(); }
int map(thandle_t handle, void** base, toff_t* size) {
  *base = const_cast<char*>(source_of(handle).data.data());
  *size = source_of(handle).data.size();
  return 1;
}
void unmap(thandle_t, void*, toff_t) {}

int failed(TIFF*, void* user, const char*, const char* format, va_list values) {
  auto* source = static_cast<Source*>(user);
  if (source->message[0] == '\0') std::vsnprintf(source->message, sizeof(source->message), format, values);
  return 1;
}
int warned(TIFF*, void*, const char*, const char*, va_list) { return 1; }

using File = std::unique_ptr<TIFF, void (*)(TIFF*)>;

File open(Source& source) {
  const std::unique_ptr<TIFFOpenOptions, void (*)(TIFFOpenOptions*)> options(TIFFOpenOptionsAlloc(),
                                                                             TIFFOpenOptionsFree);
  TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), kMaxImagePixels * 4);
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), failed, &source);
  TIFFOpenOptionsSetWarningHandlerExtR(options.get(), warned, nullptr);
  return {
      TIFFClientOpenExt("image", "rm", &source, read, refuse_write, seek, close, size_of, map, unmap, options.get()),
      TIFFClose};
}

/// How colours and alpha come out of libtiff.
enum class Alpha { kNone, kMultiplied, kStraight };

/// What the file's ExtraSamples say. A file that leaves their meaning open is taken to have no alpha.
Alpha stated_alpha(const Directory& directory) {
  const uint64_t kind = directory.value(TIFFTAG_EXTRASAMPLES).value_or(EXTRASAMPLE_UNSPECIFIED);
  return kind == EXTRASAMPLE_UNSPECIFIED  ? Alpha::kNone
         : kind == EXTRASAMPLE_ASSOCALPHA ? Alpha::kMultiplied
                                          : Alpha::kStraight;
}

bool is_grey(const Directory& directory) {
  return directory.value(TIFFTAG_PHOTOMETRIC) == uint64_t{PHOTOMETRIC_MINISBLACK};
}
bool is_planar(const Directory& directory) {
  return directory.value(TIFFTAG_PLANARCONFIG).value_or(PLANARCONFIG_CONTIG) == PLANARCONFIG_SEPARATE;
}

/// libtiff multiplies colours by straight alpha, but not the grey of interleaved samples.
Alpha delivered_alpha(const Directory& directory) {
  const Alpha stated = stated_alpha(directory);
  const bool as_stored = is_grey(directory) && !is_planar(directory);
  return stated == Alpha::kStraight && !as_stored ? Alpha::kMultiplied : stated;
}

/// Kinds that libtiff would take for others, or refuses without a word that helps; empty for the rest.
std::string foreign_kind(const Directory& directory) {
  const uint64_t bits = directory.value(TIFFTAG_BITSPERSAMPLE).value_or(1);
  const uint64_t format = directory.value(TIFFTAG_SAMPLEFORMAT).value_or(SAMPLEFORMAT_UINT);
  const uint64_t compression = directory.value(TIFFTAG_COMPRESSION).value_or(COMPRESSION_NONE);
  if (format == SAMPLEFORMAT_IEEEFP) return "floating-point samples";
  if (format == SAMPLEFORMAT_COMPLEXINT || format == SAMPLEFORMAT_COMPLEXIEEEFP) return "complex samples";
  if (bits != 1 && bits != 2 && bits != 4 && bits != 8 && bits != 16) return std::to_string(bits) + "-bit samples";
  if (format == SAMPLEFORMAT_INT && bits > 8) return "signed samples of " + std::to_string(bits) + " bits";
  if (compression > UINT16_MAX || TIFFIsCODECConfigured(static_cast<uint16_t>(compression)) == 0)
    return "compression " + std::to_string(compression);
  const auto colours = directory.value(TIFFTAG_PHOTOMETRIC);
  if (colours == uint64_t{PHOTOMETRIC_PALETTE} && directory.count_of(TIFFTAG_COLORMAP) == 0)
    return "a palette that is missing";
  for (uint64_t i = 1; i < directory.count_of(TIFFTAG_EXTRASAMPLES) && i < kMostExtraSamples; ++i)
    if (directory.value(TIFFTAG_EXTRASAMPLES, i).value_or(EXTRASAMPLE_UNSPECIFIED) != EXTRASAMPLE_UNSPECIFIED)
      return "alpha that is not the first extra sample";
  const bool has_alpha_beside =
      colours == uint64_t{PHOTOMETRIC_RGB} ||
      (is_grey(directory) && bits == 8 && directory.value(TIFFTAG_SAMPLESPERPIXEL) == uint64_t{2});
  if (stated_alpha(directory) != Alpha::kNone && !has_alpha_beside)
    return "alpha beside other samples than RGB or 8-bit grey";
  return "";
}

/// Begins to read; false with the reason in source.message.
bool begin(TIFF* file, Source& source, TIFFRGBAImage& rgba) {
  char why[1024] = {};
  if (TIFFRGBAImageOK(file, why) && TIFFRGBAImageBegin(&rgba, file, 1, why)) return true;
  if (source.message[0] == '\0') std::snprintf(source.message, sizeof(source.message), "%s", why);
  return false;
}

/// Fills `raster` [height, width] in stored order.
bool fill(TIFF* file, Source& source, std::vector<uint32_t>& raster, uint32_t width, uint32_t height) {
  TIFFRGBAImage rgba{};
  if (!begin(file, source, rgba)) return false;
  rgba.req_orientation = rgba.orientation;  // turned by us, as for every other type
  if (rgba.Bitdepth16To8 != nullptr)        // the high byte, where libtiff rounds
    for (unsigned v = 0; v < 65536; ++v) rgba.Bitdepth16To8[v] = static_cast<uint8_t>(v >> 8);
  const bool good =
      rgba.width == width && rgba.height == height && TIFFRGBAImageGet(&rgba, raster.data(), width, height) == 1;
  TIFFRGBAImageEnd(&rgba);
  return good;
}

/// A sample on white, rounded to the nearest.
uint8_t on_white(uint32_t sample, uint32_t alpha, Alpha form) {
  if (form == Alpha::kNone) return static_cast<uint8_t>(sample);
  if (form == Alpha::kMultiplied) return static_cast<uint8_t>(std::min(255u, sample + 255 - alpha));
  return static_cast<uint8_t>((sample * alpha + 255 * (255 - alpha) + 127) / 255);
}

/// What the header states and no decoder here reads, so that it is known before a picture is wanted.
Status check_kind(std::string_view file, const Directory& directory) {
  if (const std::string kind = foreign_kind(directory); !kind.empty())
    return invalid_argument("is a TIFF with " + kind + "; that is not read");
  Source source{file, 0, {}};
  const File tiff = open(source);
  TIFFRGBAImage rgba{};
  if (tiff == nullptr || !begin(tiff.get(), source, rgba))
    return invalid_argument(std::string("is a TIFF that is not read: ") + source.message);
  TIFFRGBAImageEnd(&rgba);
  return {};
}

}  // namespace

Result<ImageHeader> tiff_header(std::string_view file) {
  const Directory directory(file);
  const auto width = directory.value(TIFFTAG_IMAGEWIDTH), height = directory.value(TIFFTAG_IMAGELENGTH);
  if (!width || !height || !is_whole(directory, file.size()))
    return invalid_argument("is a TIFF that is cut off or whose header is damaged");
  constexpr uint64_t kMost = uint64_t{1} << 32;
  ImageHeader header{ImageType::kTiff, static_cast<int64_t>(std::min(*width, kMost)),
                     static_cast<int64_t>(std::min(*height, kMost)), 1};
  const auto orientation = directory.value(TIFFTAG_ORIENTATION);
  if (!orientation) header.orientation = stated_orientation("", directory.text(TIFFTAG_XMLPACKET));
  if (orientation && *orientation >= 1 && *orientation <= 8) header.orientation = static_cast<int>(*orientation);
  TROUPE_RETURN_IF_ERROR(check_kind(file, directory));
  return header;
}

std::string tiff_version() { return TIFFGetVersion(); }

Status decode_tiff(std::string_view file, const ImageHeader& header, RgbImage& image) {
  Source source{file, 0, {}};
  const auto why = [&] {
    return data_loss(std::string("is a TIFF that does not decode: ") +
                     (source.message[0] != '\0' ? source.message : "its headers disagree"));
  };
  const File tiff = open(source);
  if (tiff == nullptr) return why();
  const size_t pixels = static_cast<size_t>(header.stored_width * header.stored_height);
  std::vector<uint32_t> raster(pixels);
  if (!fill(tiff.get(), source, raster, static_cast<uint32_t>(header.stored_width),
            static_cast<uint32_t>(header.stored_height)))
    return why();
  const Alpha alpha = delivered_alpha(Directory(file));
  image.pixels.resize(pixels * 3);
  uint8_t* out = image.pixels.data();
  for (const uint32_t pixel : raster)
    for (const uint32_t sample : {TIFFGetR(pixel), TIFFGetG(pixel), TIFFGetB(pixel)})
      *out++ = on_white(sample, TIFFGetA(pixel), alpha);
  return {};
}

}  // namespace troupe::codecs
