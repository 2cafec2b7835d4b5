#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "base/config/variables.h"
#include "base/result.h"

/// The cluster manifest: which nodes there are, how workers start on them, how processes reach and trust each other.
namespace troupe {

/// One machine, or a share of one.
struct ManifestNode {
  std::string name;
  std::string address;       // host name or IP address; the data plane of its slots binds to it
  std::vector<int> cuda;     // device numbers; a slot each
  int cpu_slots = 0;         // or so many CPU slots
  int threads = 0;           // intra-op threads of a CPU slot; 0: not said
  int64_t memory_bytes = 0;  // of one device (a CPU slot's share); 0: not said
  /// Number of slots.
  int slots() const { return cuda.empty() ? cpu_slots : static_cast<int>(cuda.size()); }
};

/// kLocal: the driver starts the workers of all nodes on this machine. kManual: a person (or a script) starts `troupe
/// worker`.
enum class LaunchKind { kLocal, kManual };

/// How often a worker tells the driver that it is there.
inline constexpr std::chrono::milliseconds kHeartbeat{1'000};

struct ManifestTimeouts {
  std::chrono::milliseconds register_worker{60'000};  // until every worker has registered
  std::chrono::milliseconds lease{5'000};
};

struct Manifest {
  std::string name;
  std::string file;  // absolute
  std::vector<ManifestNode> nodes;
  LaunchKind launch = LaunchKind::kManual;
  std::map<std::string, std::string> env;  // set for workers and hosts
  std::string control_address;             // ADDR:PORT that the driver listens on
  std::string security = "token";
  ManifestTimeouts timeouts;

  /// Folder of token and certificates: NAME.secrets beside the file.
  std::string secrets_folder() const;
  const ManifestNode* node(const std::string& node_name) const;
};

/// Reads and checks a manifest; complaints as for job specs (job_spec_parser.h).
Result<Manifest> load_manifest(const std::string& path, const Environment& environment = process_environment());
/// The same from text; `origin` is named in complaints and becomes `file`.
Result<Manifest> parse_manifest(const std::string& text, const std::string& origin, const Environment& environment);

/// "0-3", "5", "0,2-4": ascending order is kept as written; empty when it is no such list or a number is doubled.
std::vector<int> parse_index_ranges(const std::string& text);

}  // namespace troupe
