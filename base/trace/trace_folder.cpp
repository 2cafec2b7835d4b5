#include "base/trace/trace_folder.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace troupe {
namespace fs = std::filesystem;
namespace {

std::string window_name(int64_t first, int64_t last) {
  char name[64];
  std::snprintf(name, sizeof name, "steps-%08lld-%08lld", static_cast<long long>(first), static_cast<long long>(last));
  return name;
}

}  // namespace

Result<std::string> write_host_trace(const std::string& run_folder, int64_t first_step, int64_t last_step,
                                     const HostTrace& trace) {
  const fs::path folder = fs::path(run_folder) / "trace" / window_name(first_step, last_step);
  const fs::path path = folder / ("slot-" + std::to_string(trace.slot) + ".json");
  const fs::path temporary = path.string() + ".tmp-" + std::to_string(::getpid());
  std::error_code error;
  fs::create_directories(folder, error);
  {
    std::ofstream out(temporary, std::ios::binary);
    out << trace.to_json();
    out.close();
    if (!out.good()) return data_loss("cannot write " + temporary.string());
  }
  fs::rename(temporary, path, error);
  if (error) return data_loss("cannot rename " + temporary.string() + " to " + path.string() + ": " + error.message());
  return path.string();
}

Result<TracedWindow> read_traces(const std::string& run_folder) {
  std::error_code error;
  if (!fs::is_directory(run_folder, error)) return not_found("there is no folder '" + run_folder + "'");
  fs::path newest;
  fs::file_time_type newest_at{};
  for (const auto& entry : fs::directory_iterator(fs::path(run_folder) / "trace", error)) {
    if (!entry.is_directory() || entry.path().filename().string().rfind("steps-", 0) != 0) continue;
    const auto at = fs::last_write_time(entry.path(), error);
    if (newest.empty() || at > newest_at) std::tie(newest, newest_at) = std::pair(entry.path(), at);
  }
  if (newest.empty())
    return not_found(run_folder + " has no trace; `profile: {steps: [FIRST, LAST]}` in the job spec writes one");
  TracedWindow window;
  window.folder = newest.string();
  for (const auto& entry : fs::directory_iterator(newest, error)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind("slot-", 0) != 0 || entry.path().extension() != ".json") continue;
    std::ifstream in(entry.path(), std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    auto trace = HostTrace::from_json(text.str());
    if (!trace.ok()) return data_loss(entry.path().string() + ": " + trace.error().message);
    window.hosts.push_back(std::move(*trace));
  }
  if (window.hosts.empty()) return not_found(window.folder + " holds no trace of a host");
  std::sort(window.hosts.begin(), window.hosts.end(),
            [](const HostTrace& a, const HostTrace& b) { return a.slot < b.slot; });
  return window;
}

std::string trace_table(const std::vector<HostTrace>& hosts) {
  std::string text =
      "slot  actors                    steps   step ms  kernel ms  peers ms  orchestration ms   sent MiB  received "
      "MiB\n";
  for (const HostTrace& host : hosts) {
    std::string actors;
    for (const auto& [group, rank] : host.actors)
      actors += (actors.empty() ? "" : ", ") + host.groups[static_cast<size_t>(group)] + "/" + std::to_string(rank);
    const std::vector<StepCosts> steps = step_costs(host);
    StepCosts sum;
    for (const StepCosts& c : steps) {
      sum.step_ns += c.step_ns;
      sum.kernel_ns += c.kernel_ns;
      sum.peer_ns += c.peer_ns;
      sum.rest_ns += c.rest_ns;
      sum.sent_bytes += c.sent_bytes;
      sum.received_bytes += c.received_bytes;
    }
    const auto count = static_cast<double>(std::max<size_t>(steps.size(), 1));
    const auto ms = [&](int64_t ns) { return static_cast<double>(ns) / 1e6 / count; };
    const auto mib = [&](int64_t bytes) { return static_cast<double>(bytes) / 1048576 / count; };
    char line[256];
    std::snprintf(line, sizeof line, "%4d  %-24s  %5zu  %8.2f  %9.2f  %8.2f  %16.3f  %9.3f  %12.3f\n", host.slot,
                  actors.c_str(), steps.size(), ms(sum.step_ns), ms(sum.kernel_ns), ms(sum.peer_ns), ms(sum.rest_ns),
                  mib(sum.sent_bytes), mib(sum.received_bytes));
    text += line;
  }
  return text;
}

}  // namespace troupe
