#include "base/placement/placement.h"

#include <sched.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>

#include "base/config/diagnostics.h"
#include "base/config/scalars.h"

namespace troupe {
namespace {

constexpr const char* kLocalNode = "local";

/// Empty when it cannot be read.
std::string file_text(const char* path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// "a:0-3" -> node and index text; index "*" is every slot of the node.
struct SlotPattern {
  std::string node, indices;
};

SlotPattern split_pattern(const std::string& text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos) return {text, "*"};
  return {text.substr(0, colon), text.substr(colon + 1)};
}

/// The highest local slot that an explicit placement names, plus one: how many CPU slots this machine must offer.
int local_slots_named(const PlacementSpec& placement) {
  int count = 0;
  for (const auto& [group, patterns] : placement.slots)
    for (const std::string& text : patterns)
      for (int index : parse_index_ranges(split_pattern(text).indices)) count = std::max(count, index + 1);
  return count;
}

int slots_wanted(const JobSpec& spec) {
  if (spec.placement.kind == PlacementKind::kExplicit) return local_slots_named(spec.placement);
  int most = 0, sum = 0;
  for (const GroupSpec& g : spec.groups) {
    most = std::max(most, g.mesh.ranks());
    sum += g.mesh.ranks();
  }
  return spec.placement.kind == PlacementKind::kColocated ? most : sum;
}

/// Slots that the job will really use share the threads, so the choice of slots comes first.
int even_threads(int cores, int slots) { return std::max(1, cores / std::max(1, slots)); }

Result<std::vector<Slot>> local_slots(const JobSpec& spec, const Machine& machine) {
  const bool cuda = spec.device == "cuda" || (spec.device == "auto" && machine.cuda_devices > 0);
  if (cuda && machine.cuda_devices == 0)
    return invalid_argument(
        "key 'device': value 'cuda', but this machine has no GPU (there is no /dev/nvidia0 or higher); valid: auto, "
        "cpu, or "
        "--cluster FILE");
  const int count = cuda ? machine.cuda_devices : slots_wanted(spec);
  std::vector<Slot> out;
  for (int i = 0; i < count; ++i) {
    Slot s;
    s.node = kLocalNode;
    s.index = i;
    s.device = cuda ? "cuda:" + std::to_string(i) : "cpu";
    s.threads = spec.threads > 0 ? spec.threads : even_threads(machine.cores, cuda ? slots_wanted(spec) : count);
    s.data_address = "127.0.0.1";
    s.memory_bytes = cuda ? 0 : machine.memory_bytes;
    s.shares_memory = !cuda;
    out.push_back(std::move(s));
  }
  return out;
}

int manifest_threads(const JobSpec& spec, const Manifest& manifest, const ManifestNode& node, const Machine& machine) {
  if (spec.threads > 0) return spec.threads;
  if (node.threads > 0) return node.threads;
  // Only of this machine are the cores known; nodes of a local launch share them.
  return manifest.launch == LaunchKind::kLocal ? even_threads(machine.cores, slots_wanted(spec)) : 1;
}

std::vector<Slot> manifest_slots(const JobSpec& spec, const Manifest& manifest, const Machine& machine) {
  const bool any_cuda =
      std::any_of(manifest.nodes.begin(), manifest.nodes.end(), [](const ManifestNode& n) { return !n.cuda.empty(); });
  const bool cuda = spec.device == "cuda" || (spec.device == "auto" && any_cuda);
  std::vector<Slot> out;
  for (const ManifestNode& n : manifest.nodes) {
    if (n.cuda.empty() == cuda) continue;
    for (int i = 0; i < n.slots(); ++i) {
      Slot s;
      s.node = n.name;
      s.index = cuda ? n.cuda[static_cast<size_t>(i)] : i;
      s.device = cuda ? "cuda:" + std::to_string(s.index) : "cpu";
      s.threads = manifest_threads(spec, manifest, n, machine);
      s.data_address = n.address;
      s.memory_bytes = n.memory_bytes;
      out.push_back(std::move(s));
    }
  }
  return out;
}

std::string place_key(const std::string& group) { return "key 'placement." + group + "': "; }

/// Positions in `available` that one pattern names.
Result<std::vector<int>> match(const std::string& group, const std::string& text, const std::vector<Slot>& available) {
  const SlotPattern pattern = split_pattern(text);
  std::map<int, int> of_node;
  std::vector<std::string> nodes;
  for (size_t i = 0; i < available.size(); ++i) {
    if (nodes.empty() || nodes.back() != available[i].node) nodes.push_back(available[i].node);
    if (available[i].node == pattern.node) of_node[available[i].index] = static_cast<int>(i);
  }
  if (of_node.empty()) {
    const std::string near = nearest_word(pattern.node, nodes);
    return invalid_argument(place_key(group) + "value '" + text + "': unknown node '" + pattern.node + "'" +
                            (near.empty() ? "" : "; did you mean '" + near + "'?") + "; valid: " + join_words(nodes));
  }
  std::vector<int> out;
  if (pattern.indices == "*") {
    for (const auto& [index, position] : of_node) out.push_back(position);
    return out;
  }
  const std::vector<int> indices = parse_index_ranges(pattern.indices);
  if (indices.empty())
    return invalid_argument(place_key(group) + "value '" + text +
                            "' is not valid; valid: NODE:NUMBER, NODE:FIRST-LAST or NODE:*");
  for (int index : indices) {
    const auto it = of_node.find(index);
    if (it == of_node.end())
      return invalid_argument(place_key(group) + "value '" + text + "': node '" + pattern.node + "' has no slot " +
                              std::to_string(index) + "; valid: " + std::to_string(of_node.begin()->first) + " to " +
                              std::to_string(of_node.rbegin()->first));
    out.push_back(it->second);
  }
  return out;
}

Result<std::vector<int>> explicit_slots(const GroupSpec& g, const PlacementSpec& placement,
                                        const std::vector<Slot>& available) {
  const auto it = placement.slots.find(g.name);
  if (it == placement.slots.end())
    return invalid_argument(place_key(g.name) + "is missing; valid: a list of slots for every group");
  std::vector<int> out;
  for (const std::string& text : it->second) {
    TROUPE_ASSIGN(const std::vector<int> matched, match(g.name, text, available));
    for (int slot : matched) {
      if (std::find(out.begin(), out.end(), slot) != out.end())
        return invalid_argument(place_key(g.name) + "slot " + available[static_cast<size_t>(slot)].name() +
                                " occurs twice; valid: each slot once in a group (different groups may share one)");
      out.push_back(slot);
    }
  }
  if (static_cast<int>(out.size()) != g.mesh.ranks())
    return invalid_argument(place_key(g.name) + "lists " + std::to_string(out.size()) + " slots, the group's mesh (" +
                            g.mesh.to_string() + ") has " + std::to_string(g.mesh.ranks()) + " ranks");
  return out;
}

std::vector<int> consecutive(int first, int count) {
  std::vector<int> out;
  for (int i = 0; i < count; ++i) out.push_back(first + i);
  return out;
}

std::string wishes(const JobSpec& spec) {
  std::vector<std::string> out;
  for (const GroupSpec& g : spec.groups) out.push_back(g.name + ": " + std::to_string(g.mesh.ranks()));
  return join_words(out);
}

/// Leaves only the slots in use, in their order, and renumbers.
Placement compacted(const std::vector<Slot>& available, std::vector<std::vector<int>> group_slots) {
  Placement out;
  std::map<int, int> renumbered;
  for (const auto& slots : group_slots)
    for (int s : slots) renumbered[s] = 0;
  for (auto& [old_position, new_position] : renumbered) {
    new_position = static_cast<int>(out.slots.size());
    out.slots.push_back(available[static_cast<size_t>(old_position)]);
  }
  for (auto& slots : group_slots)
    for (int& s : slots) s = renumbered[s];
  out.group_slots = std::move(group_slots);
  return out;
}

}  // namespace

int64_t available_memory(const std::string& meminfo, const std::string& limit) {
  int64_t kib = 0;
  bool known = false;
  std::istringstream lines(meminfo);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    int64_t value = 0;
    if (!(words >> name >> value) || (name != "MemAvailable:" && name != "SwapFree:")) continue;
    kib += value;
    known = known || name == "MemAvailable:";
  }
  if (!known) return 0;
  const std::optional<int64_t> most = parse_integer(limit.substr(0, limit.find('\n')));
  return most ? std::min(kib * 1024, *most) : kib * 1024;
}

