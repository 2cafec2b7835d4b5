#include "base/model/processor_config.h"

#include <array>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/json_text.h"
#include "base/mapped_file.h"

namespace troupe {
namespace {

using Json = nlohmann::json;

constexpr size_t kShownBytes = 80;  // of a value in a message
constexpr int64_t kBicubic = 3;     // as Pillow numbers its filters

/// Reads one file's keys. The first thing that is wrong stays; what is asked for behind it is left alone.
class Reader {
 public:
  Reader(std::string path, std::string prefix) : path_(std::move(path)), prefix_(std::move(prefix)) {}

  const std::optional<Error>& error() const { return error_; }

  void integer(const Json& node, const char* key, std::optional<int64_t>& out) {
    const Json* value = find(node, key);
    if (value == nullptr) return;
    if (!value->is_number_unsigned() || *value < 1 || *value > INT32_MAX)
      return bad(key, *value, "an integer from 1 to 2147483647");
    out = value->get<int64_t>();
  }

  void positive(const Json& node, const char* key, double& out) {
    const Json* value = find(node, key);
    if (value == nullptr) return;
    if (!is_finite(*value) || value->get<double>() <= 0) return bad(key, *value, "a number above 0");
    out = value->get<double>();
  }

  /// One number for all channels, or three.
  void channels(const Json& node, const char* key, bool above_zero, std::array<double, 3>& out) {
    const Json* value = find(node, key);
    if (value == nullptr) return;
    const char* valid =
        above_zero ? "three numbers above 0, or one for all channels" : "three numbers, or one for all channels";
    const auto fits = [&](const Json& number) {
      return is_finite(number) && (!above_zero || number.get<double>() > 0);
    };
    if (!value->is_array()) {
      if (!fits(*value)) return bad(key, *value, valid);
      return out.fill(value->get<double>());
    }
    if (value->size() != out.size()) return bad(key, *value, valid);
    for (size_t c = 0; c < out.size(); ++c) {
      if (!fits((*value)[c])) return bad(key, *value, valid);
      out[c] = (*value)[c].get<double>();
    }
  }

  bool flag(const Json& node, const char* key, bool otherwise) {
    const Json* value = find(node, key);
    if (value == nullptr) return otherwise;
    if (value->is_boolean()) return value->get<bool>();
    bad(key, *value, "true, false");
    return otherwise;
  }

  /// The limits: the plain keys, else those of `size`, which must then hold both and nothing else, as in the published
  /// processor.
  void limits(const Json& node, std::optional<int64_t>& least, std::optional<int64_t>& most) {
    integer(node, "min_pixels", least);
    integer(node, "max_pixels", most);
    const Json* size = find(node, "size");
    if (size == nullptr) return;
    bool known = size->is_object();
    if (known) {
      const auto has = [&](const char* key) { return size->contains(key) && !size->at(key).is_null(); };
      known = (least || has("shortest_edge")) && (most || has("longest_edge"));
      for (const auto& [key, value] : size->items())
        known = known && (key == "shortest_edge" || key == "longest_edge" || (least && key == "min_pixels") ||
                          (most && key == "max_pixels"));
    }
    if (!known) return bad("size", *size, "{shortest_edge: PIXELS, longest_edge: PIXELS}");
    if (!least) integer(*size, "shortest_edge", least);
    if (!most) integer(*size, "longest_edge", most);
  }

  /// The class that the processor's settings are of, where it is named.
  void of_class(const Json& node, const char* key, std::initializer_list<const char*> built) {
    const Json* value = find(node, key);
    std::string valid;
    for (const char* name : built) {
      if (value == nullptr || *value == name) return;
      valid += (valid.empty() ? "" : ", ") + std::string(name);
    }
    bad(key, *value, valid);
  }

  /// A key of which only one value is built.
  void only(const Json& node, const char* key, const Json& built, const char* valid) {
    const Json* value = find(node, key);
    if (value != nullptr && *value != built) bad(key, *value, valid);
  }

 private:
  static bool is_finite(const Json& value) { return value.is_number() && std::isfinite(value.get<double>()); }

  const Json* find(const Json& node, const char* key) const {
    if (error_) return nullptr;
    const auto found = node.find(key);
    return found == node.end() || found->is_null() ? nullptr : &*found;
  }

  void bad(const char* key, const Json& value, const std::string& valid) {
    std::string text = value.dump(-1, ' ', true);
    if (text.size() > kShownBytes) text = text.substr(0, kShownBytes) + "...";
    error_ =
        invalid_argument(path_ + ": key '" + prefix_ + key + "': value " + text + " is not valid; valid: " + valid);
  }

