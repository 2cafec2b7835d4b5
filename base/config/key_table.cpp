#include "base/config/key_table.h"

#include <algorithm>
#include <set>
#include <sstream>

namespace troupe {
namespace {

std::string joined(const std::string& prefix, const std::string& key) {
  return prefix.empty() ? key : prefix + "." + key;
}

std::string last_part(const std::string& path) {
  return path.substr(path.rfind('.') == std::string::npos ? 0 : path.rfind('.') + 1);
}

/// "groups.*.mesh" -> "groups.NAME.mesh", "data.sources.[]" -> "data.sources".
std::string readable(const std::string& pattern) {
  std::string out;
  std::stringstream in(pattern);
  for (std::string part; std::getline(in, part, '.');)
    if (part != "[]") out = joined(out, part == "*" ? "NAME" : part);
  return out.empty() ? "the top of the file" : out;
}

}  // namespace

KeyTable::KeyTable(std::vector<KeyRule> rules) : rules_(std::move(rules)) {}

const KeyRule* KeyTable::rule(const std::string& pattern) const {
  for (const KeyRule& r : rules_)
    if (r.path == pattern) return &r;
  return nullptr;
}

bool KeyTable::is_prefix(const std::string& pattern) const {
  const std::string start = pattern + ".";
  return std::any_of(rules_.begin(), rules_.end(),
                     [&](const KeyRule& r) { return r.path.compare(0, start.size(), start) == 0; });
}

std::vector<std::string> KeyTable::children(const std::string& pattern) const {
  const std::string start = pattern.empty() ? "" : pattern + ".";
  std::vector<std::string> out;
  for (const KeyRule& r : rules_) {
    if (r.path.compare(0, start.size(), start) != 0) continue;
    const std::string rest = r.path.substr(start.size());
    const std::string child = rest.substr(0, rest.find('.'));
    const bool reserved = !r.built && rest == child;
    if (child != "*" && child != "[]" && !reserved && std::find(out.begin(), out.end(), child) == out.end())
      out.push_back(child);
  }
  return out;
}

std::vector<std::string> KeyTable::sections_with(const std::string& key) const {
  std::set<std::string> out;
  for (const KeyRule& r : rules_) {
    std::string path = r.path;
    // Sections count too: "optimizer" at the top belongs under "training".
    while (!path.empty()) {
      const size_t dot = path.rfind('.');
      if (r.built && last_part(path) == key) out.insert(readable(dot == std::string::npos ? "" : path.substr(0, dot)));
      path = dot == std::string::npos ? "" : path.substr(0, dot);
    }
  }
  return {out.begin(), out.end()};
}

void KeyTable::check(const YamlNode& root, Diagnostics& diagnostics) const {
  if (!root.is_map()) {
    diagnostics.add(root.place, "expected keys and values, got " + root.describe());
    return;
  }
  check_node(root, "", "", diagnostics);
}

void KeyTable::check_node(const YamlNode& node, const std::string& pattern, const std::string& shown,
                          Diagnostics& diagnostics) const {
  // A mapping where a list of them is due: its reader says so, and no key of it is to blame.
  const bool list_is_due = is_prefix(joined(pattern, "[]"));
  for (const YamlEntry& e : node.entries)
    if (!list_is_due) check_entry(e, pattern, shown, diagnostics);
  for (size_t i = 0; i < node.items.size(); ++i)
    if (list_is_due)
      check_node(node.items[i], joined(pattern, "[]"), shown + "[" + std::to_string(i) + "]", diagnostics);
}

void KeyTable::check_entry(const YamlEntry& entry, const std::string& pattern, const std::string& shown,
                           Diagnostics& diagnostics) const {
  std::string child = joined(pattern, entry.key);
  if (!rule(child) && !is_prefix(child)) child = joined(pattern, "*");
  const KeyRule* r = rule(child);
  const std::string name = joined(shown, entry.key);
  if (r && !r->built) {
    const bool off = entry.value.kind == YamlKind::kScalar && !r->accepted.empty() && entry.value.text == r->accepted;
    if (!off)
      diagnostics.add_key(entry.place, name, "not built yet" + (r->accepted.empty() ? "" : "; valid: " + r->accepted));
  } else if (is_prefix(child)) {
    check_node(entry.value, child, name, diagnostics);
  } else if (!r) {
    report_unknown(entry, pattern, shown, diagnostics);
  }
}

void KeyTable::report_unknown(const YamlEntry& entry, const std::string& pattern, const std::string& shown,
                              Diagnostics& diagnostics) const {
  const std::vector<std::string> siblings = children(pattern);
  const std::vector<std::string> elsewhere = sections_with(entry.key);
  std::string message = "unknown key";
  if (!elsewhere.empty()) {
    message += "; it belongs under " + join_words(elsewhere, " or ");
  } else if (const std::string near = nearest_word(entry.key, siblings); !near.empty()) {
    message += "; did you mean '" + near + "'?";
  } else if (!siblings.empty()) {
    message += "; valid here: " + join_words(siblings);
  }
  diagnostics.add_key(entry.place, joined(shown, entry.key), message);
}

const KeyTable& job_spec_keys() {
  static const KeyTable table({
      {"name"},
      {"device"},
      {"threads"},
      {"model.path"},
      {"model.init"},
      {"model.dtype"},
      {"components.*.train"},
      {"components.*.lr"},
      {"components.*.lora", false, ""},
      {"groups.*.components"},
      {"groups.*.mesh.dp"},
      {"groups.*.mesh.sp"},
      {"groups.*.mesh.tp"},
      {"groups.*.mesh.pp", false, "1"},
      {"groups.*.mesh.cp", false, "1"},
      {"groups.*.mesh.ep", false, "1"},
      {"groups.*.zero"},
      {"groups.*.tp_sequence"},
      {"groups.*.unit.images"},
      {"groups.*.recompute", false, "none"},
      {"groups.*.offload", false, "none"},
      {"groups.*.layers", false, ""},
      {"placement"},
      {"schedule.credits"},
      {"schedule.memory_gib"},
      {"schedule.channel"},
      {"data.sources.[].path"},
      {"data.sources.[].image_root"},
      {"data.sources.[].take"},
      {"data.sources.[].weight"},
      {"data.sources.[].columns.*"},
      {"data.sources.[].roles.*"},
      {"data.sources.[].datasets"},
      {"data.columns.*"},
      {"data.roles.*"},
      {"data.synthetic.images"},
      {"data.synthetic.pixels"},
      {"data.synthetic.text_tokens"},
      {"data.synthetic.samples"},
      {"data.shuffle"},
      {"data.balance"},
      {"data.sort_window"},
      {"data.max_sample_tokens"},
      {"data.too_long"},
      {"data.pack_tokens"},
      {"data.min_pixels"},
      {"data.max_pixels"},
      {"data.video.fps"},
      {"data.video.min_frames"},
      {"data.video.max_frames"},
      {"data.video.min_pixels"},
      {"data.video.max_pixels"},
      {"data.supervise"},
      {"data.workers"},
      {"data.on_bad_record"},
      {"eval.split"},
      {"eval.sources.[].path"},
      {"eval.sources.[].image_root"},
      {"eval.sources.[].take"},
      {"eval.sources.[].columns.*"},
      {"eval.sources.[].roles.*"},
      {"eval.sources.[].datasets"},
      {"eval.every"},
      {"eval.max_samples"},
      {"training.steps"},
      {"training.epochs"},
      {"training.global_batch"},
      {"training.microbatch.samples"},
      {"training.microbatch.tokens"},
      {"training.optimizer.type", false, "adamw"},
      {"training.optimizer.lr"},
      {"training.optimizer.betas"},
      {"training.optimizer.eps"},
      {"training.optimizer.weight_decay"},
      {"training.optimizer.clip"},
      {"training.schedule.type"},
      {"training.schedule.warmup_ratio"},
      {"training.schedule.warmup_steps"},
      {"training.schedule.min_ratio"},
      {"training.seed"},
      {"training.max_skipped"},
      {"training.bucket_bytes"},
      {"checkpoint.every"},
      {"checkpoint.keep"},
      {"checkpoint.best", false, "none"},
      {"checkpoint.export"},
      {"logging.every"},
      {"logging.tensorboard", false, "false"},
      {"profile.steps"},
      {"profile.ranks"},
      {"debug.dump.steps"},
      {"debug.dump.gradients"},
      {"debug.dump.vision_rows"},
      {"debug.dump.samples"},
      {"debug.dump.weights"},
  });
  return table;
}

const KeyTable& manifest_keys() {
  static const KeyTable table({
      {"name"},
      {"nodes.[].name"},
      {"nodes.[].address"},
      {"nodes.[].devices.cuda"},
      {"nodes.[].devices.cpu"},
      {"nodes.[].devices.threads"},
      {"nodes.[].devices.memory_gib"},
      {"launch"},
      {"env.*"},
      {"network.control"},
      {"network.data", false, ""},
      {"security"},
      {"timeouts.register"},
      {"timeouts.heartbeat", false, "1s"},
      {"timeouts.lease"},
      {"timeouts.shutdown", false, ""},
      {"timeouts.driver_lost", false, ""},
  });
  return table;
}

}  // namespace troupe
