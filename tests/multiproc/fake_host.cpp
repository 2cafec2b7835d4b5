#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <thread>

#include "actors/host/control.h"
#include "base/checkpoint/checkpoint_folder.h"
#include "base/config/job_spec_parser.h"

/// Stands in for troupe-actor in the tests of the control plane: meets the other hosts in the store, runs steps under
/// grants, reports them. What it does beyond that is written in RUN/../fake.txt as lines "key value":
///   steps N, step_ms N, load_ms N      crash SLOT STEP, exit SLOT STEP, throw SLOT STEP, hang SLOT STEP, refuse SLOT
/// Any other key ends the host, so that a test cannot ask for what does not happen.
namespace {

using namespace troupe;
using std::chrono::milliseconds;

struct Script {
  int64_t steps = 5, step_ms = 0, load_ms = 0;
  std::string fault;
  int fault_slot = -1;
  int64_t fault_step = -1;
};

Script read_script(const std::string& run_folder) {
  Script script;
  std::ifstream file(run_folder + "/../fake.txt");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string key;
    words >> key;
    if (key == "steps")
      words >> script.steps;
    else if (key == "step_ms")
      words >> script.step_ms;
    else if (key == "load_ms")
      words >> script.load_ms;
    else if (key == "crash" || key == "exit" || key == "throw" || key == "hang" || key == "refuse") {
      script.fault = key;
      words >> script.fault_slot >> script.fault_step;
    } else if (!key.empty()) {
      std::fprintf(stderr, "fake.txt: unknown key '%s'\n", key.c_str());
      std::exit(1);
    }
  }
  return script;
}

void fail_as_told(const Script& script, HostControl& control, int64_t step) {
  if (script.fault_slot != control.assignment().self.value || script.fault_step != step) return;
  if (script.fault == "crash") ::raise(SIGKILL);
  if (script.fault == "exit") ::_exit(3);
  if (script.fault == "hang")
    for (;;) ::pause();
  if (script.fault == "throw") {
    control.report_error(internal_error("the fake host throws as it was told"));
    ::_exit(1);
  }
}

/// All hosts pass together: stands in for a collective, so that one host's loss is felt by the others.
Status meet(HostControl& control, int64_t step) {
  const size_t hosts = control.assignment().slots.size();
  const std::string key = "1/step/" + std::to_string(step);
  TROUPE_ASSIGN(const int64_t arrived, control.store().add(key, 1));
  if (arrived == static_cast<int64_t>(hosts)) return control.store().set(key + "/all", "x");
  return control.store().get(key + "/all", milliseconds(60000)).status();
}

/// A checkpoint without weights that the command line takes for one of this job.
Status save(const std::string& run_folder, int64_t step) {
  TROUPE_ASSIGN(const JobSpec spec, load_job_spec(run_folder + "/job.yaml", {}));
  TROUPE_ASSIGN(const std::string folder, begin_checkpoint(run_folder, step, Generation{1}));
  std::ofstream(folder + "/rank-0.safetensors") << "nothing";
  CheckpointManifest manifest = manifest_of_spec(spec, step);
  manifest.dtype = "fp32";
  return commit_checkpoint(folder, run_folder, std::move(manifest)).status();
}

Status train(HostControl& control, const Script& script) {
  const int slot = control.assignment().self.value;
  if (script.fault == "refuse" && script.fault_slot == slot)
    return invalid_argument("model folder: tensor 'x' is missing");
  control.report_phase("loading weights");
  std::this_thread::sleep_for(milliseconds(script.load_ms));
  TROUPE_RETURN_IF_ERROR(meet(control, 0));
  control.report_event("training_plan", "{\"steps\": " + std::to_string(script.steps) + "}");
  control.report_ready();
  control.report_prepared(2, {});
  for (int64_t step = 1; step <= script.steps; ++step) {
    TROUPE_ASSIGN(const Grant grant, control.wait_grant(step, milliseconds(60000)));
    if (grant.stop_after >= 0 && step > grant.stop_after) break;
    control.publish_progress(step, "forward text unit 0", static_cast<int>(control.assignment().group_slots.size()) - 1,
                             slot);
    fail_as_told(script, control, step);
    TROUPE_RETURN_IF_ERROR(meet(control, step));
    std::this_thread::sleep_for(milliseconds(script.step_ms));
    const std::string metrics = slot == 0 ? "{\"step\": " + std::to_string(step) +
                                                ", \"loss\": " + std::to_string(1.0 / static_cast<double>(step)) +
                                                ", \"tokens_per_s\": 100}"
                                          : "";
    control.report_step(step, metrics,
                        "{\"peak_memory_mib\": " + std::to_string(slot + 1) + ", \"activation_peak_mib\": {\"fake/" +
                            std::to_string(slot) + "\": 7}}");
    control.report_prepared(step + 3, {});
    if (grant.save_at == step && slot == 0) {
      TROUPE_RETURN_IF_ERROR(save(control.assignment().run_folder, step % 10));
    }
  }
  return control.report_finished(slot == 0 ? "{\"fake\": true}" : "");
}

int index_verb(int argc, char** argv) {
  std::string job, out;
  for (int i = 2; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--job") == 0) job = argv[i + 1];
    if (std::strcmp(argv[i], "--out") == 0) out = argv[i + 1];
  }
  std::ifstream refusal(job.substr(0, job.rfind('/')) + "/../refuse_index.txt");
  if (refusal) {
    std::fprintf(stderr, "data.jsonl:3: record 'r3': image missing.png does not exist\n");
    return 2;
  }
  std::printf("progress 1 10 20 3\nprogress 2 20 20 0\nwarning a word\n{\"samples\": 2}\n");
  std::ofstream(out) << "index";
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "index") == 0) return index_verb(argc, argv);
  if (argc > 1 && std::strcmp(argv[1], "check") == 0) {
    std::printf("checking as %d\n", static_cast<int>(::getpid()));
    std::fflush(stdout);
    for (;;) ::pause();  // until it is killed
  }
  auto control = connect_host_control(argc, argv);
  if (!control) {
    std::fprintf(stderr, "%s\n", control.error().to_string().c_str());
    return 1;
  }
  std::printf("fake host of slot %d, OMP_NUM_THREADS=%s\n", (*control)->assignment().self.value,
              std::getenv("OMP_NUM_THREADS"));
  std::fflush(stdout);
  const Status status = train(**control, read_script((*control)->assignment().run_folder));
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.error().to_string().c_str());
  (*control)->report_error(status.error());
  return 1;
}
