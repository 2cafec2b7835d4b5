#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "actors/data/record.h"
#include "actors/data/video_settings.h"
#include "actors/images/image_file.h"
#include "actors/images/image_size.h"
#include "actors/sources/picture_root.h"
#include "actors/video/video_files.h"
#include "base/data/sample_index.h"
#include "base/result.h"

namespace troupe {

/// The videos of records: grids from headers, frames one at a time. Const calls are thread-safe.
class VideoReader {
 public:
  VideoReader(const VideoSettings& settings, std::unique_ptr<VideoFiles> files)
      : settings_(settings), files_(std::move(files)) {}

  /// Grid and seconds of a video; of a list of frames the header of each is read. Errors name the file and the reason:
  /// frames of different sizes, more than the limits of docs/data.md, whatever a picture or a file may have.
  Result<IndexedImage> grid(const PictureRoot& root, const RecordVideo& video) const;
  /// Decodes the frames that the model sees, in order. DataLoss when the grid is not `expected` any more.
  Status frames(const PictureRoot& root, const RecordVideo& video, const IndexedImage& expected,
                const std::function<Status(const RgbImage&)>& take) const;
  /// The first of them, for a person to look at.
  Result<RgbImage> first_frame(const PictureRoot& root, const RecordVideo& video) const;

  /// The size to which the frames of a grid are scaled.
  ImageSize scaled(const IndexedImage& grid) const {
    return {grid.h * settings_.patch_size, grid.w * settings_.patch_size};
  }
  const VideoSettings& settings() const { return settings_; }
  /// VideoFiles::version.
  uint64_t version() const { return files_->version(); }

 private:
  /// A video before its frames are decoded.
  struct Look {
    ImageSize size;
    int64_t frames = 0;            // that the model sees
    double fps = 0;                // of those
    std::vector<int64_t> numbers;  // of them in the file
  };
  Result<Look> look_at_frames(const PictureRoot& root, const RecordVideo& video) const;
  double rate_of_list(const RecordVideo& video) const { return video.fps > 0 ? video.fps : settings_.frame_list_fps; }
  Status frames_of_list(const PictureRoot& root, const RecordVideo& video, const IndexedImage& expected,
                        const std::function<Status(const RgbImage&)>& take) const;
  Result<Look> look_at_file(std::string_view bytes, const RecordVideo& video) const;
  Result<IndexedImage> grid_of_look(const Look& look) const;
  Status check_look(const RecordVideo& video, const Look& look, const IndexedImage& expected) const;
  Result<MediaBytes> open_file(const PictureRoot& root, const RecordVideo& video) const;

  const VideoSettings settings_;
  const std::unique_ptr<VideoFiles> files_;
};

/// "video 'PATH'", or "the video of 8 frames from 'PATH' on".
std::string video_name(const RecordVideo& video);

}  // namespace troupe
