#include "base/model/chat_template_files.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/mapped_file.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using Found = std::optional<ChatTemplateText>;

constexpr const char* kProcessor = "/processor_config.json";
constexpr const char* kLegacy = "/chat_template.json";
constexpr const char* kAlone = "/chat_template.jinja";
constexpr const char* kNamed = "/additional_chat_templates";
constexpr const char* kTokenizer = "/tokenizer_config.json";

Result<Found> in_file(const std::string& path) {
  std::error_code ec;
  if (!fs::exists(path, ec)) return Found();
  TROUPE_ASSIGN(const auto file, MappedFile::open(path));
  return Found({path, false, std::string(file->bytes())});
}

/// The value of the key chat_template in a JSON file, null when there is none.
Result<Json> value_in(const std::string& path, bool is_needed) {
  std::error_code ec;
  if (!fs::exists(path, ec)) return Json();
  TROUPE_ASSIGN(const auto file, MappedFile::open(path));
  const Result<Json> parsed = parse_json(file->bytes());
  if (!parsed.ok()) return invalid_argument(path + " " + parsed.error().message);
  const bool holds = parsed->is_object() && parsed->contains("chat_template");
  if (!holds && is_needed) return invalid_argument(path + ": has no key 'chat_template'");
  return holds ? parsed->at("chat_template") : Json();
}

/// The text in such a value: itself, or the one named default in an object, or in a list as tokenizers have it.
Result<Found> in_value(const std::string& path, const Json& value, bool as_list) {
  const auto of = [&](const Json& text) { return Found({path, true, text.get<std::string>()}); };
  if (value.is_null()) return Found();
  if (value.is_string()) return of(value);
  if (!as_list && value.is_object() && value.contains("default") && value["default"].is_string())
    return of(value["default"]);
  for (const Json& one : as_list&& value.is_array() ? value : Json::array())
    if (one.is_object() && one.value("name", Json()) == "default" && one.value("template", Json()).is_string())
      return of(one["template"]);
  return invalid_argument(path + ": key 'chat_template': neither a string nor " +
                          (as_list ? "a list of named ones" : "an object of them") + " with one named 'default'");
}

std::vector<std::string> named_templates(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(folder + kNamed, ec))
    if (entry.path().extension() == ".jinja") names.push_back(entry.path().stem().string());
  return names;
}

/// What Jinja makes of a source's line ends, so that files which differ in them only are the same.
std::string with_plain_line_ends(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool pair = text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n';
    if (!pair) out += text[i] == '\r' ? '\n' : text[i];
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

}  // namespace

Result<ChatTemplateFiles> find_chat_templates(const std::string& folder) {
  std::error_code ec;
  const bool has_legacy = fs::exists(folder + kLegacy, ec);
  const std::vector<std::string> named = named_templates(folder);
  if (has_legacy && !named.empty())
    return invalid_argument(folder + kLegacy + ": stands beside " + (kNamed + 1) + "/" + named[0] +
                            ".jinja, and transformers refuses both together; valid: chat_template.jinja in its place");
  TROUPE_ASSIGN(const Json processor, value_in(folder + kProcessor, false));
  TROUPE_ASSIGN(const Json legacy, value_in(folder + kLegacy, true));
  TROUPE_ASSIGN(const Json tokenizer, value_in(folder + kTokenizer, false));
  std::vector<ChatTemplateText> all;
  const auto add = [&](Result<Found> one) -> Status {
    if (!one.ok()) return all.empty() ? Status(one.error()) : Status();  // transformers looks no further than the first
    if (*one) all.push_back(std::move(**one));
    return {};
  };
  TROUPE_RETURN_IF_ERROR(add(in_value(folder + kProcessor, processor, false)));
  TROUPE_RETURN_IF_ERROR(add(in_value(folder + kLegacy, legacy == "" ? Json() : legacy, false)));
  TROUPE_RETURN_IF_ERROR(add(in_file(folder + kAlone)));
  TROUPE_RETURN_IF_ERROR(add(in_file(folder + kNamed + "/default.jinja")));
  if (all.empty() && !named.empty())
    return invalid_argument(folder + kNamed + ": holds " + named[0] +
                            ".jinja and no default.jinja, and there is no chat_template.jinja; valid: one of them");
  TROUPE_RETURN_IF_ERROR(add(in_value(folder + kTokenizer, tokenizer, true)));

  ChatTemplateFiles out;
  if (all.empty()) return out;
  for (size_t i = 1; i < all.size(); ++i)
    if (with_plain_line_ends(all[i].text) != with_plain_line_ends(all[0].text))
      out.others.push_back(all[i].file.substr(folder.size() + 1));
  out.taken = std::move(all[0]);
  return out;
}

std::string ChatTemplateFiles::warning() const {
  if (others.empty()) return "";
  std::string names;
  for (size_t i = 0; i < others.size(); ++i)
    names += (i == 0 ? "" : i + 1 == others.size() ? " and " : ", ") + others[i];
  return taken->file + ": its chat template is the one that transformers' processor takes; " + names +
         (others.size() == 1 ? " holds another one, which is not used" : " hold other ones, which are not used");
}

}  // namespace troupe
