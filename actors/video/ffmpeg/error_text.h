#pragma once

#include <string>

namespace troupe::ffmpeg {

/// FFmpeg's words for one of its error codes.
std::string error_text(int code);

}  // namespace troupe::ffmpeg
