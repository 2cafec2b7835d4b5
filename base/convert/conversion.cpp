#include "base/convert/conversion.h"

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "base/config/job_spec_parser.h"
#include "base/convert/conversion_scope.h"
#include "base/convert/key_fates.h"
#include "base/printable_text.h"

namespace troupe::convert {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOff = "not needed: its value asks for nothing";

std::string unknown_key(ForeignTool tool, const std::string& key) {
  const std::string near = nearest_word(key, known_names(tool));
  return "unknown key" + (near.empty() ? std::string() : "; did you mean '" + near + "'?");
}

/// What the tables say without looking at more than the key and its value.
void judge(const ForeignConfig& config, const ForeignValues& values, Conversion& out) {
  for (const YamlEntry& e : config.entries) {
    const ForeignKey* key = find_key(config.tool, e.key);
    if (!key)
      out.unknown.push_back({e.key, e.place, unknown_key(config.tool, e.key)});
    else if (key->fate == Fate::kDropped)
      out.dropped.push_back({e.key, e.place, std::string(key->text)});
    else if (key->fate == Fate::kRefused && is_off(*key, e.value))
      out.dropped.push_back({e.key, e.place, kOff});
    else if (key->fate == Fate::kRefused)
      values.fail(e.key, values.shown(e.key) + " is refused: " + std::string(key->text));
    else if (is_empty_value(e.value))
      out.dropped.push_back({e.key, e.place, kOff});
  }
}

std::string shown_value(const DraftKey& key) {
  if (key.items.empty()) return key.path + ": " + key.value;
  std::string out;
  for (const std::string& item : key.items) out += (out.empty() ? "" : ", ") + item;
  return key.path + ": [" + out + "]";
}

/// What became of the keys that carry over.
void account(const ForeignConfig& config, const SpecDraft& draft, Conversion& out) {
  for (const YamlEntry& e : config.entries) {
    const ForeignKey* key = find_key(config.tool, e.key);
    if (!key || key->fate != Fate::kCarried || is_empty_value(e.value)) continue;
    std::string became;
    for (const DraftKey& k : draft.keys())
      if (std::find(k.from.begin(), k.from.end(), e.key) != k.from.end())
        became += (became.empty() ? "" : ", ") + shown_value(k);
    if (!became.empty()) {
      out.carried.push_back({e.key, e.place, became});
      continue;
    }
    const auto& notes = draft.understood();
    const auto note = std::find_if(notes.begin(), notes.end(), [&](const auto& n) { return n.first == e.key; });
    out.dropped.push_back(
        {e.key, e.place, note == notes.end() ? "not needed: without effect beside the other keys" : note->second});
  }
  const auto by_line = [](const ConvertedKey& a, const ConvertedKey& b) { return a.place.line < b.place.line; };
  std::stable_sort(out.dropped.begin(), out.dropped.end(), by_line);
  for (const DraftKey& k : draft.keys())
    if (k.from.empty() && k.why.empty()) out.defaults.push_back(shown_value(k));
}

std::string comment(const std::string& text) { return "# " + printable(text, /*keep_lines=*/false) + "\n"; }

std::string head_of(const Conversion& c) {
  std::string out = comment("Made by `troupe convert` from " + c.file + " (" + tool_title(c.tool) + ").");
  for (const Remark& r : c.remarks) out += comment("note: " + r.place.to_string() + ": " + r.text);
  for (const ConvertedKey& k : c.dropped)
    out += comment("dropped: " + k.place.to_string() + ": " + k.key + ": " + k.text);
  for (const ConvertedKey& k : c.unknown)
    out += comment("dropped: " + k.place.to_string() + ": " + k.key + ": " + k.text);
  return out + "\n";
}

/// A line of the spec's reader, "PLACE: key 'a.b': ...", under the foreign key that the value came from.
std::string foreign_line(const std::string& line, const ForeignValues& values, const SpecDraft& draft) {
  const size_t begin = line.find(": key '"), end = line.find('\'', begin == std::string::npos ? begin : begin + 7);
  if (begin == std::string::npos || end == std::string::npos) return line;
  const std::string path = line.substr(begin + 7, end - begin - 7);
  for (const DraftKey& k : draft.keys())
    if (!k.from.empty() && path.rfind(k.path, 0) == 0)
      return values.place_of(k.from.front()).to_string() + ": key '" + k.from.front() + "' (" + path + ")" +
             line.substr(end + 1);
  return line.substr(begin + 2);
}

/// What `troupe plan` would say of the spec, before it is written.
Status check_spec(const Conversion& c, const ConvertOptions& options, const ForeignValues& values,
                  const SpecDraft& draft) {
  const std::string place = options.output.empty() ? options.command_folder + "/job.yaml" : options.output;
  const Result<JobSpec> spec = load_job_spec_text(c.yaml, place);
  if (spec.ok()) return {};
  std::istringstream lines(spec.error().message);
  std::string text;
  for (std::string line; std::getline(lines, line);)
    text += (text.empty() ? "" : "\n") + foreign_line(line, values, draft);
  return make_error(spec.error().code, text);
}

}  // namespace

Result<Conversion> convert_config(const std::string& file, const ConvertOptions& options) {
  TROUPE_ASSIGN(const ForeignConfig config, read_foreign_config(file, options.tool));
  Diagnostics found;
  const ForeignValues values(config, found);
  const std::string spec_folder = options.output.empty() ? "" : fs::path(options.output).parent_path().string();
  const ForeignPaths paths(options.working_folder, spec_folder), command_paths(options.command_folder, spec_folder);
  SpecDraft draft(tool_title(config.tool));
  Conversion out;
  out.tool = config.tool;
  out.file = file;
  judge(config, values, out);
  const ConversionScope scope{values, options, paths, command_paths, draft};
  config.tool == ForeignTool::kLlamaFactory ? convert_llama_factory(scope) : convert_ms_swift(scope);
  TROUPE_RETURN_IF_ERROR(found.to_status());
  account(config, draft, out);
  out.remarks = draft.remarks();
  out.yaml = head_of(out) + draft.to_yaml();
  TROUPE_RETURN_IF_ERROR(check_spec(out, options, values, draft));
  return out;
}

}  // namespace troupe::convert
