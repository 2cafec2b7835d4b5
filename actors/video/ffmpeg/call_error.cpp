#include "actors/video/ffmpeg/call_error.h"

extern "C" {
#include <libavutil/error.h>
}

namespace troupe::ffmpeg {

Error call_error(int result, ErrorCode code, const std::string& what) {
  if (result == AVERROR(ENOMEM)) return out_of_memory(what);
  char text[AV_ERROR_MAX_STRING_SIZE] = {};
  av_strerror(result, text, sizeof(text));
  return make_error(code, what + ": " + text);
}

Error out_of_memory(const std::string& what) {
  return make_error(ErrorCode::kResourceExhausted,
                    what + ": there is no memory for it, or it asks for more than 2^29 bytes at once");
}

}  // namespace troupe::ffmpeg
