#include <sys/resource.h>

#include <chrono>
#include <cmath>
#include <condition_variable>
#include <filesystem>
#include <mutex>

#include "cli/bench_dispatch.h"
#include "cli/exit_codes.h"
#include "driver/run/driver.h"

namespace troupe::cli {
using nlohmann::ordered_json;
using std::chrono::milliseconds;
namespace {

constexpr char kNode[] = "simulated";
constexpr std::chrono::seconds kPatience{120};
/// As many steps as a host gathers into one report at 0.2 ms a step.
constexpr int64_t kBatch = 250;
constexpr char kMetrics[] =
    R"({"step": 0, "attempt": 1, "data_epoch": 0.5, "loss": 2.25, "supervised_tokens": 100, "tokens": 200, "samples": 4, "images": 4, "vision_rows": 64, "wire_rows": 64, "in_process_rows": 0, "grad_norm": 1.5, "lr": {"text": 1e-05, "vision": 1e-06}, "skipped": false, "skipped_total": 0, "step_ms": 0.2, "tokens_per_s": 100000.0, "tflops_per_device": 1.0})";
constexpr char kLocal[] = R"({"peak_memory_mib": 300.5, "activation_peak_mib": {"text/0": 10.5}})";

/// What the driver has told the simulated hosts, all of them at once. Thread-safe.
struct Told {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<driver::SpawnOrder> spawned;
  std::vector<int64_t> granted;  // [host]
  int assigned = 0;
};

class SimulatedWorker final : public driver::WorkerPeer {
 public:
  explicit SimulatedWorker(Told& told) : told_(told) {}
  void spawn(const driver::SpawnOrder& order) override {
    const std::lock_guard lock(told_.mutex);
    told_.spawned.push_back(order);
    told_.changed.notify_all();
  }
  void terminate(const std::string&, milliseconds) override {}
  void leave() override {}

 private:
  Told& told_;
};

class SimulatedHost final : public driver::HostPeer {
 public:
  SimulatedHost(Told& told, size_t slot) : told_(told), slot_(slot) {}
  void assign(const driver::AssignmentOrder&) override {
    const std::lock_guard lock(told_.mutex);
    ++told_.assigned;
    told_.changed.notify_all();
  }
  void grant(Generation, const driver::GrantState& grant) override {
    const std::lock_guard lock(told_.mutex);
    told_.granted[slot_] = grant.run_through;
    told_.changed.notify_all();
  }
  void stop(const std::string&) override {}
  void acknowledge(uint64_t) override {}
  void refuse(const Error&) override {}

 private:
  Told& told_;
  size_t slot_;
};

driver::PlannedJob job_of(int hosts, int64_t steps, const std::string& folder) {
  driver::PlannedJob job;
  job.name = "simulated";
  job.job_yaml = "name: simulated\n";
  job.run_folder = folder;
  job.group_names = {"text"};
  job.group_slots.resize(1);
  for (int h = 0; h < hosts; ++h) {
    job.slots.push_back({kNode, h, "cpu", 1, ""});
    job.group_slots[0].push_back(h);
  }
  job.total_steps = steps;
  job.log_every = steps;
  return job;
}

/// The answering thread's part: every host in turn does what it is granted.
Status run_steps(driver::Driver& driver, const std::string& job, Told& told, int64_t steps) {
  std::vector<int64_t> done(told.granted.size(), 0);
  for (size_t finished = 0; finished < done.size();) {
    std::unique_lock lock(told.mutex);
    const auto granted_more = [&] {
      for (size_t h = 0; h < done.size(); ++h)
        if (told.granted[h] > done[h]) return true;
      return false;
    };
    if (!told.changed.wait_for(lock, kPatience, granted_more))
      return deadline_exceeded("the driver granted no step for 120 s");
    const std::vector<int64_t> granted = told.granted;
    lock.unlock();
    for (size_t h = 0; h < done.size(); ++h) {
      if (granted[h] <= done[h]) continue;
      driver::HostProgress progress;
      const int64_t last = std::min({granted[h], done[h] + kBatch, steps});
      for (int64_t s = done[h] + 1; s <= last; ++s)
        progress.steps.push_back({s, h == 0 ? kMetrics : "", s == 1 ? kLocal : ""});
      done[h] = last;
      if (last == steps) ++finished;
      driver.host_report(job, [h, progress = std::move(progress)](driver::JobRunner& runner) {
        runner.host_progress(static_cast<int>(h), progress);
      });
    }
    // In step with the driver: reports that pile up would be no measure of it.
    TROUPE_ASSIGN(const std::string status, driver.status_json(job));
  }
  return {};
}

}  // namespace

Result<ordered_json> bench_simulated_hosts(int hosts, int64_t steps, const std::string& folder) {
  Told told;
  told.granted.resize(static_cast<size_t>(hosts));
  driver::DriverOptions options;
  options.workers = {{kNode, "nowhere"}};
  options.lease = std::chrono::minutes(10);
  TROUPE_ASSIGN(const auto driver, driver::Driver::create(std::move(options)));
  TROUPE_RETURN_IF_ERROR(driver->worker_registered(kNode, "one", 0, std::make_shared<SimulatedWorker>(told)));
  TROUPE_ASSIGN(const std::string job, driver->submit(job_of(hosts, steps, folder)));
  {
    std::unique_lock lock(told.mutex);
    if (!told.changed.wait_for(lock, kPatience, [&] { return told.spawned.size() == static_cast<size_t>(hosts); }))
      return deadline_exceeded("hosts were not asked for");
  }
  for (size_t h = 0; h < told.spawned.size(); ++h) {
    driver->process_spawned(told.spawned[h].incarnation, 1, std::nullopt);
    driver->host_hello(job, static_cast<int>(h), told.spawned[h].incarnation, std::make_shared<SimulatedHost>(told, h));
    driver->host_report(job, [h, steps](driver::JobRunner& runner) {
      runner.handle(driver::job_event::HostPrepared{static_cast<int>(h), steps});
      runner.handle(driver::job_event::HostReady{static_cast<int>(h)});
    });
  }
  const double all = processor_seconds(RUSAGE_SELF), own = processor_seconds(RUSAGE_THREAD);
  TROUPE_RETURN_IF_ERROR(run_steps(*driver, job, told, steps));
  const double spent = (processor_seconds(RUSAGE_SELF) - all) - (processor_seconds(RUSAGE_THREAD) - own);
  driver->close();
  return ordered_json{{"hosts", hosts},
                      {"driver_us_per_step", std::round(spent * 1e8 / static_cast<double>(steps)) / 100}};
}

}  // namespace troupe::cli
