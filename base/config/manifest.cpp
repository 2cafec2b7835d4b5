#include "base/config/manifest.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>
#include <sstream>

#include "base/config/key_table.h"
#include "base/config/scalars.h"
#include "base/config/section.h"
#include "base/regular_file.h"

namespace troupe {
namespace {

constexpr int kMaxSlotsPerNode = 4096;
constexpr int64_t kGiB = int64_t{1} << 30;

bool is_node_name(const std::string& name) {
  return !name.empty() && name.size() <= 64 && std::isalnum(static_cast<unsigned char>(name[0])) &&
         std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_' || c == '.'; });
}

void read_memory(const Section& devices, int64_t& bytes) {
  double gib = 0;
  devices.number("memory_gib", gib, 0.001, 1e6);
  bytes = static_cast<int64_t>(gib * static_cast<double>(kGiB));
}

void read_devices(const Section& s, ManifestNode& node) {
  const Section d = s.section("devices");
  if (!s.has("devices")) s.fail("devices", "is missing; valid: {cuda: 0-7} or {cpu: 4, threads: 2}");
  if (d.has("cuda") && d.has("cpu"))
    d.fail("cpu", "together with 'cuda' on one node is not built yet; valid: one of the two");
  if (d.present() && !d.has("cuda") && !d.has("cpu"))
    d.fail("", "names no devices; valid: {cuda: 0-7} or {cpu: 4, threads: 2}");
  d.integer("cpu", node.cpu_slots, 1, kMaxSlotsPerNode);
  d.integer("threads", node.threads, 1, kMaxSlotsPerNode);
  read_memory(d, node.memory_bytes);
  const YamlNode* cuda = d.present() ? d.find("cuda") : nullptr;
  if (!cuda) return;
  std::string text = cuda->text;
  for (const YamlNode& item : cuda->items) text += (text.empty() ? "" : ",") + item.text;
  node.cuda = parse_index_ranges(text);
  if (node.cuda.empty()) d.bad_value("cuda", cuda->describe(), "device numbers, each once, such as 0-7 or [0, 2, 3]");
}

ManifestNode read_node(const Section& s, LaunchKind launch) {
  ManifestNode node;
  s.string("name", node.name);
  if (!is_node_name(node.name))
    s.bad_value("name", "'" + node.name + "'",
                "up to 64 letters, digits, '-', '_' and '.', beginning with a letter or digit");
  s.string("address", node.address);
  if (node.address.empty() && launch == LaunchKind::kLocal) node.address = "127.0.0.1";
  if (node.address.empty()) s.fail("address", "is missing; valid: a host name or IP address");
  read_devices(s, node);
  return node;
}

void read_nodes(const Section& root, Manifest& m) {
  const YamlNode* n = root.find("nodes");
  if (n && n->kind == YamlKind::kScalar && n->text == "from_slurm")
    return root.fail("nodes", "value 'from_slurm' is not built yet; valid: a list of nodes");
  if (!n || n->kind != YamlKind::kSequence || n->items.empty())
    return root.fail("nodes", "is missing or no list; valid: [{name: a, address: HOST, devices: {cuda: 0-7}}, ...]");
  std::set<std::string> names;
  for (size_t i = 0; i < n->items.size(); ++i) {
    const YamlNode& item = n->items[i];
    const Section s(item.is_map() ? &item : nullptr, "nodes[" + std::to_string(i) + "]", item.place,
                    root.diagnostics());
    m.nodes.push_back(read_node(s, m.launch));
    if (!names.insert(m.nodes.back().name).second)
      s.fail("name", "value '" + m.nodes.back().name + "' occurs twice; valid: a name for each node");
  }
}

void read_launch(const Section& root, LaunchKind& launch) {
  std::string word = "manual";
  root.choice<std::string>(
      "launch", word,
      {{"local", "local"}, {"manual", "manual"}, {"slurm", "slurm"}, {"kubernetes", "kubernetes"}, {"ssh", "ssh"}});
  if (word == "local") launch = LaunchKind::kLocal;
  if (word != "local" && word != "manual")
    root.fail("launch", "value '" + word +
                            "' is not built yet; valid: local, manual (start `troupe worker` on each node yourself)");
}

bool is_host_and_port(const std::string& text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) return false;
  const auto port = parse_integer(text.substr(colon + 1));
  return port && *port >= 0 && *port <= 65535;
}

void read_network(const Section& root, Manifest& m) {
  const Section s = root.section("network");
  if (m.launch == LaunchKind::kLocal) m.control_address = "127.0.0.1:7717";
  s.string("control", m.control_address);
  if (m.control_address.empty())
    s.fail("control", "is missing; valid: ADDRESS:PORT that the driver listens on and every worker reaches");
  else if (!is_host_and_port(m.control_address))
    s.bad_value("control", "'" + m.control_address + "'", "ADDRESS:PORT with a port from 0 to 65535");
}

void read_duration(const Section& s, const std::string& key, std::chrono::milliseconds& out) {
  const YamlNode* n = s.present() ? s.find(key) : nullptr;
  if (!n) return;
  const auto value = n->kind == YamlKind::kScalar ? parse_duration(n->text) : std::nullopt;
  if (value && value->count() > 0)
    out = *value;
  else
    s.bad_value(key, n->describe(), "a duration such as 500ms, 30s or 2m (a plain number is seconds)");
}

void read_timeouts(const Section& root, ManifestTimeouts& t) {
  const Section s = root.section("timeouts");
  read_duration(s, "register", t.register_worker);
  read_duration(s, "lease", t.lease);
  if (t.lease < 2 * kHeartbeat)
    s.fail("lease", "value " + std::to_string(t.lease.count()) + " ms must be at least twice the heartbeat of " +
                        std::to_string(kHeartbeat.count()) + " ms");
}

void read_security(const Section& root, std::string& security) {
  root.choice<std::string>("security", security, {{"token", "token"}, {"mtls", "mtls"}});
  if (security == "mtls") root.fail("security", "value 'mtls' is not built yet; valid: token (a token inside TLS)");
}

void read_env(const Section& root, std::map<std::string, std::string>& env) {
  const YamlNode* n = root.find("env");
  if (!n) return;
  if (!n->is_map()) return root.bad_value("env", n->describe(), "a mapping of variable names to text");
  const Section s = root.section("env");
  for (const YamlEntry& e : n->entries) s.string(e.key, env[e.key]);
}

}  // namespace

