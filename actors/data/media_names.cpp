#include "actors/data/media_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <span>

namespace troupe {
namespace {

constexpr std::array<std::string_view, 8> kPictureEndings{".jpg", ".jpeg", ".png", ".webp",
                                                          ".gif", ".bmp",  ".tif", ".tiff"};
constexpr std::array<std::string_view, 12> kUnreadPictureEndings{".avif", ".heic", ".heif", ".jxl", ".jp2", ".svg",
                                                                 ".ppm",  ".pgm",  ".pbm",  ".pnm", ".exr", ".tga"};
constexpr std::array<std::string_view, 13> kVideoEndings{".mp4",  ".m4v", ".mkv", ".webm", ".avi", ".mov", ".mpg",
                                                         ".mpeg", ".flv", ".wmv", ".3gp",  ".ogv", ".m2ts"};
constexpr std::array<std::string_view, 7> kSoundEndings{".wav", ".mp3", ".flac", ".ogg", ".opus", ".m4a", ".aac"};
constexpr std::array<std::string_view, 8> kNumbersEndings{".npy", ".npz", ".pt",     ".pth",
                                                          ".pyd", ".pkl", ".pickle", ".ten"};

/// `end` is in small letters.
bool ends_like(std::string_view name, std::string_view end) {
  return name.size() > end.size() &&
         std::equal(end.begin(), end.end(), name.end() - static_cast<std::ptrdiff_t>(end.size()),
                    [](char e, char c) { return std::tolower(static_cast<unsigned char>(c)) == e; });
}

bool ends_like_one(std::string_view name, std::span<const std::string_view> endings) {
  return std::ranges::any_of(endings, [&](std::string_view end) { return ends_like(name, end); });
}

}  // namespace

bool is_picture_name(std::string_view name) { return ends_like_one(name, kPictureEndings); }
bool is_unread_picture_name(std::string_view name) { return ends_like_one(name, kUnreadPictureEndings); }
bool is_video_name(std::string_view name) { return ends_like_one(name, kVideoEndings); }
bool is_sound_name(std::string_view name) { return ends_like_one(name, kSoundEndings); }
bool is_numbers_name(std::string_view name) { return ends_like_one(name, kNumbersEndings); }

}  // namespace troupe
