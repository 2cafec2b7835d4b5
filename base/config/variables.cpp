#include "base/config/variables.h"

#include <algorithm>
#include <cctype>

extern char** environ;

namespace troupe {
namespace {

constexpr size_t kMaxVariables = 100;  // looked at when a text is no YAML

bool is_name_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

std::string expand_text(const std::string& text, const Environment& environment, const SourcePlace& place,
                        const std::string& key, Diagnostics& diagnostics) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    if (text.compare(i, 3, "$${") == 0) {
      out += "${";
      i += 3;
      continue;
    }
    if (text.compare(i, 2, "${") != 0) {
      out += text[i++];
      continue;
    }
    const size_t end = text.find('}', i);
    const std::string name = end == std::string::npos ? "" : text.substr(i + 2, end - i - 2);
    if (name.empty() || !std::all_of(name.begin(), name.end(), is_name_character)) {
      diagnostics.add_last(
          place, key,
          "value '" + text +
              "': '${' must be followed by a variable's name and '}' (write '$${' for the characters themselves)");
      return text;
    }
    const auto it = environment.find(name);
    if (it == environment.end()) {
      diagnostics.add_last(place, key, "value '" + text + "': the environment variable " + name + " is not set");
      return text;
    }
    out += it->second;
    i = end + 1;
  }
  return out;
}

void expand_below(YamlNode& node, const std::string& key, const Environment& environment, Diagnostics& diagnostics) {
  if (node.kind == YamlKind::kScalar && node.text.find("${") != std::string::npos) {
    if (node.text.compare(0, 2, "${") == 0 && node.text.find('}') == node.text.size() - 1) node.quoted = false;
    node.text = expand_text(node.text, environment, node.place, key, diagnostics);
  }
  for (YamlEntry& e : node.entries)
    expand_below(e.value, key.empty() ? e.key : key + "." + e.key, environment, diagnostics);
  for (size_t i = 0; i < node.items.size(); ++i)
    expand_below(node.items[i], key + "[" + std::to_string(i) + "]", environment, diagnostics);
}

}  // namespace

Environment process_environment() {
  Environment out;
  for (char** e = environ; e && *e; ++e) {
    const std::string pair = *e;
    const size_t at = pair.find('=');
    if (at != std::string::npos) out[pair.substr(0, at)] = pair.substr(at + 1);
  }
  return out;
}

std::vector<VariablePlace> variables_in(const std::string& text) {
  std::vector<VariablePlace> out;
  for (size_t at = text.find("${"); at != std::string::npos && out.size() < kMaxVariables;
       at = text.find("${", at + 2)) {
    size_t end = at + 2;
    while (end < text.size() && is_name_character(text[end])) ++end;
    if (end > at + 2 && end < text.size() && text[end] == '}') out.push_back({at, end + 1 - at});
  }
  return out;
}

void expand_variables(YamlNode& node, const Environment& environment, Diagnostics& diagnostics) {
  expand_below(node, "", environment, diagnostics);
}

}  // namespace troupe
