#include <sys/wait.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/config/job_spec_parser.h"
#include "cli/child_program.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/janitor.h"
#include "cli/planning.h"
#include "worker/supervision/spawner.h"

namespace troupe::cli {
namespace {

Status write_file(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  return out ? Status() : internal_error("cannot write " + path);
}

/// Runs a program to its end with this one's streams: its exit code.
Result<int> run_to_end(const std::vector<std::string>& command) {
  TROUPE_ASSIGN(const pid_t pid, start_program(command));
  const int status = wait_for_program(pid);
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  for (int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1})
    if (WTERMSIG(status) == number) return kExitStopped;
  if (WTERMSIG(status) == SIGPIPE) return 128 + SIGPIPE;  // its reader has enough: what a shell says of such an end
  std::string how = command[0] + " was ended by signal " + std::to_string(WTERMSIG(status));
  if (WTERMSIG(status) == SIGBUS) how += "; if it named a file above, that one became shorter while it was read";
  return internal_error(how);
}

Result<int> check(const RunOptions& options) {
  std::optional<Manifest> manifest;
  if (!options.cluster_file.empty()) {
    TROUPE_ASSIGN(manifest, load_manifest(options.cluster_file));
  }
  TROUPE_ASSIGN(JobSpec spec, load_job_spec(options.job_file, options.overrides));
  TROUPE_ASSIGN(const PlannedRun run, plan_run(std::move(spec), manifest ? &*manifest : nullptr));
  const std::string actor = actor_program(options.actor);
  TROUPE_RETURN_IF_ERROR(worker::check_program(actor));
  TROUPE_ASSIGN(const auto folder, PrivateFolder::create());
  const std::string job = folder->path() + "/job.yaml", plan = folder->path() + "/plan.json";
  TROUPE_RETURN_IF_ERROR(write_file(job, run.job.job_yaml));
  nlohmann::json known = plan_json(run.plan, run.spec);
  known["places"] = run.spec.places.places();  // the job in the private folder is the spec as resolved
  TROUPE_RETURN_IF_ERROR(write_file(plan, known.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)));
  std::vector<std::string> command{actor,    "check", "--job",  job,
                                   "--plan", plan,    "--show", std::to_string(options.show)};
  if (!options.html.empty())
    command.insert(command.end(), {"--html", std::filesystem::absolute(options.html).string()});
  if (options.json) command.push_back("--json");
  return run_to_end(command);
}

}  // namespace

int check_command(const RunOptions& options) {
  const Result<int> code = check(options);
  return code.ok() ? *code : report(code.error(), options.json);
}

}  // namespace troupe::cli
