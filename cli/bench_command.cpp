#include <algorithm>
#include <cstdio>

#include "base/config/diagnostics.h"
#include "cli/bench_calls.h"
#include "cli/bench_dispatch.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"

namespace troupe::cli {
namespace {

/// Every bench there is, in the order in which they are listed.
struct Bench {
  const char *name, *what;
  int (*run)(const std::string& actor, std::vector<std::string> arguments);  // null: carried out by troupe-actor
};
constexpr Bench kBenches[] = {
    {"step", "times one training step", nullptr},
    {"dispatch", "times steps that do nothing: what driving a step costs", bench_dispatch_command},
    {"calls", "times direct calls, beside plain gRPC", bench_calls_command},
    {"feed", "how fast records become the input of steps", nullptr},
    {"boundary", "what boundary channels carry, beside raw UCX", nullptr},
    {"pipeline", "times schedules with work that sleeps", nullptr},
};

Error no_such_bench(const std::string& name) {
  std::vector<std::string> names;
  for (const Bench& bench : kBenches) names.emplace_back(bench.name);
  if (name.empty()) return invalid_argument("bench: none was named; valid: troupe bench NAME with\n" + benches_text());
  const std::string near = nearest_word(name, names);
  return invalid_argument("bench: unknown bench '" + name + "'" +
                          (near.empty() ? std::string() : "; did you mean '" + near + "'?") + "; valid:\n" +
                          benches_text());
}

}  // namespace

std::string benches_text() {
  std::string text;
  for (const Bench& bench : kBenches) {
    const std::string name = bench.name;
    text += (text.empty() ? "  " : "\n  ") + name + std::string(10 - name.size(), ' ') + bench.what;
  }
  return text;
}

int bench_command(const std::string& actor, const std::vector<std::string>& arguments) {
  const bool named = !arguments.empty() && !arguments.front().starts_with('-');
  const std::string name = named ? arguments.front() : "";
  const auto bench =
      std::find_if(std::begin(kBenches), std::end(kBenches), [&](const Bench& b) { return b.name == name; });
  if (bench == std::end(kBenches))
    return report(no_such_bench(name), std::find(arguments.begin(), arguments.end(), "--json") != arguments.end());
  if (bench->run) return bench->run(actor, {arguments.begin() + 1, arguments.end()});
  std::vector<std::string> all{"bench"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return actor_command(actor, all);
}

}  // namespace troupe::cli
