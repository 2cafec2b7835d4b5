#include "actors/data/processor_config.h"

#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/mapped_file.h"

namespace troupe {
namespace {

using Json = nlohmann::json;

std::optional<int64_t> whole_number(const Json& node, const char* key) {
  const auto found = node.find(key);
  if (found == node.end() || found->is_null()) return std::nullopt;
  return found->get<int64_t>();
}

void read_channels(const Json& node, const char* key, std::array<double, 3>& values) {
  const auto found = node.find(key);
  if (found == node.end() || found->is_null()) return;
  if (found->is_number()) {
    values.fill(found->get<double>());
  } else {
    for (size_t c = 0; c < 3; ++c) values[c] = found->at(c).get<double>();
  }
}

/// The limits have had three spellings; the plain keys go before those inside of `size`, as in the published processor.
void read_limits(const Json& node, ProcessorConfig& config) {
  const Json size = node.value("size", Json::object());
  if (size.is_object()) {
    for (const char* key : {"shortest_edge", "min_pixels"})
      if (auto value = whole_number(size, key)) config.min_pixels = value;
    for (const char* key : {"longest_edge", "max_pixels"})
      if (auto value = whole_number(size, key)) config.max_pixels = value;
  }
  if (auto value = whole_number(node, "min_pixels")) config.min_pixels = value;
  if (auto value = whole_number(node, "max_pixels")) config.max_pixels = value;
}

}  // namespace

Result<ProcessorConfig> read_processor_config(const std::string& folder) {
  ProcessorConfig config;
  std::string path = folder + "/preprocessor_config.json";
  const bool nested = !std::filesystem::exists(path);
  if (nested) path = folder + "/processor_config.json";
  if (!std::filesystem::exists(path)) return config;
  TROUPE_ASSIGN(const auto file, MappedFile::open(path));
  try {
    Json node = Json::parse(file->bytes());
    if (nested) node = node.value("image_processor", Json::object());
    read_limits(node, config);
    read_channels(node, "image_mean", config.mean);
    read_channels(node, "image_std", config.deviation);
    config.rescale = node.value("rescale_factor", config.rescale);
    config.patch_size = whole_number(node, "patch_size");
    config.temporal_patch_size = whole_number(node, "temporal_patch_size");
    config.merge_size = whole_number(node, "merge_size");
  } catch (const Json::exception& e) {
    return invalid_argument(path + " is not understood: " + e.what());
  }
  return config;
}

Status ProcessorConfig::check_against(const VisionConfig& vision, const std::string& folder) const {
  const auto check = [&](const char* key, const std::optional<int64_t>& here, int64_t model) -> Status {
    if (!here || *here == model) return {};
    return invalid_argument("the image processor file in " + folder + " has " + key + " " + std::to_string(*here) +
                            ", but config.json has " + std::to_string(model));
  };
  TROUPE_RETURN_IF_ERROR(check("patch_size", patch_size, vision.patch_size));
  TROUPE_RETURN_IF_ERROR(check("temporal_patch_size", temporal_patch_size, vision.temporal_patch_size));
  return check("merge_size", merge_size, vision.merge_size);
}

}  // namespace troupe
