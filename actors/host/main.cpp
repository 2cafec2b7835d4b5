#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "actors/bench/boundary_bench.h"
#include "actors/bench/pipeline_bench.h"
#include "actors/bench/step_bench.h"
#include "actors/check/check_command.h"
#include "actors/data/index_command.h"
#include "actors/host/device.h"
#include "actors/host/host.h"
#include "actors/host/memory.h"

namespace troupe {
namespace {

std::string describe_host(const HostAssignment& a) {
  std::string text = "slot " + std::to_string(a.self.value);
  for (size_t g = 0; g < a.group_slots.size(); ++g)
    for (size_t r = 0; r < a.group_slots[g].size(); ++r)
      if (a.group_slots[g][r] == a.self.value) text += ", group " + std::to_string(g) + " rank " + std::to_string(r);
  return text;
}

Status serve(HostControl& control) {
  try {
    TROUPE_ASSIGN(const auto host, Host::create(control));
    return host->run();
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
  std::fprintf(stderr, "troupe-actor: %s\n", error.to_string().c_str());
  (*control)->report_error(error);
  return 1;
}

/// `troupe-actor devices cuda:0 cuda:1`: asked before a job starts whether this build on this machine has them.
int devices_command(int argc, char** argv) {
  for (int i = 2; i < argc; ++i) {
    SlotInfo slot;
    slot.node = "local";
    slot.index = i - 2;
    slot.device = argv[i];
    const auto device = open_device(slot);
    if (device.ok()) continue;
    std::fprintf(stderr, "%s\n", device.error().message.c_str());
    return 2;
  }
  return 0;
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) {
  // oneDNN keeps the code of 1,024 shapes by default; with row counts that never repeat that is memory for nothing.
  setenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "128", /*overwrite=*/0);
  troupe::install_counting_allocator();
  const std::string verb = argc > 1 ? argv[1] : "";
  if (verb == "host") return troupe::host_command(argc, argv);
  if (verb == "devices") return troupe::devices_command(argc, argv);
  if (verb == "check") return troupe::check_command(argc, argv);
  if (verb == "index") return troupe::index_command(argc, argv);
  if (verb == "bench" && argc > 2 && std::string(argv[2]) == "step") return troupe::step_bench_command(argc - 2, argv + 2);
  if (verb == "bench" && argc > 2 && std::string(argv[2]) == "boundary") return troupe::boundary_bench_command(argc - 2, argv + 2);
  if (verb == "bench" && argc > 2 && std::string(argv[2]) == "pipeline") return troupe::pipeline_bench_command(argc - 2, argv + 2);
  if (verb == "bench") {
    std::fprintf(stderr, "troupe bench: unknown bench '%s' (valid: boundary, pipeline, step)\n", argc > 2 ? argv[2] : "");
    return 2;
  }
  std::fprintf(stderr, "troupe-actor: started by 'troupe'; unknown verb '%s' (valid: host, index, check, devices, bench)\n", verb.c_str());
  return 2;
}
