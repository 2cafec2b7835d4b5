#include "base/checkpoint/checkpoint_manifest.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/config/scalars.h"
#include "base/data/source_weights.h"

namespace troupe {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormat = 3;
constexpr std::array<Axis, kAxisCount> kAxes = {Axis::kDp, Axis::kPp, Axis::kCp, Axis::kSp, Axis::kTp};

Json group_to_json(const CheckpointGroup& group) {
  Json mesh = Json::object();
  for (const Axis axis : kAxes) mesh[axis_name(axis)] = group.mesh.size(axis);
  return {{"name", group.name},
          {"mesh", mesh},
          {"zero", group.zero},
          {"tp_sequence", group.tp_sequence},
          {"bucket_bytes", group.bucket_bytes}};
}

CheckpointGroup group_from_json(const Json& json) {
  CheckpointGroup group;
  group.name = json.at("name").get<std::string>();
  for (const Axis axis : kAxes) group.mesh.set(axis, json.at("mesh").at(axis_name(axis)).get<int>());
  group.zero = json.at("zero").get<int>();
  group.tp_sequence = json.at("tp_sequence").get<bool>();
  group.bucket_bytes = json.value("bucket_bytes", int64_t{0});
  return group;
}

Json data_to_json(const CheckpointData& data) {
  return {{"seed", data.seed},
          {"global_batch", data.global_batch},
          {"shuffle", data.shuffle},
          {"sort_window", data.sort_window},
          {"eval_split", data.eval_split},
          {"source_weights", data.source_weights},
          {"index", data.index}};
}

CheckpointData data_from_json(const Json& json) {
  return {json.at("seed").get<uint64_t>(),     json.at("global_batch").get<int64_t>(),
          json.at("shuffle").get<bool>(),      json.at("sort_window").get<int64_t>(),
          json.at("eval_split").get<double>(), json.value("source_weights", std::string()),
          json.at("index").get<std::string>()};
}

/// The settings of two runs that differ: "training.seed 1 (this job: 2)".
std::string data_differences(const CheckpointData& saved, const CheckpointData& wanted) {
  std::string text;
  const auto compare = [&text](const char* key, const std::string& was, const std::string& is) {
    if (was != is) text += std::string(text.empty() ? "" : ", ") + key + " " + was + " (this job: " + is + ")";
  };
  const auto word = [](bool value) { return std::string(value ? "true" : "false"); };
  compare("training.seed", std::to_string(saved.seed), std::to_string(wanted.seed));
  compare("training.global_batch", std::to_string(saved.global_batch), std::to_string(wanted.global_batch));
  compare("data.shuffle", word(saved.shuffle), word(wanted.shuffle));
  compare("data.sort_window", std::to_string(saved.sort_window), std::to_string(wanted.sort_window));
  const auto weights = [](const std::string& list) { return list.empty() ? "1 each" : "[" + list + "]"; };
  compare("data.sources.weight", weights(saved.source_weights), weights(wanted.source_weights));
  compare("eval.split", number_text(saved.eval_split), number_text(wanted.eval_split));
  if (!saved.index.empty() && !wanted.index.empty())
    compare("records, tokenizer, chat template, pixel limits and sample lengths of digest", saved.index, wanted.index);
  return text;
}

}  // namespace

CheckpointManifest manifest_of_spec(const JobSpec& spec, int64_t step) {
  CheckpointManifest m;
  m.step = step;
  m.samples_done = step * spec.training.global_batch;
  m.dtype = spec.model.dtype == DType::kFp32 ? "fp32" : spec.model.dtype == DType::kBf16 ? "bf16" : "bf16-pure";
  for (const GroupSpec& g : spec.groups) {
    const bool sharded = g.zero > 0 && g.mesh.ranks() > 1;
    m.groups.push_back({g.name, g.mesh, g.zero, g.tp_sequence, sharded ? spec.training.bucket_bytes : 0});
  }
  m.data = {spec.training.seed,
            spec.training.global_batch,
            spec.data.shuffle,
            spec.data.sort_window,
            spec.eval.split,
            source_weights_text(spec.data.sources),
            ""};
  return m;
}

