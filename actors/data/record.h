#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "actors/data/record_table.h"
#include "base/config/job_spec.h"
#include "base/result.h"
#include "base/text_place.h"

namespace troupe {

struct Turn {
  Role role;
  std::string text;
  float weight = 1;  // of an answer's tokens in the loss; 0: not learned
};

/// A picture of a record: where it lies, or the record's own bytes.
struct RecordImage {
  std::string path;                          // or data URI, as written; of bytes what they are called
  std::shared_ptr<const std::string> bytes;  // shared with whoever looks at the picture; null: the path says where
  RecordImage(std::string p) : path(std::move(p)) {}  // NOLINT: implicit on purpose
  RecordImage(std::string name, std::shared_ptr<const std::string> held)
      : path(std::move(name)), bytes(std::move(held)) {}
  /// Whether the picture is a part of the record: bytes or a data URI.
  bool in_record() const;
};

/// One training record in the one form that the rest of the folder knows, whatever spelling the file uses (docs/data.md
/// has the table).
struct Record {
  std::string id;                   // the record's own; empty when it has none
  std::vector<RecordImage> images;  // in reading order
  std::vector<Turn> turns;          // an optional system turn, then questions, each with its answer; between an answer
                                    // and the next any number of tools' turns may stand for the question
};

/// What stands for an image in the text of a user turn.
inline constexpr std::string_view kImagePlaceholder = "<image>";
/// Placeholders in the user turns, which is where they count; elsewhere the word is text.
size_t count_placeholders(const Record& record);

/// Parses one JSON object. On failure the message is the reason for the report and `record.id` is filled if the object
/// has one. Checks roles, their order and the number of placeholders; opens no image. `spelling` goes before the table
/// of record_table.h; `begin` is where the object begins in its file, which messages about broken JSON refer to.
Status parse_record(std::string_view json, Record& record, const RecordSpelling& spelling = {}, TextPlace begin = {});

/// The same for a record that comes as an object whose pictures may be bytes (binary values), such as a row of a table.
Status parse_row(const nlohmann::json& object, Record& record, const RecordSpelling& spelling = {});

/// The same for a record whose pictures lie beside it rather than in it: `pictures` are its images when it names none.
/// Without a placeholder in the text they come before the first question's.
Status parse_record_with_pictures(std::string_view json, const std::vector<std::string>& pictures, Record& record,
                                  const RecordSpelling& spelling, TextPlace begin);

}  // namespace troupe
