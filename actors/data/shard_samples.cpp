#include "actors/data/shard_samples.h"

#include <algorithm>

#include "actors/data/media_names.h"
#include "actors/images/image_file.h"
#include "actors/video/container.h"

namespace troupe {
namespace {

constexpr size_t kLookedAtBytes = 512;

/// Beside a picture they are what others made of it.
constexpr std::string_view kNumbers = "numbers";

/// Text may begin as anything does.
bool is_text(std::string_view bytes) {
  return std::none_of(bytes.begin(), bytes.end(), [](char c) {
    return static_cast<unsigned char>(c) < ' ' && c != '\t' && c != '\n' && c != '\r' && c != '\f' && c != '\x1B';
  });
}

std::string kind_by_content(std::string_view bytes) {
  if (is_text(bytes)) return {};
  if (image_type_of(bytes)) return "a picture by its content";
  if (const auto name = unread_image_type_of(bytes); !name.empty()) return std::string(name) + " by its content";
  const bool wave = bytes.starts_with("RIFF") && bytes.size() >= 12 && bytes.substr(8, 4) == "WAVE";
  if (wave || bytes.starts_with("fLaC") || bytes.starts_with("ID3") || bytes.starts_with("OggS"))
    return "sound by its content";
  return looks_like_video_data(bytes) ? "a video by its content" : "";
}

std::string unread_kind(const std::string& name, std::string_view bytes) {
  if (auto kind = kind_by_content(bytes.substr(0, kLookedAtBytes)); !kind.empty()) return kind;
  if (is_unread_picture_name(name)) return "a picture by its name";
  if (is_sound_name(name)) return "sound by its name";
  return is_numbers_name(name) ? std::string(kNumbers) + " by its name" : "";
}

}  // namespace

std::string sample_fault(const TarFile& shard, const TarFile::Sample& sample) {
  if (sample.apart)
    return std::string("is in pieces: its members do not lie side by side") +
           (shard.joined() ? ", or two of the archives that are joined here have its key" : "") +
           "; valid: a shard as tar --sort=name -cf SHARD.tar FOLDER writes it";
  std::vector<std::string_view> names;
  for (const size_t m : sample.members) names.push_back(shard.members()[m].name);
  std::sort(names.begin(), names.end());
  if (const auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end())
    return "has the member '" + std::string(*twice) + "' twice";
  const auto records =
      std::count_if(names.begin(), names.end(), [](const auto& name) { return member_extension(name) == "json"; });
  if (records == 0) {
    const auto json = std::find_if(names.begin(), names.end(), [](const auto& n) { return n.ends_with(".json"); });
    return "has no member KEY.json, which holds the turns" +
           (json == names.end() ? "" : "; the key of '" + std::string(*json) + "' ends at its first dot");
  }
  return records > 1 ? "has several members KEY.json" : "";
}

MediaBeside media_beside(const TarFile& shard, const TarFile::Sample& sample) {
  MediaBeside beside;
  std::string numbers;
  for (const size_t m : sample.members) {
    const auto& member = shard.members()[m];
    if (is_picture_name(member.name) || is_video_name(member.name)) {
      beside.names.push_back(member.name);
    } else if (beside.unread.empty() && member_extension(member.name) != "json") {
      const auto kind = unread_kind(member.name, shard.bytes(member));
      if (kind.empty()) continue;
      std::string& found = kind.starts_with(kNumbers) ? numbers : beside.unread;
      found = "member '" + member.name + "' is " + kind + ", which is not read";
    }
  }
  if (beside.unread.empty() && beside.names.empty()) beside.unread = numbers;
  return beside;
}

}  // namespace troupe