Machine this_machine() {
  Machine m;
  std::error_code ec;
  // A container may hold any of its machine's GPUs: CUDA counts them from 0, whatever their numbers here.
  for (const auto& entry : std::filesystem::directory_iterator("/dev", ec)) {
    const std::string name = entry.path().filename().string();
    const bool numbered =
        name.starts_with("nvidia") && name.size() > 6 && name.find_first_not_of("0123456789", 6) == std::string::npos;
    m.cuda_devices += numbered ? 1 : 0;
  }
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) m.cores = std::max(1, CPU_COUNT(&set));
  m.memory_bytes = available_memory(file_text("/proc/meminfo"), file_text("/sys/fs/cgroup/memory.max"));
  return m;
}

Result<std::vector<Slot>> available_slots(const JobSpec& spec, const Manifest* manifest, const Machine& machine) {
  if (!manifest) return local_slots(spec, machine);
  return manifest_slots(spec, *manifest, machine);
}

Result<Placement> place_groups(const JobSpec& spec, const std::vector<Slot>& available) {
  std::vector<std::vector<int>> group_slots;
  if (spec.placement.kind == PlacementKind::kExplicit) {
    for (const GroupSpec& g : spec.groups) {
      TROUPE_ASSIGN(std::vector<int> slots, explicit_slots(g, spec.placement, available));
      group_slots.push_back(std::move(slots));
    }
    return compacted(available, std::move(group_slots));
  }
  const bool colocated = spec.placement.kind == PlacementKind::kColocated;
  const int wanted = slots_wanted(spec), exist = static_cast<int>(available.size());
  if (wanted > exist)
    return invalid_argument("key 'placement': " + std::string(colocated ? "colocated" : "disjoint") + " asks for " +
                            std::to_string(wanted) + " slots (" + wishes(spec) + "), " + std::to_string(exist) +
                            " exist");
  int next = 0;
  for (const GroupSpec& g : spec.groups) {
    group_slots.push_back(consecutive(colocated ? 0 : next, g.mesh.ranks()));
    next += g.mesh.ranks();
  }
  return compacted(available, std::move(group_slots));
}

}  // namespace troupe
