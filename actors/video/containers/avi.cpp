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
bool is_frame(std::string_view id) { return is_of_stream(id) && (id.substr(2) == "dc" || id.substr(2) == "db"); }
bool goes_in_movi(std::string_view id) {
  return is_of_stream(id) || id.starts_with("ix") || id == "JUNK" || id == "LIST";
}

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
  /// Behind the chunk: at an even place, which some writers do not keep to.
  size_t behind(const Chunk& chunk) const {
    const size_t even = chunk.end + chunk.end % 2;
    const bool unpadded = goes_in_movi(bytes::part(bytes, chunk.end, 4)) && !goes_in_movi(bytes::part(bytes, even, 4));
    return unpadded ? chunk.end : even;
  }

  /// Where the list of chunks ends.
  Result<size_t> frames(size_t begin, size_t end, bool open) {
    size_t at = begin;
    while (at + 8 <= end) {
      const Chunk chunk = chunk_at(at);
      if (open && (chunk.id == "idx1" || chunk.id == "RIFF")) return at;
      const bool group = chunk.id == "LIST" && bytes::part(bytes, chunk.begin, 4) == "rec ";
      if (!goes_in_movi(chunk.id) || (chunk.id == "LIST" && !group))
        return breaks_at(at, "stands no chunk of a stream");
      TROUPE_RETURN_IF_ERROR(fits(at, chunk.end, end, bytes));
      if (is_frame(chunk.id)) {
        const int64_t stream = (chunk.id[0] - '0') * 10 + chunk.id[1] - '0';
        ++all[stream];
        full[stream] += chunk.end > chunk.begin;
      }
      at = group ? chunk.begin + 4 : behind(chunk);
    }
    return end + end % 2;
  }

  /// The lists of streams, one "strh" each.
  Status headers(const Chunk& list, int depth) {
    constexpr int kDeepest = 2;
    for (size_t at = list.begin + 4; at + 8 <= list.end;) {
      const Chunk chunk = chunk_at(at);
      TROUPE_RETURN_IF_ERROR(fits(at, chunk.end, list.end, bytes));
      if (chunk.id == "LIST" && bytes::part(bytes, chunk.begin, 4) == "strl" && depth < kDeepest)
        TROUPE_RETURN_IF_ERROR(headers(chunk, depth + 1));
      constexpr size_t kLength = 32;
      if (chunk.id == "strh" && chunk.end - chunk.begin >= kLength + 4)
        stated.push_back(
            bytes::part(bytes, chunk.begin, 4) == "vids" ? int64_t{bytes::le32(bytes, chunk.begin + kLength)} : -1);
      at = behind(chunk);
    }
    return {};
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
      if (list && kind == "hdrl") TROUPE_RETURN_IF_ERROR(headers(chunk, 1));
      at = behind(chunk);
      if (movi) {
        TROUPE_ASSIGN(at, frames(chunk.begin + 4, open ? bytes.size() : chunk.end, open));
      }
    }
    return {};
  }
};

}  // namespace

Result<FrameCounts> count_avi(std::string_view bytes) {
  Walk walk{bytes};
  TROUPE_RETURN_IF_ERROR(walk.whole());
  for (size_t i = 0; i < walk.stated.size(); ++i) {
    const int64_t there = walk.all[static_cast<int64_t>(i)];
    if (walk.finished && there < walk.stated[i])
      return invalid_argument("ends early: it states " + std::to_string(walk.stated[i]) + " frames and has " +
                              std::to_string(there));
  }
  return walk.full;
}

}  // namespace troupe::containers
