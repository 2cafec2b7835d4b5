#include "base/convert/model_settings.h"

#include <algorithm>
#include <filesystem>

#include "base/config/scalars.h"
#include "base/json_text.h"
#include "base/regular_file.h"

namespace troupe::convert {
namespace fs = std::filesystem;

namespace {

/// "owner/name": the form in which hubs name models.
bool looks_like_hub_id(const std::string& text) {
  const size_t slash = text.find('/');
  return slash != std::string::npos && slash > 0 && slash + 1 < text.size() &&
         text.find('/', slash + 1) == std::string::npos && text[0] != '.' && text[0] != '~';
}

bool is_folder(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

}  // namespace

std::optional<std::string> convert_model_path(const ConversionScope& s, const std::string& key) {
  const std::string& asked = s.options.model;
  if (!asked.empty()) {
    const std::string folder = s.command_paths.absolute(asked);
    if (!is_folder(folder)) {
      s.values.diagnostics().add({"--model " + asked, 0},
                                 "'" + folder + "' is no folder; valid: a Hugging Face model folder");
      return std::nullopt;
    }
    s.draft.set("model.path", quoted_text(s.command_paths.written(asked)), {}, "--model");
    s.draft.take_note_of(key, "not needed: --model goes before it");
    return folder;
  }
  const auto given = s.values.text(key);
  if (!given) {
    if (!s.values.has(key)) s.values.fail(key, "is missing; valid: a Hugging Face model folder, or --model FOLDER");
    return std::nullopt;
  }
  const std::string folder = s.paths.absolute(*given);
  if (is_folder(folder)) {
    s.draft.set("model.path", quoted_text(s.paths.written(*given)), {key});
    return folder;
  }
  if (looks_like_hub_id(*given))
    s.values.fail(key, s.values.shown(key) +
                           " looks like a model id of a hub; models are read from folders; valid: hf download " +
                           *given + " --local-dir FOLDER, then --model FOLDER");
  else
    s.values.fail(key, s.values.shown(key) + " ('" + folder +
                           "') is no folder; valid: a Hugging Face model folder, or --model FOLDER");
  return std::nullopt;
}

bool convert_tuner(const ConversionScope& s, const std::vector<std::string>& keys) {
  const auto named = std::find_if(keys.begin(), keys.end(), [&](const std::string& k) { return s.values.has(k); });
  const std::string key = named == keys.end() ? keys.front() : *named;
  const std::string tool = tool_title(s.values.config().tool);
  const auto given = s.values.text(key);
  if (given && *given == "full") {
    s.draft.take_note_of(key, "not needed: all weights of the components that are not frozen are trained");
    return false;
  }
  if (given.has_value() != s.values.has(key)) return false;  // said already
  const std::string type = given.value_or("lora");
  if (!s.options.full) {
    const std::string valid = "; valid: " + key + ": full, or --full to train all weights of what is not frozen";
    s.values.fail(key, given ? s.values.shown(key) + " is not built: all weights are trained" + valid
                             : "is missing, which " + tool + " takes as lora; adapters are not built" + valid);
    return false;
  }
  s.draft.take_note_of(key, "'" + type + "' became training of all weights (--full)");
  s.draft.remark(s.values.place_of(key), key + ": '" + type + "'" + (given ? "" : " (the default of " + tool + ")") +
                                             " became training of all weights of what is not frozen (--full); a rate "
                                             "that was chosen for adapters is likely too high");
  return true;
}

void convert_freeze(const ConversionScope& s, const std::string& component, const std::string& key, bool frozen) {
  const auto given = s.values.boolean(key);
  const std::string train = given.value_or(frozen) ? "false" : "true";
  s.draft.set_or_default(given.has_value(), "components." + component + ".train", train, key);
}

ModelFacts read_model_facts(const std::string& folder) {
  ModelFacts facts;
  const Result<std::string> text = read_text_file(folder + "/config.json");
  if (!text.ok()) return facts;  // the spec's reader says it
  const Result<nlohmann::json> parsed = parse_json(*text);
  if (!parsed.ok() || !parsed->is_object()) return facts;
  const auto nested = parsed->find("text_config");
  for (const nlohmann::json* level : {&*parsed, nested != parsed->end() ? &*nested : nullptr}) {
    if (!level || !level->is_object()) continue;
    for (const char* key : {"torch_dtype", "dtype"})
      if (const auto at = level->find(key); at != level->end() && at->is_string() && !facts.dtype)
        facts.dtype = at->get<std::string>();
    const auto at = level->find("max_position_embeddings");
    if (at != level->end() && at->is_number_integer() && !facts.positions) facts.positions = at->get<int64_t>();
  }
  return facts;
}

}  // namespace troupe::convert
