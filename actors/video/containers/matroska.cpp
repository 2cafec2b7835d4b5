#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <set>
#include <vector>

#include "actors/images/byte_reader.h"
#include "actors/video/containers/walks.h"

namespace troupe::containers {
namespace {

constexpr uint32_t kHeader = 0x1A45DFA3, kSegment = 0x18538067, kCluster = 0x1F43B675, kTracks = 0x1654AE6B;
constexpr uint32_t kVoid = 0xEC, kChecksum = 0xBF, kTrack = 0xAE, kTrackNumber = 0xD7, kTrackType = 0x83;
constexpr uint32_t kSimpleBlock = 0xA3, kGroup = 0xA0, kBlock = 0xA1;
// SeekHead, Info, Chapters, Cues, Attachments, Tags, a place for signatures.
constexpr std::array kOfSegment = {kCluster,    kTracks,     kVoid,       kChecksum,   0x114D9B74U, 0x1549A966U,
                                   0x1043A770U, 0x1C53BB6BU, 0x1941A469U, 0x1254C367U, 0x1B538667U};
constexpr uint32_t kSilentTracks = 0x5854, kEncryptedBlock = 0xAF;
constexpr std::array kNumbers = {0xE7U, 0xA7U, 0xABU};  // Timestamp, Position, PrevSize

/// Of a cluster, a number being one.
bool goes_in_cluster(uint32_t id, size_t bytes) {
  constexpr size_t kLongestNumber = 8;
  if (std::ranges::find(kNumbers, id) != kNumbers.end()) return bytes <= kLongestNumber;
  return id == kSimpleBlock || id == kGroup || id == kVoid || id == kChecksum || id == kSilentTracks ||
         id == kEncryptedBlock;
}

/// The bits of the bytes from `at` on, of which the first says how many there are; the marking bit stays.
std::optional<uint64_t> number_at(std::string_view bytes, size_t& at) {
  const uint32_t first = bytes::at(bytes, at);
  if (first == 0) return {};
  const auto width = static_cast<size_t>(std::countl_zero(static_cast<uint8_t>(first))) + 1;
  if (at >= bytes.size() || bytes.size() - at < width) return {};
  uint64_t value = first;
  for (size_t i = 1; i < width; ++i) value = value << 8 | bytes::at(bytes, at + i);
  at += width;
  return value;
}

struct Element {
  uint32_t id = 0;
  size_t at = 0, begin = 0, end = 0;  // of it, and of what it holds
  bool open = false;                  // of unknown size: to where its kind cannot go on
};

struct Walk {
  std::string_view bytes;
  std::map<uint64_t, int64_t> blocks = {};  // frames by number of track
  std::set<uint64_t> numbers = {};          // of all tracks
  std::vector<uint64_t> video = {};         // of those of video

  Result<Element> element_at(size_t at, size_t limit) const {
    Element element{0, at, at, limit};
    const auto id = number_at(bytes, element.begin);
    if (!id || *id > UINT32_MAX) return cut_or(at, "stands no element");
    element.id = static_cast<uint32_t>(*id);
    const size_t size_at = element.begin;
    const auto marked = number_at(bytes, element.begin);
    if (!marked) return cut_or(at, "stands an element without a size");
    const uint64_t mark = uint64_t{1} << (7 * (element.begin - size_at));
    const uint64_t size = *marked ^ mark;
    element.open = size == mark - 1;
    if (element.open) return element;
    TROUPE_RETURN_IF_ERROR(fits(at, element.begin + size, limit, bytes));
    element.end = element.begin + size;
    return element;
  }
  Error cut_or(size_t at, const std::string& how) const {
    constexpr size_t kLongestHead = 12;
    return bytes.size() - at < kLongestHead ? invalid_argument("ends in the middle of an element") : breaks_at(at, how);
  }

  Status count_block(const Element& block) {
    size_t at = block.begin;
    const auto track = number_at(bytes, at);
    if (!track || at + 3 > block.end) return breaks_at(block.at, "stands a block without a head");
    constexpr uint32_t kLaced = 0x06;
    const bool laced = (bytes::at(bytes, at + 2) & kLaced) != 0;
    if (at + 3 == block.end) return {};  // nothing in it
    if (blocks.size() > kMostTracks) return too_many_tracks(block.at);
    blocks[*track ^ std::bit_floor(*track)] += laced ? bytes::at(bytes, at + 3) + 1 : 1;
    return {};
  }