std::string manifest_to_json(const CheckpointManifest& manifest) {
  Json groups = Json::array(), files = Json::array();
  for (const CheckpointGroup& group : manifest.groups) groups.push_back(group_to_json(group));
  for (const CheckpointFile& file : manifest.files)
    files.push_back({{"name", file.name}, {"bytes", file.bytes}, {"xxh64", file.xxh64}});
  const Json json = {{"format", kFormat},
                     {"step", manifest.step},
                     {"skipped_steps", manifest.skipped_steps},
                     {"samples_done", manifest.samples_done},
                     {"dtype", manifest.dtype},
                     {"groups", groups},
                     {"data", data_to_json(manifest.data)},
                     {"files", files}};
  return json.dump(2) + "\n";
}

Result<CheckpointManifest> manifest_from_json(const std::string& text, const std::string& origin) {
  try {
    const Json json = Json::parse(text);
    if (json.at("format").get<int>() != kFormat)
      return invalid_argument(origin + ": format " + json.at("format").dump() +
                              " is not known; valid: " + std::to_string(kFormat));
    CheckpointManifest manifest;
    manifest.step = json.at("step").get<int64_t>();
    manifest.skipped_steps = json.at("skipped_steps").get<int64_t>();
    manifest.samples_done = json.at("samples_done").get<int64_t>();
    manifest.dtype = json.at("dtype").get<std::string>();
    for (const Json& group : json.at("groups")) manifest.groups.push_back(group_from_json(group));
    manifest.data = data_from_json(json.at("data"));
    for (const Json& file : json.at("files"))
      manifest.files.push_back(
          {file.at("name").get<std::string>(), file.at("bytes").get<uint64_t>(), file.at("xxh64").get<std::string>()});
    return manifest;
  } catch (const Json::exception& e) {
    return data_loss(origin + ": is not a checkpoint manifest: " + e.what());
  }
}

std::string layout_in_words(const CheckpointManifest& manifest) {
  std::string text;
  for (const CheckpointGroup& group : manifest.groups)
    text += group.name + ": " + group.mesh.to_string() + ", zero " + std::to_string(group.zero) +
            (group.tp_sequence ? ", tp_sequence; " : "; ");
  return text + manifest.dtype;
}

Status check_resumable(const CheckpointManifest& saved, const CheckpointManifest& wanted, const std::string& folder) {
  const auto same_layout = [](const CheckpointGroup& a, const CheckpointGroup& b) {
    return a.name == b.name && a.mesh == b.mesh && a.zero == b.zero && a.tp_sequence == b.tp_sequence;
  };
  if (!std::ranges::equal(saved.groups, wanted.groups, same_layout) || saved.dtype != wanted.dtype)
    return invalid_argument(folder + ": was saved with another layout and can only be resumed with the same; saved: " +
                            layout_in_words(saved) + "; this job: " + layout_in_words(wanted));
  for (size_t g = 0; g < saved.groups.size(); ++g)
    if (saved.groups[g].bucket_bytes != wanted.groups[g].bucket_bytes)
      return invalid_argument(folder + ": the shards of group " + saved.groups[g].name +
                              " were cut with training.bucket_bytes " + std::to_string(saved.groups[g].bucket_bytes) +
                              "; this job: " + std::to_string(wanted.groups[g].bucket_bytes));
  const std::string differences = data_differences(saved.data, wanted.data);
  if (differences.empty()) return {};
  return invalid_argument(folder + ": was saved after " + std::to_string(saved.samples_done) +
                          " samples of other data, and would go on at another one: " + differences +
                          "; valid: the same, or a new run");
}

}  // namespace troupe
