#pragma once

#include <nlohmann/json.hpp>

#include "actors/data/record_table.h"
#include "base/result.h"

namespace troupe {

/// Pictures and videos under keys that are not read, of the record, of its turns or of their parts, must not vanish
/// silently: InvalidArgument names the first key whose value looks like one. It does when it is the bytes or the name
/// of a file of that kind, a data URI, their beginning in base64, or, under a key that speaks of pictures or videos, an
/// address; also some levels deep in lists and objects. For a record that has no image and no video.
Status refuse_unread_media(const nlohmann::json& object, const RecordSpelling& spelling);

}  // namespace troupe
