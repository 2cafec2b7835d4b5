#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include "actors/images/byte_reader.h"
#include "actors/video/containers/walks.h"

namespace troupe::containers {
namespace {

struct Box {
  std::string_view type;
  size_t at = 0, begin = 0, end = 0;  // of it, and of what it holds
  size_t size() const { return end - begin; }
};

constexpr int kDeepest = 3;  // trak, mdia, minf

/// What the tables of a track, or the fragments behind them, count.
struct Track {
  uint32_t id = 0;
  bool video = false, edited = false;
  std::optional<Box> tables;
  std::optional<int64_t> sizes, times, chunks;
};

constexpr std::array<std::string_view, 12> kOfFile = {"ftyp", "moov", "mdat", "moof", "mfra", "free",
                                                      "skip", "wide", "uuid", "meta", "udta", "sidx"};

bool is_type(std::string_view type) {
  // QuickTime's are MacRoman, with a copyright sign.
  return type.size() == 4 &&
         std::ranges::all_of(type, [](unsigned char c) { return c == 0xA9 || std::isprint(c) != 0; });
}

struct Walk {
  std::string_view bytes;
  std::map<uint32_t, Track> tracks = {};
  std::map<uint32_t, int64_t> in_fragments = {};
  bool in_parts = false;

  /// Nothing where what is left is no box.
  Result<std::optional<Box>> box_at(size_t at, size_t limit) const {
    if (at + 8 > limit) return std::optional<Box>();
    if (is_padding(bytes, at, limit)) return std::optional<Box>();  // as QuickTime ends some lists
    if (!is_type(bytes::part(bytes, at + 4, 4))) return breaks_at(at, "stands no box");
    uint64_t size = bytes::be32(bytes, at);
    Box box{bytes::part(bytes, at + 4, 4), at, at + 8, limit};
    if (size == 1) {
      if (at + 16 > limit) return cut_or(at, limit);
      size = bytes::be64(bytes, at + 8);
      box.begin = at + 16;
    }
    if (size < box.begin - at) return breaks_at(at, "stands a box that is shorter than its head");
    if (size > UINT64_MAX - at) return breaks_at(at, "stands a box without an end");
    TROUPE_RETURN_IF_ERROR(fits(at, at + size, limit, bytes));
    box.end = at + size;
    return std::optional<Box>(box);
  }
  Error cut_or(size_t at, size_t limit) const {
    return limit == bytes.size() ? invalid_argument("ends in the middle of a box") : breaks_at(at, "ends a box early");
  }

  template <typename Visit>
  Status each_in(const Box& whole, Visit visit) const {
    for (size_t at = whole.begin; at < whole.end;) {
      TROUPE_ASSIGN(const std::optional<Box> box, box_at(at, whole.end));
      if (!box) return {};
      TROUPE_RETURN_IF_ERROR(visit(*box));
      at = box->end;
    }
    return {};
  }

  /// Entries of a table: their number stands at `count_at` of the box, they behind it.
  Result<uint32_t> entries(const Box& box, size_t count_at, size_t entry_bytes) const {
    const uint32_t count = bytes::be32(bytes, box.begin + count_at);
    if (box.size() < count_at + 4 || count > (box.size() - count_at - 4) / entry_bytes)
      return breaks_at(box.at, "stands a table with fewer entries than it counts");
    return count;
  }

  Status times(const Box& box, Track& track) const {
    TROUPE_ASSIGN(const uint32_t count, entries(box, 4, 8));
    int64_t frames = 0;
    for (uint32_t i = 0; i < count; ++i) frames += bytes::be32(bytes, box.begin + 8 + size_t{8} * i);
    track.times = frames;
    return {};
  }

