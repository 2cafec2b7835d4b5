#pragma once

#include <string_view>

namespace troupe {

/// Whether a file's name has the ending of a picture, in any case of letters; an ending alone is no name.
bool is_picture_name(std::string_view name);
/// Likewise of a picture of a kind that is not read.
bool is_unread_picture_name(std::string_view name);
/// Likewise of a video.
bool is_video_name(std::string_view name);
/// Likewise of sound, and of arrays or tensors.
bool is_sound_name(std::string_view name);
bool is_numbers_name(std::string_view name);

}  // namespace troupe
