#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "actors/data/record_medium.h"
#include "actors/data/record_table.h"
#include "base/config/job_spec.h"
#include "base/data/index_block.h"
#include "base/result.h"
#include "base/text_place.h"

namespace troupe {

struct Turn {
  Role role;
  std::string text;
  float weight = 1;  // of an answer's tokens in the loss; 0: not learned
};

/// A video as a record names it: a file, or frames that are pictures of their own.
struct RecordVideo {
  RecordMedium file;                 // without frames
  std::vector<RecordMedium> frames;  // in order
  double fps = 0;  // frames a second of `frames`, or to be taken of `file`; 0: the record does not say
  bool is_file() const { return frames.empty(); }
};

/// One training record in the one form that the rest of the folder knows, whatever spelling the file uses (docs/data.md
/// has the table).
struct Record {
  std::string id;                    // the record's own; empty when it has none
  std::vector<RecordMedium> images;  // in reading order
  std::vector<RecordVideo> videos;   // in reading order; placeholders.h says how the two interleave
  std::vector<Turn> turns;           // an optional system turn, then questions, each with its answer; between an answer
                                     // and the next any number of tools' turns may stand for the question
  NamedColumns named;                // of the spec; filled also on failure
};

/// Parses one JSON object. On failure the message is the reason for the report and `record.id` is filled if the object
/// has one. Checks roles, their order and the number of placeholders; opens no file. `spelling` goes before the table
/// of record_table.h; `begin` is where the object begins in its file, which messages about broken JSON refer to.
Status parse_record(std::string_view json, Record& record, const RecordSpelling& spelling = {}, TextPlace begin = {});

/// The same for a record that comes as an object whose pictures may be bytes (binary values), such as a row of a table.
Status parse_row(const nlohmann::json& object, Record& record, const RecordSpelling& spelling = {});

/// What lies beside a record rather than in it, and is its own when it names no picture and no video.
struct MediaBeside {
  std::vector<std::string> names;  // of pictures and videos, in their order
  std::string unread;              // what a record may be about and is not read, for a message; empty: nothing
};

/// The same for a record with media beside it, which are looked for only when it names none. Without a placeholder in
/// the text they come before the first question's.
Status parse_record_with_media(std::string_view json, const std::function<MediaBeside()>& beside, Record& record,
                               const RecordSpelling& spelling, TextPlace begin);

}  // namespace troupe
