#pragma once

#include <array>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/config/job_spec.h"

namespace troupe {

/// The one written table of spellings (docs/data.md shows it): under which keys a record keeps what, and which words
/// name a speaker. A source's `columns` and `roles` go before it.
enum class Column {
  kTurns,
  kRole,
  kContent,
  kImages,
  kSystem,
  kId,
  kQuestion,
  kInput,
  kAnswer,
  kHistory,
  kWeight,
  kRecordWeight,
  kVideos,
  kFps
};
enum class Role { kSystem, kUser, kAssistant, kTool };
const char* role_name(Role role);  // as the chat form spells it

/// The keys that may hold `column`, in the order in which they are looked for; one key when the source names it,
/// none when it names "". Without the keys that it ignores.
std::vector<std::string> keys_of(Column column, const RecordSpelling& spelling);
/// The keys of a column as the spec calls it, where no spec names others; none: it is no column.
const std::vector<std::string>& usual_keys_of(const std::string& name);
/// Every key that means something in a record or in a part of one, the refused ones too.
std::set<std::string> known_keys(const RecordSpelling& spelling);
/// Keys beside an image or a video that would change how large it is seen, and beside a video, which of its frames are.
inline constexpr std::array<const char*, 4> kSizeSettings{"min_pixels", "max_pixels", "resized_height",
                                                          "resized_width"};
inline constexpr std::array<const char*, 7> kVideoSettings{"nframes",    "video_start", "video_end",   "video_fps",
                                                           "min_frames", "max_frames",  "total_pixels"};
/// Whether a key in the object or the part of an image or a video speaks of a part of it, or of how it is to be seen.
bool sets_medium(std::string_view key);
/// Who a word names: `known` is false for any other word.
struct SpeakerWord {
  bool known = false;
  Role role = Role::kUser;
};
SpeakerWord speaker_of(const std::string& word, const RecordSpelling& spelling);
/// The words that name a speaker in this source, for messages.
std::string speaker_words(const RecordSpelling& spelling);
/// Words of other programs for whether something is learned, of which some leave out what is marked and others what is
/// not.
struct LossMark {
  const char* key;
  bool learn;   // what true and 1 ask for
  bool record;  // in a record it means the same, where others may be labels or the names of files
};
std::span<const LossMark> loss_marks();
/// Where a key stands: in a record with a list of turns, in one with its question and answer in columns, in a turn.
enum class KeyPlace { kRecord, kColumns, kTurn };
/// Why a key that would change what is trained is refused when it holds something.
struct KeyRefusal {
  std::string_view why;   // empty: the key is not of that kind
  bool of_false = false;  // also when it is false, 0 or "none", which elsewhere say that there is nothing
};
KeyRefusal refusal_of_key(const std::string& key, KeyPlace place);

}  // namespace troupe
