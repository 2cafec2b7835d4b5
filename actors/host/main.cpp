#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "actors/bench/boundary_bench.h"
#include "actors/bench/feed_bench.h"
#include "actors/bench/pipeline_bench.h"
#include "actors/bench/step_bench.h"
#include "actors/calls/serve.h"
#include "actors/check/check_command.h"
#include "actors/data/index_command.h"
#include "actors/host/device.h"
#include "actors/host/host.h"
#include "actors/host/memory.h"
#include "actors/rpc/host_log.h"
#include "base/error_json.h"
#include "base/standard_output.h"
#include "base/version/version.h"

namespace troupe {
namespace {

std::string describe_host(const HostAssignment& assignment) {
  std::string text = "slot " + std::to_string(assignment.self.value);
  for (const auto& [group, rank] : actors_of(assignment)) text += ", " + group + "/" + std::to_string(rank);
  return text;
}

Status serve(HostControl& control) {
  try {
    TROUPE_ASSIGN(const auto host, Host::create(control));
    return serves_calls(control.assignment().mode) ? serve_calls(*host, control) : host->run();
  } catch (const ErrorException& e) {
    return e.error;
  } catch (const std::exception& e) {
    return internal_error(e.what());
  }
}

int host_command(int argc, char** argv) {
  auto control = connect_host_control(argc, argv);
  if (!control.ok()) {
    std::fprintf(stderr, "troupe-actor: %s\n", control.error().to_string().c_str());
    return 1;
  }
  const Status status = serve(**control);
  if (status.ok()) return 0;
  Error error = status.error();
  if (error.origin.empty()) error.origin = describe_host((*control)->assignment());
  (*control)->report_error(error);
  return 1;
}

/// `troupe-actor devices a:0=cuda:0 a:1=cuda:1`: asked before a job starts whether this build on this machine has the
/// devices of these slots.
int devices_command(int argc, char** argv) {
  for (int i = 2; i < argc; ++i) {
    SlotInfo slot;
    const std::string given = argv[i];
    const size_t device_at = given.rfind('='), index_at = given.rfind(':', device_at);
    if (device_at == std::string::npos || index_at == std::string::npos) {
      std::fprintf(stderr, "'%s' names no slot; valid: NODE:INDEX=DEVICE\n", argv[i]);
      return 2;
    }
    slot.node = given.substr(0, index_at);
    slot.index = std::atoi(given.c_str() + index_at + 1);
    slot.device = given.substr(device_at + 1);
    const auto device = open_device(slot);
    if (device.ok()) continue;
    std::fprintf(stderr, "%s\n", device.error().message.c_str());
    return 2;
  }
  return 0;
}

struct Bench {
  std::string_view name;
  int (*run)(int argc, char** argv);
};
constexpr Bench kBenches[] = {{"boundary", boundary_bench_command},
                              {"feed", feed_bench_command},
                              {"pipeline", pipeline_bench_command},
                              {"step", step_bench_command}};

int bench_command(int argc, char** argv) {
  const std::string name = argc > 2 ? argv[2] : "";
  std::string valid;
  for (const Bench& bench : kBenches) {
    if (bench.name == name) return bench.run(argc - 2, argv + 2);
    valid += (valid.empty() ? "" : ", ") + std::string(bench.name);
  }
  const Error error = invalid_argument("unknown bench '" + name + "' (valid here: " + valid + ")");
  std::fprintf(stderr, "troupe bench: %s\n", error.to_string().c_str());
  if (std::find(argv, argv + argc, std::string_view("--json")) != argv + argc)
    std::printf("%s\n", error_json(error, 2).c_str());
  return 2;
}

}  // namespace
}  // namespace troupe

namespace {

int run_main(int argc, char** argv) {
  // oneDNN keeps the code of 1,024 shapes by default; with row counts that never repeat that is memory for nothing.
  setenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "128", /*overwrite=*/0);
  troupe::install_counting_allocator();
  const std::string verb = argc > 1 ? argv[1] : "";
  if (verb == "--version") {
    std::printf("troupe-actor %s\n", troupe::version_text().c_str());
    return 0;
  }
  if (verb == "host") return troupe::host_command(argc, argv);
  if (verb == "devices") return troupe::devices_command(argc, argv);
  if (verb == "check") return troupe::check_command(argc, argv);
  if (verb == "index") return troupe::index_command(argc, argv);
  if (verb == "bench") return troupe::bench_command(argc, argv);
  std::fprintf(stderr,
               "troupe-actor: started by 'troupe'; unknown verb '%s' (valid: host, index, check, devices, bench)\n",
               verb.c_str());
  return 2;
}

}  // namespace

int main(int argc, char** argv) { return troupe::exit_code_after_output("troupe-actor", run_main(argc, argv)); }
