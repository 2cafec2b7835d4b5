#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <future>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/config/job_spec_parser.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/evaluation_text.h"
#include "cli/exit_codes.h"
#include "cli/janitor.h"
#include "cli/planning.h"
#include "cli/signals.h"
#include "driver/rpc/server.h"
#include "worker/rpc/worker.h"
#include "worker/supervision/spawner.h"
#include "driver/plan/instruction_order.h"

namespace troupe::cli {
namespace fs = std::filesystem;
using driver::JobUpdate;
using std::chrono::milliseconds;
namespace {

constexpr milliseconds kSignalPoll{50};

/// What `run` and `eval` start on this machine beside the driver: one worker in this process, or a worker process a node.
class Workers {
 public:
  virtual ~Workers() = default;
  /// The error that ended them, if one did.
  virtual std::optional<Error> failed() = 0;
};

class EmbeddedWorker final : public Workers {
 public:
  static Result<std::unique_ptr<Workers>> start(const std::string& address, const std::string& actor) {
    worker::WorkerOptions options;
    options.node = kLocalNode;
    options.driver_address = address;
    options.actor_program = actor;
    TROUPE_ASSIGN(auto created, worker::Worker::create(std::move(options)));
    return std::unique_ptr<Workers>(new EmbeddedWorker(std::move(created)));
  }
  ~EmbeddedWorker() override {
    worker_->request_stop();
    thread_.join();
  }
  std::optional<Error> failed() override { return std::nullopt; }

 private:
  explicit EmbeddedWorker(std::unique_ptr<worker::Worker> created)
      : worker_(std::move(created)), thread_([this] { static_cast<void>(worker_->run()); }) {}
  std::unique_ptr<worker::Worker> worker_;
  std::thread thread_;
};

class WorkerProcesses final : public Workers {
 public:
  static Result<std::unique_ptr<Workers>> start(const Manifest& manifest, const std::string& address, const std::string& actor,
                                                const std::string& log_folder) {
    auto workers = std::make_unique<WorkerProcesses>();
    TROUPE_ASSIGN(workers->spawner_, worker::Spawner::create([](int, int, int) {}));
    for (const ManifestNode& node : manifest.nodes) {
      worker::SpawnSpec spec;
      spec.arguments = {own_program(), "worker", "--driver", address, "--node", node.name, "--cluster", manifest.file, "--actor", actor};
      spec.output_path = log_folder + "/worker-" + node.name + ".log";
      TROUPE_ASSIGN(int pid, workers->spawner_->spawn(spec));
      workers->pids_.push_back(pid);
    }
    return std::unique_ptr<Workers>(std::move(workers));
  }
  ~WorkerProcesses() override = default;  // the spawner kills what did not leave by itself
  std::optional<Error> failed() override { return std::nullopt; }