std::vector<int> parse_index_ranges(const std::string& text) {
  std::vector<int> out;
  std::set<int> seen;
  std::stringstream in(text);
  for (std::string part; std::getline(in, part, ',');) {
    std::erase(part, ' ');
    const size_t dash = part.find('-');
    const auto first = parse_integer(part.substr(0, dash));
    const auto last = dash == std::string::npos ? first : parse_integer(part.substr(dash + 1));
    if (!first || !last || *first < 0 || *last < *first || *last >= kMaxSlotsPerNode) return {};
    for (int64_t i = *first; i <= *last; ++i) {
      if (!seen.insert(static_cast<int>(i)).second) return {};
      out.push_back(static_cast<int>(i));
    }
  }
  return out;
}

std::string Manifest::secrets_folder() const {
  const std::filesystem::path p(file);
  return (p.parent_path() / (p.stem().string() + ".secrets")).string();
}

const ManifestNode* Manifest::node(const std::string& node_name) const {
  for (const ManifestNode& n : nodes)
    if (n.name == node_name) return &n;
  return nullptr;
}

Result<Manifest> load_manifest(const std::string& path, const Environment& environment) {
  TROUPE_ASSIGN(const std::string text, read_text_file(path));
  return parse_manifest(text, path, environment);
}

Result<Manifest> parse_manifest(const std::string& text, const std::string& origin, const Environment& environment) {
  Diagnostics found;
  YamlNode tree = parse_yaml(text, origin, found);
  if (!found.empty() && tree.entries.empty()) return found.to_status().error();
  expand_variables(tree, environment, found);
  manifest_keys().check(tree, found);
  if (!tree.is_map()) return found.to_status().error();
  const Section root(&tree, "", {origin, 1}, found);
  Manifest m;
  m.file = std::filesystem::absolute(origin).lexically_normal().string();
  m.name = std::filesystem::path(origin).stem().string();
  root.string("name", m.name);
  read_launch(root, m.launch);
  read_network(root, m);
  read_nodes(root, m);
  read_env(root, m.env);
  read_security(root, m.security);
  read_timeouts(root, m.timeouts);
  TROUPE_RETURN_IF_ERROR(found.to_status());
  return m;
}

}  // namespace troupe
