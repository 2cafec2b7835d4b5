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

/// One video as a part of a turn: `value` is what names it, under `key` of the part or the part itself, and how many
/// frames a second may stand beside it. Null: the record's list has it, and nothing is added. InvalidArgument begins
/// with `where`, also for settings of a video that are not read.
Status read_part_video(const nlohmann::json& part, const nlohmann::json* value, const std::string& where,
                       const std::string& key, const RecordSpelling& spelling, std::vector<RecordVideo>& videos);

/// The record's list of videos, with the frames a second of those that are lists of frames, where its parts name none.
Status read_videos(const nlohmann::json& object, const RecordSpelling& spelling, Record& record);

/// In a record with videos and without images `<image>` may stand for a video; such placeholders become `<video>`.
void bind_image_placeholders_to_videos(Record& record);

}  // namespace troupe
