#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/trace/trace_folder.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"

namespace troupe::cli {
namespace {

using nlohmann::json;

json costs_json(const HostTrace& host) {
  json actors = json::array(), steps = json::array();
  for (const auto& [group, rank] : host.actors)
    actors.push_back(host.groups[static_cast<size_t>(group)] + "/" + std::to_string(rank));
  for (const StepCosts& c : step_costs(host))
    steps.push_back({{"step", c.step},
                     {"step_ms", static_cast<double>(c.step_ns) / 1e6},
                     {"kernel_ms", static_cast<double>(c.kernel_ns) / 1e6},
                     {"peer_ms", static_cast<double>(c.peer_ns) / 1e6},
                     {"orchestration_ms", static_cast<double>(c.rest_ns) / 1e6},
                     {"sent_bytes", c.sent_bytes},
                     {"received_bytes", c.received_bytes}});
  return {{"slot", host.slot},
          {"actors", actors},
          {"clock_error_ns", host.clock.error_ns},
          {"dropped", host.dropped},
          {"steps", steps}};
}

}  // namespace

int trace_command(const std::string& run, const std::string& out, bool as_json) {
  const auto window = read_traces(run);
  if (!window) return report(window.error(), as_json);
  const std::string path = out.empty() ? window->folder + "/trace.json" : out;
  {
    std::ofstream file(path, std::ios::binary);
    file << chrome_trace(window->hosts);
    file.close();
    if (!file.good()) return report(invalid_argument("--out: cannot write " + path), as_json);
  }
  if (as_json) {
    json answer = {{"trace", path}, {"hosts", json::array()}};
    for (const HostTrace& host : window->hosts) answer["hosts"].push_back(costs_json(host));
    std::printf("%s\n", answer.dump(2).c_str());
    return kExitDone;
  }
  std::printf("%s%s: open it in https://ui.perfetto.dev\n", trace_table(window->hosts).c_str(), path.c_str());
  return kExitDone;
}

}  // namespace troupe::cli
