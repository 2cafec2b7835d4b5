#pragma once

namespace troupe::ffmpeg {

/// FFmpeg's names of the decoders that files are given to; no other one sees their bytes.
inline constexpr const char* kCodecs =
    "h264,hevc,vp8,vp9,libdav1d,libaom-av1,av1,mpeg1video,mpeg2video,mpeg4,msmpeg4,msmpeg4v2,mjpeg,h263,prores,ffv1,"
    "rawvideo,png,qtrle";

}  // namespace troupe::ffmpeg
