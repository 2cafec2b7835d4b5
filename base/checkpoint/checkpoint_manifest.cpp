#include "base/checkpoint/checkpoint_manifest.h"

#include <array>
#include <nlohmann/json.hpp>

namespace troupe {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormat = 1;
constexpr std::array<Axis, kAxisCount> kAxes = {Axis::kDp, Axis::kPp, Axis::kCp, Axis::kSp, Axis::kTp};

Json group_to_json(const CheckpointGroup& group) {
  Json mesh = Json::object();
  for (const Axis axis : kAxes) mesh[axis_name(axis)] = group.mesh.size(axis);
  return {{"name", group.name}, {"mesh", mesh}, {"zero", group.zero}, {"tp_sequence", group.tp_sequence}};
}

CheckpointGroup group_from_json(const Json& json) {
  CheckpointGroup group;
  group.name = json.at("name").get<std::string>();
  for (const Axis axis : kAxes) group.mesh.set(axis, json.at("mesh").at(axis_name(axis)).get<int>());
  group.zero = json.at("zero").get<int>();
  group.tp_sequence = json.at("tp_sequence").get<bool>();
  return group;
}

}  // namespace

std::string manifest_to_json(const CheckpointManifest& manifest) {
  Json groups = Json::array(), files = Json::array();
  for (const CheckpointGroup& group : manifest.groups) groups.push_back(group_to_json(group));
  for (const CheckpointFile& file : manifest.files) files.push_back({{"name", file.name}, {"bytes", file.bytes}, {"xxh64", file.xxh64}});
  const Json json = {{"format", kFormat},
                     {"step", manifest.step},
                     {"skipped_steps", manifest.skipped_steps},
                     {"samples_done", manifest.samples_done},
                     {"dtype", manifest.dtype},
                     {"groups", groups},
                     {"files", files}};
  return json.dump(2) + "\n";
}

Result<CheckpointManifest> manifest_from_json(const std::string& text, const std::string& origin) {
  try {
    const Json json = Json::parse(text);
    if (json.at("format").get<int>() != kFormat)
      return invalid_argument(origin + ": format " + json.at("format").dump() + " is not known; valid: " + std::to_string(kFormat));
    CheckpointManifest manifest;
    manifest.step = json.at("step").get<int64_t>();
    manifest.skipped_steps = json.at("skipped_steps").get<int64_t>();
    manifest.samples_done = json.at("samples_done").get<int64_t>();
    manifest.dtype = json.at("dtype").get<std::string>();
    for (const Json& group : json.at("groups")) manifest.groups.push_back(group_from_json(group));
    for (const Json& file : json.at("files"))
      manifest.files.push_back({file.at("name").get<std::string>(), file.at("bytes").get<uint64_t>(), file.at("xxh64").get<std::string>()});
    return manifest;
  } catch (const Json::exception& e) {
    return data_loss(origin + ": is not a checkpoint manifest: " + e.what());
  }
}

std::string layout_in_words(const CheckpointManifest& manifest) {
  std::string text;
  for (const CheckpointGroup& group : manifest.groups)
    text += group.name + ": " + group.mesh.to_string() + ", zero " + std::to_string(group.zero) + (group.tp_sequence ? ", tp_sequence; " : "; ");
  return text + manifest.dtype;
}

Status check_same_layout(const CheckpointManifest& saved, const CheckpointManifest& wanted, const std::string& folder) {
  if (saved.groups == wanted.groups && saved.dtype == wanted.dtype) return {};
  return invalid_argument(folder + ": was saved with another layout and can only be resumed with the same; saved: " + layout_in_words(saved) +
                          "; this job: " + layout_in_words(wanted));
}

}  // namespace troupe
