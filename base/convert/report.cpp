#include "base/convert/report.h"

#include "base/printable_text.h"

namespace troupe::convert {
namespace {

using nlohmann::json;

json keys_json(const std::vector<ConvertedKey>& keys, const char* text) {
  json out = json::array();
  for (const ConvertedKey& k : keys) out.push_back({{"key", k.key}, {"line", k.place.line}, {text, k.text}});
  return out;
}

std::string counted(size_t count, const char* one, const char* many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

}  // namespace

std::string report_text(const Conversion& c) {
  std::string out;
  const auto line = [&](const std::string& text) { out += printable(text, /*keep_lines=*/false) + "\n"; };
  for (const Remark& r : c.remarks) line("note: " + r.place.to_string() + ": " + r.text);
  for (const ConvertedKey& k : c.dropped) line("dropped: " + k.place.to_string() + ": " + k.key + ": " + k.text);
  for (const ConvertedKey& k : c.unknown) line("dropped: " + k.place.to_string() + ": " + k.key + ": " + k.text);
  line(c.file + " (" + tool_title(c.tool) + "): " + counted(c.carried.size(), "key", "keys") + " carried over, " +
       std::to_string(c.dropped.size()) + " dropped" +
       (c.unknown.empty() ? "" : ", warning: " + counted(c.unknown.size(), "unknown key", "unknown keys")));
  return out;
}

json report_json(const Conversion& c, const std::string& output) {
  json remarks = json::array();
  for (const Remark& r : c.remarks) remarks.push_back({{"line", r.place.line}, {"text", r.text}});
  json out = {{"tool", tool_title(c.tool)},
              {"file", c.file},
              {"output", output.empty() ? json(nullptr) : json(output)},
              {"carried", keys_json(c.carried, "becomes")},
              {"dropped", keys_json(c.dropped, "reason")},
              {"unknown", keys_json(c.unknown, "reason")},
              {"defaults", c.defaults},
              {"remarks", remarks}};
  if (output.empty()) out["yaml"] = c.yaml;
  return out;
}

}  // namespace troupe::convert
