#include <csignal>
#include <filesystem>
#include <future>
#include <thread>

#include "base/config/job_spec_parser.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/planning.h"
#include "cli/signals.h"
#include "driver/rpc/server.h"
#include "worker/rpc/worker.h"
#include "worker/supervision/spawner.h"

namespace troupe::cli {
namespace fs = std::filesystem;
using std::chrono::milliseconds;
namespace {

constexpr milliseconds kSignalPoll{100};
constexpr milliseconds kStopTime{14000};  // jobs end within it, or are left to die with their workers

Result<driver::PlannedJob> plan_order(const driver::SubmitOrder& order, const Manifest& manifest) {
  TROUPE_ASSIGN(JobSpec spec, parse_job_spec(order.job_yaml, "submitted job"));
  TROUPE_ASSIGN(PlannedRun run, plan_run(std::move(spec), &manifest));
  if (!fs::path(order.run_folder).is_absolute())
    return invalid_argument("run folder '" + order.run_folder + "' is no absolute path");
  TROUPE_ASSIGN(const JobMode mode, parse_job_mode(order.mode));
  if (mode != JobMode::kTrain && mode != JobMode::kEval)
    return invalid_argument("mode '" + order.mode + "'; valid: train, eval");
  TROUPE_RETURN_IF_ERROR(check_resume(run.spec, order.run_folder, order.resume));
  run.job.run_folder = order.run_folder;
  run.job.mode = mode;
  run.job.resume = order.resume;
  run.job.steps_before = steps_of_run(order.run_folder, order.resume);
  if (!order.command_json.empty()) run.job.command_json = order.command_json;
  return run.job;
}

int serve(const Manifest& manifest, const DriverOptionsGiven& given) {
  driver::DriverOptions options;
  options.workers = expected_workers(&manifest);
  options.register_timeout = manifest.timeouts.register_worker;
  options.lease = manifest.timeouts.lease;
  options.journal_path = given.journal.empty() ? manifest.secrets_folder() + "/journal.sqlite" : given.journal;
  if (Status made = driver::make_secrets(manifest.secrets_folder()); !made.ok()) return report(made.error());
  auto driver = driver::Driver::create(std::move(options));
  if (!driver) return report(driver.error());
  driver::ServerOptions server_options;
  server_options.address = manifest.control_address;
  server_options.secrets = secrets_in(manifest.secrets_folder());
  server_options.planner = [&manifest](const driver::SubmitOrder& order) { return plan_order(order, manifest); };
  auto server = driver::Server::create(std::move(server_options), **driver);
  if (!server) return report(server.error());
  (*driver)->set_address((*server)->address());
  std::printf("driver of cluster %s listens on %s, term %llu\n", manifest.name.c_str(), (*server)->address().c_str(),
              static_cast<unsigned long long>((*driver)->term().value));
  std::fflush(stdout);
  std::unique_ptr<worker::Spawner> spawner;
  if (manifest.launch == LaunchKind::kLocal) {
    auto created = worker::Spawner::create([](int, int, int) {});
    if (!created) return report(created.error());
    spawner = std::move(*created);
    for (const ManifestNode& node : manifest.nodes) {
      worker::SpawnSpec spec;
      spec.arguments = {own_program(), "worker",      "--driver", (*server)->address(),      "--node", node.name,
                        "--cluster",   manifest.file, "--actor",  actor_program(given.actor)};
      spec.output_path = manifest.secrets_folder() + "/worker-" + node.name + ".log";
      if (auto pid = spawner->spawn(spec); !pid) return report(pid.error());
    }
  }
  while (wait_signal(kSignalPoll) == 0) {
  }
  (*driver)->cancel_all();
  const auto deadline = std::chrono::steady_clock::now() + kStopTime;
  while (!(*driver)->idle() && std::chrono::steady_clock::now() < deadline) wait_signal(kSignalPoll);
  (*driver)->close();
  spawner.reset();
  (*server)->shutdown();
  server->reset();  // its last callbacks still speak to the driver
  return kExitDone;
}

}  // namespace

int driver_command(const DriverOptionsGiven& options) {
  Result<Manifest> manifest = load_manifest(options.cluster_file);
  if (!manifest) return report(manifest.error());
  block_signals();
  ignore_closed_pipes();
  return serve(*manifest, options);
}

int worker_command(const WorkerOptionsGiven& given) {
  worker::WorkerOptions options;
  options.node = given.node;
  options.driver_address = given.driver;
  options.actor_program = actor_program(given.actor);
  std::string secrets = given.secrets;
  if (!given.cluster_file.empty()) {
    Result<Manifest> manifest = load_manifest(given.cluster_file);
    if (!manifest) return report(manifest.error());
    if (!manifest->node(given.node)) {
      std::vector<std::string> names;
      for (const ManifestNode& node : manifest->nodes) names.push_back(node.name);
      return report(
          invalid_argument(manifest->file + ": there is no node '" + given.node + "'; valid: " + join_words(names)));
    }
    if (options.driver_address.empty()) options.driver_address = manifest->control_address;
    if (secrets.empty()) secrets = manifest->secrets_folder();
    options.environment = manifest->env;
  }
  if (options.driver_address.empty())
    return report(invalid_argument("worker: --driver ADDR or --cluster FILE is needed"));
  if (!secrets.empty()) options.secrets = secrets_in(fs::absolute(secrets).string());
  const std::string driver_address = options.driver_address;
  block_signals();
  ignore_closed_pipes();
  auto created = worker::Worker::create(std::move(options));
  if (!created) return report(created.error());
  std::printf("worker of node %s, driver %s\n", given.node.c_str(), driver_address.c_str());
  std::fflush(stdout);
  std::promise<Status> promise;
  auto ended = promise.get_future();
  std::thread thread([&] { promise.set_value((*created)->run()); });
  while (ended.wait_for(milliseconds(0)) != std::future_status::ready)
    if (wait_signal(kSignalPoll) != 0) (*created)->request_stop();
  thread.join();
  const Status status = ended.get();
  return status.ok() ? kExitDone : report(status.error());
}

}  // namespace troupe::cli
