#include "actors/data/media_names.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace troupe {
namespace {

constexpr std::array<std::string_view, 14> kPictureEndings{".jpg",  ".jpeg", ".png",  ".webp", ".gif", ".bmp", ".tif",
                                                           ".tiff", ".avif", ".heic", ".heif", ".jxl", ".jp2", ".svg"};
constexpr std::array<std::string_view, 13> kVideoEndings{".mp4",  ".m4v", ".mkv", ".webm", ".avi", ".mov", ".mpg",
                                                         ".mpeg", ".flv", ".wmv", ".3gp",  ".ogv", ".m2ts"};

/// `end` is in small letters.
bool ends_like(std::string_view name, std::string_view end) {
  return name.size() > end.size() &&
         std::equal(end.begin(), end.end(), name.end() - static_cast<std::ptrdiff_t>(end.size()),
                    [](char e, char c) { return std::tolower(static_cast<unsigned char>(c)) == e; });
}

}  // namespace

bool is_picture_name(std::string_view name) {
  return std::any_of(kPictureEndings.begin(), kPictureEndings.end(),
                     [&](std::string_view end) { return ends_like(name, end); });
}

bool is_video_name(std::string_view name) {
  return std::any_of(kVideoEndings.begin(), kVideoEndings.end(),
                     [&](std::string_view end) { return ends_like(name, end); });
}

}  // namespace troupe
