#include "actors/data/processor_config.h"

#include <array>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

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

  /// The object `size`, when it is there and holds nothing but limits.
  const Json* limits_by_name(const Json& node) {
    const Json* size = find(node, "size");
    if (size == nullptr) return nullptr;
    bool known = size->is_object() && !size->empty();
    if (known)
      for (const auto& [key, value] : size->items())
        known =
            known && (key == "shortest_edge" || key == "longest_edge" || key == "min_pixels" || key == "max_pixels");
    if (known) return size;
    bad("size", *size, "{shortest_edge: PIXELS, longest_edge: PIXELS}, or min_pixels and max_pixels");
    return nullptr;
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

/// The limits have had three spellings; the plain keys go before those inside of `size`, as in the published processor.
void read_limits(Reader& reader, const Json& node, ProcessorConfig& config) {
  if (const Json* size = reader.limits_by_name(node)) {
    for (const char* key : {"shortest_edge", "min_pixels"}) reader.integer(*size, key, config.min_pixels);
    for (const char* key : {"longest_edge", "max_pixels"}) reader.integer(*size, key, config.max_pixels);
  }
  reader.integer(node, "min_pixels", config.min_pixels);
  reader.integer(node, "max_pixels", config.max_pixels);
}

void read_values(Reader& reader, const Json& node, ProcessorConfig& config) {
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
  read_limits(reader, node, config);
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

/// `part` of the file's object, or all of it when no part is asked for.
template <typename Config>
Result<Config> read_part(const std::string& path, const std::string& part, const Json& object,
                         void (*read)(Reader&, const Json&, Config&)) {
  const Json node = part.empty() ? object : object.contains(part) ? object.at(part) : Json::object();
  if (!node.is_object()) return invalid_argument(path + ": key '" + part + "' is not an object");
  Reader reader(path, part.empty() ? "" : part + ".");
  Config config;
  read(reader, node, config);
  if (reader.error()) return *reader.error();
  return config;
}

}  // namespace

Result<ProcessorConfig> read_processor_config(const std::string& folder) {
  std::string path = folder + "/preprocessor_config.json";
  const bool nested = !std::filesystem::exists(path);
  if (nested) path = folder + "/processor_config.json";
  if (!std::filesystem::exists(path)) return ProcessorConfig();
  TROUPE_ASSIGN(const Json object, read_object(path));
  return read_part<ProcessorConfig>(path, nested ? "image_processor" : "", object, read_sizes);
}

Result<VideoProcessorConfig> read_video_processor_config(const std::string& folder) {
  const auto read = [](Reader& reader, const Json& node, VideoProcessorConfig& config) {
    read_sizes(reader, node, config);
    read_frames(reader, node, config);
  };
  std::string path = folder + "/processor_config.json";
  if (std::filesystem::exists(path)) {
    TROUPE_ASSIGN(const Json object, read_object(path));
    if (object.contains("video_processor"))
      return read_part<VideoProcessorConfig>(path, "video_processor", object, read);
  }
  for (const char* name : {"/video_preprocessor_config.json", "/preprocessor_config.json"}) {
    path = folder + name;
    if (!std::filesystem::exists(path)) continue;
    TROUPE_ASSIGN(const Json object, read_object(path));
    return read_part<VideoProcessorConfig>(path, "", object, read);
  }
  return VideoProcessorConfig();
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
