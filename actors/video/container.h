#pragma once

#include <string_view>

namespace troupe {

/// FFmpeg's name of the container that the bytes begin with ("mov", "matroska", "avi"); null: none that is read.
const char* video_container_of(std::string_view bytes);

/// Whether they begin as a container of video does, one that is not read included.
bool looks_like_video_data(std::string_view bytes);

}  // namespace troupe