  Status sizes(const Box& box, Track& track) const {
    const bool alike = box.type == "stsz" && bytes::be32(bytes, box.begin + 4) != 0;
    const size_t bits = box.type == "stsz" ? 32 : bytes::be32(bytes, box.begin + 4) & 0xFF;
    const uint32_t count = bytes::be32(bytes, box.begin + 8);
    if (box.size() < 12 || (!alike && count > (box.size() - 12) * 8 / std::max<size_t>(bits, 1)))
      return breaks_at(box.at, "stands a table with fewer entries than it counts");
    track.sizes = count;
    return {};
  }

  /// Frames in each chunk (stsc) together, over as many chunks as have a place (stco or co64).
  Status chunks(const Box& runs, const Box& places, Track& track) const {
    TROUPE_ASSIGN(const uint32_t count, entries(runs, 4, 12));
    TROUPE_ASSIGN(const uint32_t placed, entries(places, 4, places.type == "stco" ? 4 : 8));
    int64_t frames = 0;
    for (uint32_t i = 0; i < count; ++i) {
      const size_t at = runs.begin + 8 + size_t{12} * i;
      const int64_t end = int64_t{placed} + 1, first = std::min<int64_t>(bytes::be32(bytes, at), end);
      const int64_t next = i + 1 < count ? std::min<int64_t>(bytes::be32(bytes, at + 12), end) : end;
      if (first < 1 || next < first) return breaks_at(runs.at, "stands a table of chunks that does not ascend");
      frames += (next - first) * bytes::be32(bytes, at + 4);
    }
    track.chunks = frames;
    return {};
  }

  Status tables(const Box& whole, Track& track) const {
    std::optional<Box> runs, places;
    TROUPE_RETURN_IF_ERROR(each_in(whole, [&](const Box& box) -> Status {
      if (box.type == "stts") return times(box, track);
      if (box.type == "stsz" || box.type == "stz2") return sizes(box, track);
      if (box.type == "stsc") runs = box;
      if (box.type == "stco" || box.type == "co64") places = box;
      return {};
    }));
    return runs && places ? chunks(*runs, *places, track) : Status();
  }

  Status track(const Box& whole, Track& track, int depth) const {
    return each_in(whole, [&](const Box& box) -> Status {
      const bool wide = bytes::at(bytes, box.begin) == 1;  // its version: times of 8 bytes
      if (box.type == "tkhd") track.id = bytes::be32(bytes, box.begin + (wide ? 20 : 12));
      if (box.type == "hdlr" && bytes::part(bytes, box.begin + 8, 4) == "vide") track.video = true;
      if (box.type == "elst") track.edited = true;
      if (box.type == "stbl") track.tables = box;
      const bool deeper = box.type == "edts" || box.type == "mdia" || box.type == "minf";
      return deeper && depth < kDeepest ? this->track(box, track, depth + 1) : Status();
    });
  }

  Status movie(const Box& whole) {
    return each_in(whole, [&](const Box& box) -> Status {
      if (box.type == "mvex") in_parts = true;
      if (box.type != "trak") return {};
      Track found;
      TROUPE_RETURN_IF_ERROR(track(box, found, 1));
      if (found.video && found.tables) TROUPE_RETURN_IF_ERROR(tables(*found.tables, found));
      if (tracks.size() >= kMostTracks) return too_many_tracks(box.at);
      tracks[found.id] = found;
      return {};
    });
  }

  Result<int64_t> run(const Box& box) const {
    const uint32_t flags = bytes::be32(bytes, box.begin), count = bytes::be32(bytes, box.begin + 4);
    size_t head = 8, each = 0;
    for (const uint32_t flag : {0x1U, 0x4U}) head += (flags & flag) != 0 ? 4 : 0;
    for (const uint32_t flag : {0x100U, 0x200U, 0x400U, 0x800U}) each += (flags & flag) != 0 ? 4 : 0;
    if (box.size() < head || box.size() - head != each * count)
      return breaks_at(box.at, "stands a table of another size than its number of entries has");
    return count;
  }

