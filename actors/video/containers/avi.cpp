#include <algorithm>
#include <cctype>
#include <vector>

#include "actors/images/byte_reader.h"
#include "actors/video/containers/walks.h"

namespace troupe::containers {
namespace {

struct Chunk {
  std::string_view id;
  size_t begin = 0, end = 0;  // of what it holds
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// "00dc" and its like: two digits for the stream, two letters for what it is.
bool is_of_stream(std::string_view id) {
  return id.size() == 4 && is_digit(id[0]) && is_digit(id[1]) && std::isalnum(static_cast<unsigned char>(id[2])) != 0 &&
         std::isalnum(static_cast<unsigned char>(id[3])) != 0;
}
/// Palettes come in between. Writers have many words for a frame, FFmpeg reads all of them.
bool is_frame(std::string_view id) { return is_of_stream(id) && id.substr(2) != "pc"; }
/// What stands between frames, by the names that writers give to it.
bool is_filler(std::string_view id) {
  return id.starts_with("ix") || id == "JUNK" || id == "junk" || id == "PAD " || id == "segm";
}
bool is_rec(std::string_view bytes, size_t at) {
  return bytes::part(bytes, at, 4) == "LIST" && bytes::part(bytes, at + 8, 4) == "rec ";
}
bool goes_in_movi(std::string_view bytes, size_t at) {
  const std::string_view id = bytes::part(bytes, at, 4);
  return is_of_stream(id) || is_filler(id) || is_rec(bytes, at);
}
/// What comes behind the list of frames, which some writers say to be longer than it is.
bool goes_behind_movi(std::string_view bytes, size_t at) {
  const std::string_view id = bytes::part(bytes, at, 4);
  return id == "idx1" || id == "RIFF" || (id == "LIST" && !is_rec(bytes, at));
}
constexpr size_t kSlack = 8;  // bytes that some writers forget in the size of a list

/// Of a list whose size was never written.
bool is_open(uint64_t size) { return size == 0 || size == UINT32_MAX; }

struct Walk {
  std::string_view bytes;
  std::vector<int64_t> stated = {};                // frames of each stream; -1: none of video
  bool finished = true;                            // its sizes were written
  std::map<int64_t, int64_t> all = {}, full = {};  // chunks of each stream's frames; those that are not empty

  Chunk chunk_at(size_t at) const {
    const size_t begin = at + 8;
    return {bytes::part(bytes, at, 4), begin, begin + bytes::le32(bytes, at + 4)};
  }
  /// Behind the chunk, whose size is made even; not by all writers.
  size_t behind(const Chunk& chunk) const {
    const size_t padded = chunk.end + (chunk.end - chunk.begin) % 2;
    const auto known = [&](size_t at) { return goes_in_movi(bytes, at) || goes_behind_movi(bytes, at); };
    return known(chunk.end) && !known(padded) ? chunk.end : padded;
  }

  /// Where the list of chunks ends: at its end, or at what comes behind it.
  Result<size_t> frames(const Chunk& list, size_t end) {
    size_t at = list.begin + 4;
    while (at < end) {
      const Chunk chunk = chunk_at(at);
      if (goes_behind_movi(bytes, at)) return at;
      if (at + 8 > end) break;
      if (!goes_in_movi(bytes, at)) {
        if (is_padding(bytes, at, end)) return end;
        return breaks_at(at, "stands no chunk of a stream");
      }
      const bool group = is_rec(bytes, at);
      TROUPE_RETURN_IF_ERROR(fits(at, chunk.end, std::min(bytes.size(), end + kSlack), bytes));
      if (is_frame(chunk.id)) {
        const int64_t stream = (chunk.id[0] - '0') * 10 + chunk.id[1] - '0';
        ++all[stream];
        full[stream] += chunk.end > chunk.begin;
      }
      at = group ? chunk.begin + 4 : behind(chunk);
    }
    return std::max(at, behind({list.id, list.begin, end}));
  }

  /// The lists of streams, one "strh" each.
  void headers(const Chunk& list, int depth) {
    constexpr int kDeepest = 2;
    for (size_t at = list.begin + 4; at + 8 <= list.end;) {
      const Chunk chunk = chunk_at(at);
      if (chunk.end > list.end) return;
      if (chunk.id == "LIST" && bytes::part(bytes, chunk.begin, 4) == "strl" && depth < kDeepest)
        headers(chunk, depth + 1);
      constexpr size_t kLength = 32;
      if (chunk.id == "strh" && chunk.end - chunk.begin >= kLength + 4)
        stated.push_back(
            bytes::part(bytes, chunk.begin, 4) == "vids" ? int64_t{bytes::le32(bytes, chunk.begin + kLength)} : -1);
      at = behind(chunk);
    }
  }

  /// A long file has several lists one behind the other.
  Status whole() {
    size_t due = 0;  // where the last list ends
    for (size_t at = 0; at + 12 <= bytes.size();) {
      const Chunk chunk = chunk_at(at);
      const size_t size = chunk.end - chunk.begin;
      const std::string_view kind = bytes::part(bytes, chunk.begin, 4);
      if (chunk.id == "RIFF") {
        finished = finished && !is_open(size);
        // Some writers count the 8 bytes before, others do not.
        if (!is_open(size)) TROUPE_RETURN_IF_ERROR(fits(at, at + size, bytes.size(), bytes));
        due = is_open(size) ? bytes.size() : std::min(bytes.size(), chunk.end);
        at = chunk.begin + 4;
        continue;
      }
      const bool list = chunk.id == "LIST", movi = list && kind == "movi", open = movi && is_open(size);
      if (at >= due && !list) return {};
      if (is_of_stream(chunk.id)) return breaks_at(at, "stands a chunk of a stream outside of their list");
      if (!open) TROUPE_RETURN_IF_ERROR(fits(at, chunk.end, bytes.size(), bytes));
      if (list && kind == "hdrl") headers(chunk, 1);
      at = behind(chunk);
      if (movi) {
        TROUPE_ASSIGN(at, frames(chunk, open ? bytes.size() : chunk.end));
      }
    }
    return {};
  }
};

}  // namespace

Result<FrameCounts> count_avi(std::string_view bytes) {
  Walk walk{bytes};
  TROUPE_RETURN_IF_ERROR(walk.whole());
  FrameCounts counts;
  for (const auto& [stream, frames] : walk.full) counts[stream].frames = frames;
  for (size_t i = 0; i < walk.stated.size(); ++i) {
    const auto stream = static_cast<int64_t>(i);
    if (walk.finished && walk.all[stream] < walk.stated[i])
      counts[stream].wrong = "ends early: it states " + std::to_string(walk.stated[i]) + " frames and has " +
                             std::to_string(walk.all[stream]);
  }
  return counts;
}

}  // namespace troupe::containers
