#include "cli/embedded.h"

#include <thread>
#include <vector>

#include "cli/planning.h"
#include "cli/signals.h"
#include "worker/rpc/worker.h"
#include "worker/supervision/spawner.h"

namespace troupe::cli {
namespace {

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
  static Result<std::unique_ptr<Workers>> start(const Manifest& manifest, const std::string& address,
                                                const std::string& actor, const std::string& log_folder) {
    auto workers = std::make_unique<WorkerProcesses>();
    TROUPE_ASSIGN(workers->spawner_, worker::Spawner::create([](int, int, int) {}));
    for (const ManifestNode& node : manifest.nodes) {
      worker::SpawnSpec spec;
      spec.arguments = {own_program(), "worker",    "--driver",    address,   "--node",
                        node.name,     "--cluster", manifest.file, "--actor", actor};
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

/// Driver and worker share this process: silence of one says only that the machine is busy.
constexpr std::chrono::minutes kEmbeddedLease{2};

}  // namespace

Status start_driver(Embedded& embedded, const std::optional<Manifest>& manifest) {
  TROUPE_ASSIGN(embedded.folder, PrivateFolder::create());
  block_signals();
  ignore_closed_pipes();
  driver::DriverOptions driver_options;
  driver::ServerOptions server_options;
  driver_options.workers = expected_workers(manifest ? &*manifest : nullptr);
  server_options.address = "unix:" + embedded.folder->path() + "/driver.sock";
  if (!manifest) driver_options.lease = kEmbeddedLease;
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

Status start_workers(Embedded& embedded, const std::optional<Manifest>& manifest, const std::string& actor,
                     const std::string& run_folder) {
  const std::string& address = embedded.server->address();
  if (!manifest) {
    TROUPE_ASSIGN(embedded.workers, EmbeddedWorker::start(address, actor));
  } else if (manifest->launch == LaunchKind::kLocal) {
    TROUPE_ASSIGN(embedded.workers, WorkerProcesses::start(*manifest, address, actor, run_folder + "/logs"));
  }
  return {};
}

Result<std::future<driver::JobUpdate>> end_of_job(driver::Driver& driver, const std::string& job,
                                                  driver::Driver::Watcher each) {
  // Shared with the watcher, which may outlive who waits.
  const auto promise = std::make_shared<std::promise<driver::JobUpdate>>();
  TROUPE_RETURN_IF_ERROR(driver
                             .watch(job,
                                    [promise, each = std::move(each)](const driver::JobUpdate& update) {
                                      if (each) each(update);
                                      if (update.kind == driver::JobUpdate::Kind::kEnd) promise->set_value(update);
                                    })
                             .status());
  return promise->get_future();
}

}  // namespace troupe::cli
