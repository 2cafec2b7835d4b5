#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "actors/data/record.h"

/// The videos of a record: a file, or a list of frames. Throws what nlohmann's accessors throw.
namespace troupe {

/// What is said of pictures where videos belong.
inline constexpr const char* kHowFramesAreWritten =
    "a video of frames is written as a list of them inside of the list of videos";

/// One video as a part of a turn: `part` has the value under `type` ("video" or "video_url"), and how many frames a
/// second beside it. InvalidArgument begins with `where`, also for settings of a
/// video that are not read. Nothing is added when the part does not name it.
Status read_video_part(const nlohmann::json& part, const std::string& type, const std::string& where,
                       std::vector<RecordVideo>& videos);

/// The record's list of videos, with the frames a second of those that are lists of frames, behind those of its parts.
Status read_videos(const nlohmann::json& object, const RecordSpelling& spelling, Record& record);

/// In a record with videos and without images `<image>` may stand for a video; such placeholders become `<video>`.
void bind_image_placeholders_to_videos(Record& record);

/// A name of a video's file, the bytes of one, or a list or an object that holds one.
bool looks_like_video(const nlohmann::json& value);

}  // namespace troupe
