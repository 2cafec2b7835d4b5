#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <future>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "base/config/job_spec_parser.h"
#include "base/error_json.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/exit_codes.h"
#include "cli/log_lines.h"
#include "cli/planning.h"
#include "cli/rpc/driver_client.h"
#include "cli/signals.h"
#include "driver/run/folder_status.h"
#include "driver/run/log_filter.h"

namespace troupe::cli {
namespace fs = std::filesystem;
using nlohmann::json;
using std::chrono::milliseconds;
namespace {

constexpr milliseconds kSignalPoll{100};

std::string file_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

bool is_run_folder(const std::string& target) {
  std::error_code error;
  return !target.empty() && fs::is_directory(target, error);
}

/// --driver, else the manifest's control address, else TROUPE_DRIVER; secrets from --secrets, the manifest, or
/// TROUPE_SECRETS.
Result<std::unique_ptr<DriverClient>> connect(const ClientOptions& options) {
  const Environment environment = process_environment();
  auto variable = [&](const char* name) {
    const auto at = environment.find(name);
    return at == environment.end() ? std::string() : at->second;
  };
  std::string address = options.driver, secrets = options.secrets;
  if (!options.cluster_file.empty()) {
    TROUPE_ASSIGN(const Manifest manifest, load_manifest(options.cluster_file));
    if (address.empty()) address = manifest.control_address;
    if (secrets.empty()) secrets = manifest.secrets_folder();
  }
  if (address.empty()) address = variable("TROUPE_DRIVER");
  if (secrets.empty()) secrets = variable("TROUPE_SECRETS");
  if (address.empty())
    return unavailable("no driver was named: --driver ADDR, --cluster FILE or the variable TROUPE_DRIVER");
  Secrets files;
  if (!secrets.empty()) files = secrets_in(secrets);
  return DriverClient::connect(address, files);
}

/// Why nothing is known of a target that is no folder here: what became of asking a driver for a job of that id.
Error no_target(const std::string& target, Error error) {
  std::error_code ignored;
  if (!target.empty() && !fs::exists(target, ignored))
    error.message = "there is no folder '" + target + "', and " + error.message;
  return error;
}

/// The driver of a live run, as its folder names it; absent when nobody answers there.
std::unique_ptr<DriverClient> driver_of_run(const std::string& folder, const ClientOptions& options) {
  std::string address = file_text(folder + "/.driver");
  while (!address.empty() && address.back() == '\n') address.pop_back();
  if (address.empty()) return nullptr;
  std::error_code error;
  if (address.rfind("unix:", 0) == 0 && !fs::exists(address.substr(5), error)) return nullptr;
  ClientOptions there = options;
  there.driver = address;
  auto client = connect(there);
  return client ? std::move(*client) : nullptr;
}

/// A driver's status of the job whose files are in `folder`; null when it has none.
json job_in_folder(DriverClient& client, const std::string& folder) {
  const Result<std::string> all = client.status_json("");
  const json parsed = all ? json::parse(*all, nullptr, false) : json();
  if (!parsed.is_object()) return nullptr;
  const std::string path = absolute_folder(folder);
  for (const json& job : parsed.at("jobs"))
    if (absolute_folder(job.value("run_folder", "")) == path) return job;
  return nullptr;
}

std::string host_lines(const json& job) {
  std::string text;
  for (const auto& host : job.value("hosts", json::array()))
    text += "  " + host.value("group", "") + "/" + std::to_string(host.value("rank", 0)) + "  node " +
            host.value("node", "") + " slot " + std::to_string(host.value("slot", 0)) + "  pid " +
            std::to_string(host.value("pid", 0)) + "  " + host.value("phase", "") + "\n";
  return text;
}

std::string job_text(const json& job) {
  std::string text = job.value("job", "") + "  " + job.value("name", "") + "  " + job.value("phase", "");
  if (job.contains("result")) text += " (" + job["result"].value("outcome", "") + ")";
  if (job.contains("step")) text += "  step " + std::to_string(job["step"].get<int64_t>());
  if (const auto total = job.value("total_steps", int64_t{0}); total > 0) text += "/" + std::to_string(total);
  return text + "  " + job.value("run_folder", "") + "\n" + host_lines(job);
}

int print_status(const std::string& text, bool as_json) {
  const json status = json::parse(text, nullptr, false);
  if (as_json) {
    std::printf("%s\n", status.dump(2).c_str());
    return kExitDone;
  }
  std::string out;
  if (status.contains("jobs")) {
    for (const auto& worker : status["workers"])
      out += "node " + worker.value("node", "") + (worker.value("present", false) ? "  present" : "  missing") + "\n";
    for (const auto& job : status["jobs"]) out += job_text(job);
    if (status["jobs"].empty()) out += "no jobs\n";
  } else {
    out = job_text(status);
  }
  std::fputs(out.c_str(), stdout);
  return kExitDone;
}

int print_logs(const std::string& folder, const std::string& group, int rank, bool as_json) {
  std::error_code error;
  if (!fs::exists(folder + "/events.jsonl", error))
    return report(not_found(folder + " is no run folder: it has no events.jsonl"), as_json);
  std::istringstream lines(file_text(folder + "/events.jsonl"));
  json placement = json::array();
  for (std::string line; std::getline(lines, line);) {
    const json event = json::parse(line, nullptr, false);
    if (event.is_object() && event.value("kind", "") == "planned") placement = event.value("placement", json::array());
  }
  std::vector<std::string> files;
  for (const auto& actor : placement) {
    if (!group.empty() && actor.value("group", "") != group) continue;
    if (rank >= 0 && actor.value("rank", -1) != rank) continue;
    const std::string file =
        folder + "/logs/" + actor.value("node", "") + "-" + std::to_string(actor.value("slot", 0)) + ".log";
    if (std::find(files.begin(), files.end(), file) == files.end()) files.push_back(file);
  }
  if (files.empty())
    return report(
        not_found("run folder " + folder + " has no log" + (group.empty() ? "" : " of group '" + group + "'") +
                  (rank < 0 ? "" : " of rank " + std::to_string(rank))),
        as_json);
  for (const std::string& file : files) {
    driver::LogFilter filter(group, rank);
    const std::string text = log_text(filter.pass(file_text(file)) + filter.rest(), file, as_json);
    std::fwrite(text.data(), 1, text.size(), stdout);
  }
  return kExitDone;
}

/// Runs `work` on a thread; a signal stops the client. Returns work's status and whether a signal came.
std::pair<Status, bool> interruptible(DriverClient& client, const std::function<Status()>& work) {
  std::promise<Status> promise;
  auto ended = promise.get_future();
  std::thread thread([&] { promise.set_value(work()); });
  bool interrupted = false;
  while (ended.wait_for(milliseconds(0)) != std::future_status::ready) {
    if (wait_signal(kSignalPoll) == 0) continue;
    interrupted = true;
    client.stop();
  }
  thread.join();
  return {ended.get(), interrupted};
}

int wait_for_job(DriverClient& client, const SubmitAnswer& answer, const KeyPlaces& places, bool as_json) {
  Console console(as_json);
  driver::JobUpdate end;
  const auto [status, interrupted] = interruptible(client, [&] {
    return client.watch(answer.job_id, [&](const driver::JobUpdate& update) {
      console.show(update);
      if (update.kind == driver::JobUpdate::Kind::kEnd) end = update;
    });
  });
  console.settle();
  if (end.kind == driver::JobUpdate::Kind::kEnd) return say_end(console, end, as_json, places);
  if (interrupted) {
    console.line("job " + answer.job_id + " goes on; `troupe cancel " + answer.job_id + "` ends it");
    return kExitStopped;
  }
  std::fprintf(stderr, "troupe: %s\n", status.error().to_string().c_str());
  if (as_json) std::printf("%s\n", error_json(status.error(), kExitUnknown).c_str());
  return kExitUnknown;
}

}  // namespace

int submit_command(const ClientOptions& options, const RunOptions& run, bool wait) {
  Result<JobSpec> spec = load_job_spec(run.job_file, run.overrides);
  if (!spec) return report(spec.error(), options.json);
  Result<std::string> folder = choose_run_folder(spec->name, run.run_dir, run.resume);
  if (!folder) return report(folder.error(), options.json);
  block_signals();
  auto client = connect(options);
  if (!client) return report(client.error(), options.json);
  Result<SubmitAnswer> answer = (*client)->submit(job_spec_to_yaml(*spec), *folder, run.resume);
  if (!answer) return report(spec->places.located(answer.error()), options.json);
  if (options.json && !wait)
    std::printf("%s\n", json{{"job", answer->job_id}, {"run_folder", answer->run_folder}}.dump().c_str());
  else if (!options.json)
    std::printf("%sjob %s, run folder %s\n", answer->plan_text.c_str(), answer->job_id.c_str(),
                answer->run_folder.c_str());
  std::fflush(stdout);
  return wait ? wait_for_job(**client, *answer, spec->places, options.json) : kExitDone;
}

int status_command(const ClientOptions& options) {
  if (is_run_folder(options.target)) {
    if (auto client = driver_of_run(options.target, options)) {
      const json job = job_in_folder(*client, options.target);
      if (job.is_object()) return print_status(job.dump(), options.json);
    }
    Result<json> status = driver::folder_status(options.target);
    return status ? print_status(status->dump(), options.json) : report(status.error(), options.json);
  }
  auto client = connect(options);
  if (!client) return report(no_target(options.target, client.error()), options.json);
  Result<std::string> status = (*client)->status_json(options.target);
  return status ? print_status(*status, options.json) : report(no_target(options.target, status.error()), options.json);
}

int logs_command(const ClientOptions& options, const std::string& group, int rank, bool follow) {
  block_signals();
  std::unique_ptr<DriverClient> client;
  std::string job = options.target;
  if (is_run_folder(options.target)) {
    client = follow ? driver_of_run(options.target, options) : nullptr;
    const json live = client ? job_in_folder(*client, options.target) : json();
    if (!live.is_object()) return print_logs(options.target, group, rank, options.json);
    job = live.value("job", "");
  } else {
    auto connected = connect(options);
    if (!connected) return report(no_target(options.target, connected.error()), options.json);
    client = std::move(*connected);
  }
  const auto [status, interrupted] = interruptible(*client, [&] {
    return client->logs(job, group, rank, follow, [&](const std::string& text) {
      const std::string lines = log_text(text, "", options.json);
      std::fwrite(lines.data(), 1, lines.size(), stdout);
      std::fflush(stdout);
    });
  });
  if (interrupted) return kExitStopped;
  return status.ok() ? kExitDone : report(no_target(options.target, status.error()), options.json);
}

int cancel_command(const ClientOptions& options) {
  std::unique_ptr<DriverClient> client;
  std::string job = options.target;
  auto connected = connect(options);
  if (!connected) return report(connected.error(), options.json);
  client = std::move(*connected);
  const Status status = client->cancel(job);
  if (!status.ok()) return report(status.error(), options.json);
  if (options.json)
    std::printf("%s\n", json{{"job", job}, {"cancelled", true}}.dump().c_str());
  else
    std::printf("job %s is being stopped\n", job.c_str());
  return kExitDone;
}

}  // namespace troupe::cli
