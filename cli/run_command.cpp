#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <future>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/checkpoint/checkpoint_folder.h"
#include "base/config/job_spec_parser.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/embedded.h"
#include "cli/evaluation_text.h"
#include "cli/exit_codes.h"
#include "cli/loop_program.h"
#include "cli/planning.h"
#include "cli/signals.h"
#include "driver/plan/instruction_order.h"
#include "worker/supervision/spawner.h"

namespace troupe::cli {
namespace fs = std::filesystem;
using driver::JobUpdate;
using std::chrono::milliseconds;
namespace {

constexpr milliseconds kSignalPoll{50}, kLastWords{10000};

/// What is known before anything is started.
struct Prepared {
  std::optional<Manifest> manifest;
  PlannedRun run;
  std::string actor;
};

Status check_loop(const RunOptions& options) {
  if (options.loop.empty() && !options.loop_arguments.empty())
    return invalid_argument("--loop-arg " + options.loop_arguments.front() + ": there is no --loop to hand it to");
  if (options.loop.empty()) return {};
  if (!options.cluster_file.empty())
    return make_error(ErrorCode::kUnimplemented,
                      "--loop " + options.loop +
                          ": calls to the hosts of a cluster manifest are not built yet; valid: "
                          "without --cluster, on this machine");
  return worker::check_program(fs::absolute(options.loop).string(), "program of --loop");
}

/// What happens at steps that the driver counts cannot happen in a loop of one's own.
Status check_loop_spec(const JobSpec& spec) {
  std::string key;
  if (spec.eval.every > 0) key = "eval.every";
  if (spec.checkpoint.every > 0) key = "checkpoint.every";
  if (spec.profile.on()) key = "profile.steps";
  if (!spec.debug.steps.empty()) key = "debug.dump.steps";
  if (key.empty()) return {};
  return spec.places.located(invalid_argument(
      "key '" + key + "': belongs to the recorded loop; with --loop valid: without it (the loop saves by calls)"));
}

/// What --model says of the spec, each as --set would.
std::vector<std::string> overrides_of_model(const RunOptions& options) {
  return {"model.path=" + fs::absolute(options.model).string(), "model.init=pretrained"};
}

/// The place of a complaint that `--model` is to be blamed for, as the person wrote it.
std::string as_asked(std::string place, const RunOptions& options) {
  for (const std::string& override : overrides_of_model(options)) {
    const std::string set = "--set " + override + ":";
    for (size_t at = 0; (at = place.find(set, at)) != std::string::npos;)
      if (at == 0 || place[at - 1] == '\n')
        place.replace(at, set.size(), "--model " + options.model + ":");
      else
        ++at;
  }
  return place;
}

Result<JobSpec> load_evaluated_spec(const RunOptions& options) {
  std::vector<std::string> overrides = options.overrides;
  for (const std::string& override : overrides_of_model(options)) overrides.push_back(override);
  Result<JobSpec> spec = load_job_spec(options.job_file, overrides);
  if (!spec) {
    Error error = spec.error();
    error.message = as_asked(std::move(error.message), options);
    return error;
  }
  std::map<std::string, std::string> places = spec->places.places();
  for (auto& [key, place] : places) {
    place = as_asked(place + ":", options);
    place.pop_back();
  }
  spec->places = KeyPlaces(std::move(places));
  return spec;
}

Result<Prepared> prepare(const RunOptions& options) {
  TROUPE_RETURN_IF_ERROR(check_loop(options));
  Prepared prepared;
  if (!options.cluster_file.empty()) {
    TROUPE_ASSIGN(prepared.manifest, load_manifest(options.cluster_file));
  }
  TROUPE_ASSIGN(JobSpec spec,
                options.evaluate ? load_evaluated_spec(options) : load_job_spec(options.job_file, options.overrides));
  if (!options.loop.empty()) TROUPE_RETURN_IF_ERROR(check_loop_spec(spec));
  if (options.evaluate && spec.eval.sources.empty() && spec.eval.split <= 0)
    return spec.places.located(
        invalid_argument("key 'eval': names no records to evaluate; valid: split: FRACTION or sources: [{path: FILE}], "
                         "in the file or by --set"));
  const Manifest* manifest = prepared.manifest ? &*prepared.manifest : nullptr;
  TROUPE_ASSIGN(prepared.run, plan_run(std::move(spec), manifest, !options.evaluate));
  prepared.actor = actor_program(options.actor);
  TROUPE_RETURN_IF_ERROR(worker::check_program(prepared.actor));
  // Before a device is opened: a run whose files could not be written would only take it in vain.
  const bool named = !options.resume.empty() && options.resume != "auto";
  TROUPE_RETURN_IF_ERROR(check_writable(!options.run_dir.empty() ? options.run_dir : named ? options.resume : "runs"));
  if (!manifest || manifest->launch == LaunchKind::kLocal) {
    if (const Status s = check_devices(prepared.actor, prepared.run.job.slots); !s.ok())
      return prepared.run.spec.places.located(s.error());
  }
  return prepared;
}

Status choose_folder(const RunOptions& options, const PlannedRun& prepared, driver::PlannedJob& job) {
  if (options.evaluate) {
    job.mode = JobMode::kEval;
    job.command_json = nlohmann::json{{"show", options.show}, {"shuffle_images", options.shuffle_images}}.dump();
    job.name += "-eval";
  }
  if (!options.loop.empty()) job.mode = JobMode::kCalls;
  TROUPE_ASSIGN(job.run_folder, choose_run_folder(job.name, options.run_dir, options.resume));
  TROUPE_RETURN_IF_ERROR(check_resume(prepared.spec, job.run_folder, options.resume));
  job.resume = options.resume;
  job.steps_before = steps_of_run(job.run_folder, options.resume);
  TROUPE_RETURN_IF_ERROR(check_writable(job.run_folder));
  if (options.evaluate) return {};
  // Checkpoints of the run that is continued go as newer ones come, and what its export left unfinished goes at once.
  uint64_t held = bytes_below(job.run_folder + "/checkpoints");
  for (const std::string& left :
       {export_parts_folder(job.run_folder + "/export"), export_partial_folder(job.run_folder + "/export")})
    held += bytes_below(left);
  const uint64_t free = free_disk_bytes(job.run_folder);
  return check_disk(prepared.plan, prepared.spec, job.run_folder, free > UINT64_MAX - held ? UINT64_MAX : free + held);
}

/// An evaluation that went well leaves nothing but its answer.
void remove_run_folder(const std::string& folder) {
  std::error_code error;
  fs::remove_all(folder, error);
  fs::remove(fs::path(folder).parent_path(), error);  // only when it is empty
}

/// Ctrl-C and a closed terminal stop at once; SIGTERM and SIGUSR1 save first, which with a loop of one's own (may be
/// null) is the loop's business.
void obey_signals(driver::Driver& driver, const std::string& job, std::future<JobUpdate>& ended, Console& console,
                  LoopProgram* loop) {
  while (ended.wait_for(milliseconds(0)) != std::future_status::ready) {
    if (loop) loop->look(driver, job);
    const int number = wait_signal(kSignalPoll);
    if (number == 0) continue;
    if (number == SIGINT || number == SIGHUP) {
      console.line("stopping (" + std::string(number == SIGINT ? "Ctrl-C" : "the terminal was closed") + ")");
      static_cast<void>(driver.cancel(job, true));
    } else if (loop) {
      console.line("the signal is passed on to the loop");
      loop->signal(number);
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
  if (Status chosen = choose_folder(options, prepared.run, job); !chosen.ok())
    return report(chosen.error(), options.json);
  const std::string run_folder = job.run_folder;
  Result<std::string> id = embedded.driver->submit(std::move(job));
  if (!id) return report(id.error(), options.json);
  if (!options.evaluate) console.line("job " + *id + ", run folder " + run_folder);
  Result<std::future<JobUpdate>> ended =
      end_of_job(*embedded.driver, *id, [&console](const JobUpdate& update) { console.show(update); });
  if (!ended) return report(ended.error(), options.json);
  if (prepared.manifest && prepared.manifest->launch == LaunchKind::kManual)
    console.line("waiting for workers: start `troupe worker --cluster " + options.cluster_file +
                 " --node NAME` on each node");
  started = start_workers(embedded, prepared.manifest, prepared.actor, run_folder);
  if (!started.ok()) {
    console.line(started.error().to_string());
    static_cast<void>(embedded.driver->cancel(*id));
  }
  std::unique_ptr<LoopProgram> loop;
  if (started.ok() && !options.loop.empty()) {
    std::vector<std::string> program = options.loop_arguments;
    program.insert(program.begin(), fs::absolute(options.loop).string());
    Result<std::unique_ptr<LoopProgram>> made = LoopProgram::start(program, embedded.server->address(), *id);
    if (made.ok())
      loop = std::move(*made);
    else
      static_cast<void>(embedded.driver->loop_ended(*id, driver::LoopEnd::kFailed, made.error()));
  }
  obey_signals(*embedded.driver, *id, *ended, console, loop.get());
  // A loop sees the end of its job at once: it has time for its last words.
  const std::optional<std::string> loop_fault = loop ? loop->leave(kLastWords) : std::nullopt;
  const JobUpdate end = ended->get();
  console.settle();
  if (options.evaluate && end.exit_code == kExitDone) {
    std::fputs(evaluation_text(end.result_json, options.json).c_str(), stdout);
    if (options.run_dir.empty()) remove_run_folder(run_folder);
    return kExitDone;
  }
  const int exit_code = say_end(console, end, options.json, prepared.run.spec.places);
  if (exit_code == kExitDone && loop_fault) {
    console.line(*loop_fault + " after it had finished the job");
    return kExitFailed;
  }
  return started.ok() || exit_code == kExitRefused ? exit_code : kExitFailed;
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
    plan["instructions"] = instruction_order(run->spec, run->buckets);
    std::printf("%s\n", plan.dump(2).c_str());
  } else {
    std::fputs((run->job.plan_text + render_instruction_order(run->spec, run->buckets)).c_str(), stdout);
  }
  return kExitDone;
}

}  // namespace troupe::cli