 private:
  std::unique_ptr<worker::Spawner> spawner_;
  std::vector<int> pids_;
};

/// The parts of an embedded run, in the order in which they end (last first).
struct Embedded {
  std::unique_ptr<PrivateFolder> folder;
  std::unique_ptr<driver::Driver> driver;
  std::unique_ptr<driver::Server> server;
  std::unique_ptr<Workers> workers;
  ~Embedded() {
    if (driver) driver->close();
    workers.reset();
    if (server) server->shutdown();
    server.reset();  // its last callbacks still speak to the driver
    driver.reset();
  }
};

/// What is known before anything is started.
struct Prepared {
  std::optional<Manifest> manifest;
  PlannedRun run;
  std::string actor;
};

Result<Prepared> prepare(const RunOptions& options) {
  Prepared prepared;
  if (!options.cluster_file.empty()) {
    TROUPE_ASSIGN(prepared.manifest, load_manifest(options.cluster_file));
  }
  std::vector<std::string> overrides = options.overrides;
  if (options.evaluate) {
    overrides.push_back("model.path=" + fs::absolute(options.model).string());
    overrides.push_back("model.init=pretrained");
  }
  TROUPE_ASSIGN(JobSpec spec, load_job_spec(options.job_file, overrides));
  if (options.evaluate && spec.eval.sources.empty() && spec.eval.split <= 0)
    return invalid_argument(options.job_file + ": key 'eval': names no records to evaluate; valid: split: FRACTION or sources: [{path: FILE}], in the file or by --set");
  const Manifest* manifest = prepared.manifest ? &*prepared.manifest : nullptr;
  TROUPE_ASSIGN(prepared.run, plan_run(std::move(spec), manifest));
  prepared.actor = actor_program(options.actor);
  TROUPE_RETURN_IF_ERROR(worker::check_program(prepared.actor));
  // Before a device is opened: a run whose files could not be written would only take it in vain.
  const bool named = !options.resume.empty() && options.resume != "auto";
  TROUPE_RETURN_IF_ERROR(check_writable(!options.run_dir.empty() ? options.run_dir : named ? options.resume : "runs"));
  if (!manifest || manifest->launch == LaunchKind::kLocal) {
    std::vector<std::string> devices;
    for (const driver::PlannedSlot& slot : prepared.run.job.slots) devices.push_back(slot.device);
    TROUPE_RETURN_IF_ERROR(check_devices(prepared.actor, devices));
  }
  return prepared;
}

Status choose_folder(const RunOptions& options, const PlannedRun& prepared, driver::PlannedJob& job) {
  if (options.evaluate) {
    job.mode = "eval";
    job.command_json = nlohmann::json{{"show", options.show}, {"shuffle_images", options.shuffle_images}}.dump();
    job.name += "-eval";
  }
  TROUPE_ASSIGN(job.run_folder, choose_run_folder(job.name, options.run_dir, options.resume));
  TROUPE_RETURN_IF_ERROR(check_resume(prepared.spec, job.run_folder, options.resume));
  job.resume = options.resume;
  TROUPE_RETURN_IF_ERROR(check_writable(job.run_folder));
  if (options.evaluate) return {};
  return check_disk(prepared.plan, prepared.spec, job.run_folder, free_disk_bytes(job.run_folder));
}

Status start_driver(Embedded& embedded, const std::optional<Manifest>& manifest) {
  TROUPE_ASSIGN(embedded.folder, PrivateFolder::create());
  block_signals();
  driver::DriverOptions driver_options;
  driver::ServerOptions server_options;
  driver_options.workers = expected_workers(manifest ? &*manifest : nullptr);
  server_options.address = "unix:" + embedded.folder->path() + "/driver.sock";
  if (manifest) {
    driver_options.register_timeout = manifest->timeouts.register_worker;
    driver_options.lease = manifest->timeouts.lease;
    server_options.address = manifest->control_address;
    TROUPE_RETURN_IF_ERROR(driver::make_secrets(manifest->secrets_folder()));
    server_options.secrets = secrets_in(manifest->secrets_folder());
  }
  server_options.planner = [](const driver::SubmitOrder&) -> Result<driver::PlannedJob> {
    return make_error(ErrorCode::kFailedPrecondition, "this driver belongs to one `troupe run` and takes no other job");
  };
  TROUPE_ASSIGN(embedded.driver, driver::Driver::create(std::move(driver_options)));
  TROUPE_ASSIGN(embedded.server, driver::Server::create(std::move(server_options), *embedded.driver));
  embedded.driver->set_address(embedded.server->address());
  return {};
}

Status start_workers(Embedded& embedded, const Prepared& prepared, const std::string& run_folder) {
  const std::string& address = embedded.server->address();
  if (!prepared.manifest) {
    TROUPE_ASSIGN(embedded.workers, EmbeddedWorker::start(address, prepared.actor));
  } else if (prepared.manifest->launch == LaunchKind::kLocal) {
    TROUPE_ASSIGN(embedded.workers, WorkerProcesses::start(*prepared.manifest, address, prepared.actor, run_folder + "/logs"));
  }
  return {};
}

/// An evaluation that went well leaves nothing but its answer.
void remove_run_folder(const std::string& folder) {
  std::error_code error;
  fs::remove_all(folder, error);
  fs::remove(fs::path(folder).parent_path(), error);  // only when it is empty
}

/// Ctrl-C and a closed terminal stop at once; SIGTERM and SIGUSR1 save first.
void obey_signals(driver::Driver& driver, const std::string& job, std::future<JobUpdate>& ended, Console& console) {
  while (ended.wait_for(milliseconds(0)) != std::future_status::ready) {
    const int number = wait_signal(kSignalPoll);
    if (number == 0) continue;
    if (number == SIGINT || number == SIGHUP) {
      console.line("stopping (" + std::string(number == SIGINT ? "Ctrl-C" : "the terminal was closed") + ")");
      static_cast<void>(driver.cancel(job, true));
    } else {
      console.line("saving, then stopping");
      static_cast<void>(driver.save_and_stop(job));
    }
  }
}

int run_planned(const RunOptions& options, Prepared prepared) {
  Console console(options.json || options.evaluate);
  Embedded embedded;
  Status started = start_driver(embedded, prepared.manifest);
  if (!started.ok()) return report(started.error(), options.json);
  driver::PlannedJob job = prepared.run.job;
  if (Status chosen = choose_folder(options, prepared.run, job); !chosen.ok()) return report(chosen.error(), options.json);
  const std::string run_folder = job.run_folder;
  Result<std::string> id = embedded.driver->submit(std::move(job));
  if (!id) return report(id.error(), options.json);
  if (!options.evaluate) console.line("job " + *id + ", run folder " + run_folder);
  std::promise<JobUpdate> promise;
  std::future<JobUpdate> ended = promise.get_future();
  Result<int> watching = embedded.driver->watch(*id, [&](const JobUpdate& update) {
    console.show(update);
    if (update.kind == JobUpdate::Kind::kEnd) promise.set_value(update);
  });
  if (!watching) return report(watching.error(), options.json);
  if (prepared.manifest && prepared.manifest->launch == LaunchKind::kManual)
    console.line("waiting for workers: start `troupe worker --cluster " + options.cluster_file + " --node NAME` on each node");
  started = start_workers(embedded, prepared, run_folder);
  if (!started.ok()) {
    console.line(started.error().to_string());
    static_cast<void>(embedded.driver->cancel(*id));
  }
  obey_signals(*embedded.driver, *id, ended, console);
  const JobUpdate end = ended.get();
  console.settle();
  if (options.evaluate && end.exit_code == kExitDone) {
    std::fputs(evaluation_text(end.result_json, options.json).c_str(), stdout);
    if (options.run_dir.empty()) remove_run_folder(run_folder);
  } else {
    console.line(summary_text(end.result_json));
  }
  if (options.json && !options.evaluate) std::printf("%s\n", end.result_json.c_str());
  return started.ok() ? end.exit_code : kExitFailed;
}

}  // namespace

int run_command(const RunOptions& options) {
  Result<Prepared> prepared = prepare(options);
  if (!prepared) return report(prepared.error(), options.json);
  if (!options.evaluate) {
    std::fputs(prepared->run.job.plan_text.c_str(), options.json ? stderr : stdout);
    std::fflush(nullptr);
  }
  return run_planned(options, std::move(*prepared));
}

int plan_command(const RunOptions& options) {
  std::optional<Manifest> manifest;
  if (!options.cluster_file.empty()) {
    Result<Manifest> loaded = load_manifest(options.cluster_file);
    if (!loaded) return report(loaded.error(), options.json);
    manifest = std::move(*loaded);
  }
  Result<JobSpec> spec = load_job_spec(options.job_file, options.overrides);
  if (!spec) return report(spec.error(), options.json);
  Result<PlannedRun> run = plan_run(std::move(*spec), manifest ? &*manifest : nullptr);
  if (!run) return report(run.error(), options.json);
  if (options.json) {
    nlohmann::json plan = plan_json(run->plan, run->spec);
    plan["instructions"] = instruction_order(run->spec);
    std::printf("%s\n", plan.dump(2).c_str());
  } else {
    std::fputs((run->job.plan_text + render_instruction_order(run->spec)).c_str(), stdout);
  }
  return kExitDone;
}

}  // namespace troupe::cli