  std::string path_, prefix_;
  std::optional<Error> error_;
};

void read_values(Reader& reader, const Json& node, ProcessorConfig& config) {
  reader.of_class(
      node, "image_processor_type",
      {"Qwen2VLImageProcessor", "Qwen2VLImageProcessorFast", "Qwen2VLImageProcessorPil", "Qwen2_5_VLImageProcessor"});
  reader.of_class(node, "video_processor_type", {"Qwen2VLVideoProcessor"});
  reader.channels(node, "image_mean", false, config.mean);
  reader.channels(node, "image_std", true, config.deviation);
  reader.positive(node, "rescale_factor", config.rescale);
  if (!reader.flag(node, "do_rescale", true)) config.rescale = 1;
  if (!reader.flag(node, "do_normalize", true)) {
    config.mean.fill(0);
    config.deviation.fill(1);
  }
  reader.only(node, "do_resize", true, "true");
  reader.only(node, "do_convert_rgb", true, "true");
  reader.only(node, "resample", kBicubic, "3 (bicubic)");
}

void read_sizes(Reader& reader, const Json& node, ProcessorConfig& config) {
  reader.limits(node, config.min_pixels, config.max_pixels);
  read_values(reader, node, config);
  reader.integer(node, "patch_size", config.patch_size);
  reader.integer(node, "temporal_patch_size", config.temporal_patch_size);
  reader.integer(node, "merge_size", config.merge_size);
}

void read_frames(Reader& reader, const Json& node, VideoProcessorConfig& config) {
  double fps = 0;
  reader.positive(node, "fps", fps);
  if (fps > 0) config.fps = fps;
  reader.integer(node, "min_frames", config.min_frames);
  reader.integer(node, "max_frames", config.max_frames);
  reader.only(node, "num_frames", nullptr, "null: frames are taken by fps");
  config.cap_pixels_per_frame = reader.flag(node, "cap_pixels_per_frame", false);
  std::optional<int64_t> tokens;
  reader.integer(node, "max_video_tokens", tokens);
  config.max_video_tokens = tokens.value_or(config.max_video_tokens);
}

Result<Json> read_object(const std::string& path) {
  TROUPE_ASSIGN(const auto file, MappedFile::open(path));
  Result<Json> parsed = parse_json(file->bytes());
  if (!parsed.ok()) return invalid_argument(path + ": " + parsed.error().message);
  if (!parsed->is_object()) return invalid_argument(path + ": is not a JSON object");
  return parsed;
}

/// A processor's settings: a file's object, or `part` of it.
struct Place {
  std::string path, part;
  Json object;
};
using Found = std::optional<Place>;

Result<Found> in_file(const std::string& path) {
  std::error_code failed;
  if (!std::filesystem::exists(path, failed)) {
    if (failed) return invalid_argument("cannot open " + path + ": " + failed.message());
    return Found();
  }
  TROUPE_ASSIGN(Json object, read_object(path));
  return Found({path, "", std::move(object)});
}

Result<Found> in_part(const std::string& path, const std::string& part) {
  TROUPE_ASSIGN(Found found, in_file(path));
  if (!found || !found->object.contains(part) || found->object.at(part).is_null()) return Found();
  if (!found->object.at(part).is_object()) return invalid_argument(path + ": key '" + part + "' is not an object");
  return Found({path, part, Json(found->object.at(part))});
}

template <typename Config>
Result<Config> read_place(const Place& place, void (*read)(Reader&, const Json&, Config&)) {
  Reader reader(place.path, place.part.empty() ? "" : place.part + ".");
  Config config;
  read(reader, place.object, config);
  if (reader.error()) return *reader.error();
  return config;
}

/// Names of the settings by which two image processors make different pixels or grids.
std::string differences(const ProcessorConfig& a, const ProcessorConfig& b) {
  std::string names;
  const auto compare = [&](const char* name, bool same) {
    if (!same) names += (names.empty() ? "" : ", ") + std::string(name);
  };
  const auto integer = [&](const char* name, const std::optional<int64_t> ProcessorConfig::*key, int64_t otherwise) {
    compare(name, (a.*key).value_or(otherwise) == (b.*key).value_or(otherwise));
  };
  const VisionConfig published;
  integer("min_pixels", &ProcessorConfig::min_pixels, kDefaultImageMinPixels);
  integer("max_pixels", &ProcessorConfig::max_pixels, kDefaultImageMaxPixels);
  compare("image_mean", a.mean == b.mean);
  compare("image_std", a.deviation == b.deviation);
  compare("rescale_factor", a.rescale == b.rescale);
  integer("patch_size", &ProcessorConfig::patch_size, published.patch_size);
  integer("temporal_patch_size", &ProcessorConfig::temporal_patch_size, published.temporal_patch_size);
  integer("merge_size", &ProcessorConfig::merge_size, published.merge_size);
  return names;
}

constexpr const char* kAlone = "/preprocessor_config.json";
constexpr const char* kTogether = "/processor_config.json";
constexpr const char* kVideoAlone = "/video_preprocessor_config.json";

}  // namespace

Result<ProcessorConfig> read_processor_config(const std::string& folder) {
  TROUPE_ASSIGN(Found found, in_part(folder + kTogether, "image_processor"));
  if (!found) {
    TROUPE_ASSIGN(found, in_file(folder + kAlone));
  }
  return found ? read_place<ProcessorConfig>(*found, read_sizes) : ProcessorConfig();
}

std::string image_processor_warning(const std::string& folder) {
  const auto taken = in_part(folder + kTogether, "image_processor");
  const auto found = in_file(folder + kAlone);
  if (!taken.ok() || !*taken || (found.ok() && !*found)) return "";
  const auto here = read_place<ProcessorConfig>(**taken, read_sizes);
  const auto other =
      found.ok() ? read_place<ProcessorConfig>(**found, read_sizes) : Result<ProcessorConfig>(found.error());
  if (!here.ok()) return "";
  const std::string names = other.ok() ? differences(*here, *other) : "";
  if (other.ok() && names.empty()) return "";
  return (*taken)->path + ": its image_processor is the one that transformers takes; " + (kAlone + 1) +
         " holds another one" + (names.empty() ? "" : " (" + names + ")") + ", which is not used";
}

Result<VideoProcessorConfig> read_video_processor_config(const std::string& folder) {
  TROUPE_ASSIGN(Found found, in_part(folder + kTogether, "video_processor"));
  for (const char* name : {kVideoAlone, kAlone}) {
    if (found) break;
    TROUPE_ASSIGN(found, in_file(folder + name));
  }
  if (!found) return VideoProcessorConfig();
  return read_place<VideoProcessorConfig>(*found, [](Reader& reader, const Json& node, VideoProcessorConfig& config) {
    read_sizes(reader, node, config);
    read_frames(reader, node, config);
  });
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