  Status group(const Element& whole) {
    for (size_t at = whole.begin; at < whole.end;) {
      TROUPE_ASSIGN(const Element element, element_at(at, whole.end));
      if (element.open) return breaks_at(at, "stands an element without a size");
      if (element.id == kBlock) TROUPE_RETURN_IF_ERROR(count_block(element));
      at = element.end;
    }
    return {};
  }

  /// Its end, where the next element of the segment begins.
  Result<size_t> cluster(const Element& whole) {
    size_t at = whole.begin;
    while (at < whole.end) {
      TROUPE_ASSIGN(const Element element, element_at(at, whole.end));
      const bool another = !goes_in_cluster(element.id, element.end - element.begin);
      if (another && whole.open) break;
      if (another || element.open) return breaks_at(at, "stands no block of its cluster");
      if (element.id == kSimpleBlock) TROUPE_RETURN_IF_ERROR(count_block(element));
      if (element.id == kGroup) TROUPE_RETURN_IF_ERROR(group(element));
      at = element.end;
    }
    return at;
  }

  Status track(const Element& whole) {
    uint64_t number = 0, type = 0;
    for (size_t at = whole.begin; at < whole.end;) {
      TROUPE_ASSIGN(const Element element, element_at(at, whole.end));
      uint64_t value = 0;
      for (size_t i = element.begin; i < std::min(element.end, element.begin + 8); ++i)
        value = value << 8 | bytes::at(bytes, i);
      if (element.id == kTrackNumber) number = value;
      if (element.id == kTrackType) type = value;
      at = element.end;
    }
    constexpr uint64_t kVideo = 1;
    if (type == kVideo) video.push_back(number);
    numbers.insert(number);
    return {};
  }

  Status tracks(const Element& whole) {
    for (size_t at = whole.begin; at < whole.end;) {
      TROUPE_ASSIGN(const Element element, element_at(at, whole.end));
      if (element.id == kTrack) TROUPE_RETURN_IF_ERROR(track(element));
      at = element.end;
    }
    return {};
  }

  Status segment(const Element& whole) {
    for (size_t at = whole.begin; at < whole.end;) {
      if (whole.open && is_padding(bytes, at, bytes.size())) return {};
      TROUPE_ASSIGN(const Element element, element_at(at, whole.end));
      const bool known = std::ranges::find(kOfSegment, element.id) != kOfSegment.end();
      if (!known || (element.open && element.id != kCluster)) return breaks_at(at, "stands no part of the segment");
      if (element.id == kTracks && numbers.empty()) TROUPE_RETURN_IF_ERROR(tracks(element));
      at = element.end;
      if (element.id == kCluster) {
        TROUPE_ASSIGN(at, cluster(element));
      }
    }
    return {};
  }
};

}  // namespace

Result<FrameCounts> count_matroska(std::string_view bytes) {
  Walk walk{bytes};
  size_t at = 0;
  while (at < bytes.size()) {
    TROUPE_ASSIGN(const Element element, walk.element_at(at, bytes.size()));
    if (element.id == kSegment) {
      TROUPE_RETURN_IF_ERROR(walk.segment(element));
      break;  // what stands behind it is not looked at
    }
    if (element.open || (element.id != kHeader && element.id != kVoid && element.id != kChecksum))
      return breaks_at(at, "stands no segment");
    at = element.end;
  }
  for (const auto& [number, frames] : walk.blocks)
    if (!walk.numbers.contains(number))
      return invalid_argument("is damaged: it has " + std::to_string(frames) + " blocks of track " +
                              std::to_string(number) + ", which it does not describe");
  FrameCounts counts;
  for (size_t i = 0; i < walk.video.size(); ++i) counts[static_cast<int64_t>(i)].frames = walk.blocks[walk.video[i]];
  return counts;
}

}  // namespace troupe::containers