  Status fragment(const Box& whole) {
    return each_in(whole, [&](const Box& part) -> Status {
      if (part.type != "traf") return {};
      uint32_t id = 0;
      return each_in(part, [&](const Box& box) -> Status {
        if (box.type == "tfhd") id = bytes::be32(bytes, box.begin + 4);
        if (box.type != "trun") return {};
        TROUPE_ASSIGN(const int64_t frames, run(box));
        if (id == 0) return breaks_at(box.at, "stands a run of frames before its track");
        if (!tracks.contains(id)) return breaks_at(part.at, "stands a fragment of no track");
        in_fragments[id] += frames;
        return {};
      });
    });
  }

  /// The parts that an index says to come behind it.
  Status indexed(const Box& box) const {
    const bool wide = bytes::at(bytes, box.begin) != 0;
    const size_t first_at = box.begin + (wide ? 20 : 16), count_at = first_at + (wide ? 10 : 6);
    const uint32_t count = bytes::be16(bytes, count_at);
    if (box.end < count_at + 2 || count > (box.end - count_at - 2) / 12)
      return breaks_at(box.at, "stands a table with fewer entries than it counts");
    const uint64_t first = wide ? bytes::be64(bytes, first_at) : bytes::be32(bytes, first_at);
    if (first > bytes.size()) return breaks_at(box.at, "stands an index of what is not there");
    uint64_t end = box.end + first;
    for (uint32_t i = 0; i < count; ++i) end += bytes::be32(bytes, count_at + 2 + size_t{12} * i) & 0x7FFFFFFF;
    return fits(box.at, end, bytes.size(), bytes);
  }

  Status whole() {
    bool movie_seen = false;
    for (size_t at = 0; at < bytes.size();) {
      // What stands behind the last box is of no meaning to a file whose tables stand in one place.
      const bool is_box = at + 8 <= bytes.size() && is_type(bytes::part(bytes, at + 4, 4));
      if (!is_box && (movie_seen && (!in_parts || (at + 8 <= bytes.size() && is_padding(bytes, at, bytes.size())))))
        return {};
      if (!is_box) return at + 8 > bytes.size() ? cut_or(at, bytes.size()) : breaks_at(at, "stands no box");
      const bool to_the_end = bytes::be32(bytes, at) == 0;
      const std::string_view type = bytes::part(bytes, at + 4, 4);
      if (to_the_end && type != "moov" && type != "moof") return {};
      const auto found = box_at(at, bytes.size());
      if (!found.ok() && movie_seen && !in_parts && std::ranges::find(kOfFile, type) == kOfFile.end()) return {};
      TROUPE_ASSIGN(const std::optional<Box> box, found);
      if (box->type == "moov" && !movie_seen) {
        movie_seen = true;
        TROUPE_RETURN_IF_ERROR(movie(*box));
      }
      if (box->type == "moof") TROUPE_RETURN_IF_ERROR(fragment(*box));
      if (box->type == "sidx") TROUPE_RETURN_IF_ERROR(indexed(*box));
      at = box->end;
    }
    return {};
  }
};

}  // namespace

Result<FrameCounts> count_mp4(std::string_view bytes) {
  Walk walk{bytes};
  TROUPE_RETURN_IF_ERROR(walk.whole());
  FrameCounts counts;
  for (const auto& [id, track] : walk.tracks) {
    if (!track.video) continue;
    const int64_t sizes = track.sizes.value_or(0), times = track.times.value_or(0), chunks = track.chunks.value_or(0);
    HeldFrames& held = counts[id];
    if (times != sizes || chunks < sizes)
      held.wrong = "is damaged: its tables count " + std::to_string(sizes) + " sizes, " + std::to_string(times) +
                   " times and " + std::to_string(chunks) + " places of frames";
    if (sizes == 0 || !track.edited) held.frames = sizes + walk.in_fragments[id];
  }
  return counts;
}

}  // namespace troupe::containers
