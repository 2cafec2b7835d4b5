#pragma once

#include <string_view>

namespace troupe {

/// Whether a file's name has the ending of a picture, in any case of letters.
bool is_picture_name(std::string_view name);
/// Likewise of a video, of kinds that are not read too; an ending alone is no name.
bool is_video_name(std::string_view name);

}  // namespace troupe
