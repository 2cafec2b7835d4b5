#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <optional>
#include <string_view>

#include "base/config/diagnostics.h"
#include "base/error_json.h"
#include "base/standard_output.h"
#include "base/version/version.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"

/// The `troupe` program: reads the command line and calls one function of cli/commands.h.
namespace troupe::cli {
namespace {

constexpr const char* kNotBuilt[][2] = {{"scale", "changing a group's mesh while a job runs"},
                                        {"checkpoint", "a checkpoint on request"},
                                        {"compare", "running one spec in several forms"},
                                        {"import", "importing a foreign checkpoint"},
                                        {"export", "exporting a checkpoint"}};

struct Given {
  RunOptions run;
  ClientOptions client;
  DriverOptionsGiven driver;
  WorkerOptionsGiven worker;
  ConvertOptionsGiven convert;
  std::string group, bench, trace_out;
  int rank = -1;
  bool wait = false, follow = false;
  int exit_code = 0;
};

void add_job_options(CLI::App& command, RunOptions& run) {
  command.add_option("JOB", run.job_file, "the job spec (YAML)")->required();
  command.add_option("--set", run.overrides, "override a key of the spec: a.b=value; may be repeated")
      ->allow_extra_args(false);
}

void add_client_options(CLI::App& command, ClientOptions& client) {
  command.add_option("--driver", client.driver, "the driver's address: HOST:PORT or unix:PATH (else TROUPE_DRIVER)");
  command.add_option("--cluster", client.cluster_file, "the cluster manifest, for address and secrets");
  command.add_option("--secrets", client.secrets,
                     "the folder with the cluster's certificate and token (else TROUPE_SECRETS)");
  command.add_flag("--json", client.json, "answer as JSON");
}

std::string named_folder(const std::string& given) { return given.empty() ? "a folder must be named" : ""; }
std::string named_file(const std::string& given) { return given.empty() ? "a file must be named" : ""; }

void add_running(CLI::App& app, Given& given) {
  CLI::App* run = app.add_subcommand("run", "train on this machine or a cluster and wait for the end");
  add_job_options(*run, given.run);
  run->add_option("--cluster", given.run.cluster_file, "the cluster manifest; without it this machine is the cluster");
  run->add_option("--run-dir", given.run.run_dir, "where the run's files go (default runs/NAME-ID)")
      ->check(named_folder);
  run->add_option("--resume", given.run.resume,
                  "a run folder to go on from, or 'auto': continue the run folder if it has a checkpoint, else start");
  run->add_option("--actor", given.run.actor, "the actor program (default: troupe-actor beside troupe)");
  run->add_option("--loop", given.run.loop,
                  "a program that drives the job by direct calls instead of the recorded loop");
  run->add_option("--loop-arg", given.run.loop_arguments, "an argument of that program; may be repeated")
      ->allow_extra_args(false);
  run->add_flag("--json", given.run.json, "print the result as JSON on standard output");
  run->footer(
      "Examples:\n  troupe run job.yaml\n  troupe run job.yaml --set training.steps=10 --run-dir runs/try\n"
      "  troupe run job.yaml --cluster cluster.yaml --resume auto\nCtrl-C stops at once (exit 130); SIGTERM saves "
      "first (exit 75).");
  run->callback([&given] { given.exit_code = run_command(given.run); });

  CLI::App* plan = app.add_subcommand("plan", "show groups, slots, parameters and memory without running");
  add_job_options(*plan, given.run);
  plan->add_option("--cluster", given.run.cluster_file, "the cluster manifest");
  plan->add_flag("--json", given.run.json, "answer as JSON");
  plan->footer("Examples:\n  troupe plan job.yaml\n  troupe plan job.yaml --cluster cluster.yaml --json");
  plan->callback([&given] { given.exit_code = plan_command(given.run); });

  CLI::App* eval = app.add_subcommand("eval", "evaluate a model folder on a job's evaluation data");
  add_job_options(*eval, given.run);
  eval->add_option("--model", given.run.model, "the Hugging Face folder to evaluate")->required();
  eval->add_option("--show", given.run.show, "print that many questions with expected and predicted answers");
  eval->add_flag("--shuffle-images", given.run.shuffle_images,
                 "exchange the images between records, to see whether they matter");
  eval->add_option("--cluster", given.run.cluster_file, "the cluster manifest");
  eval->add_option("--run-dir", given.run.run_dir, "keep the evaluation's files here")->check(named_folder);
  eval->add_option("--actor", given.run.actor, "the actor program (default: troupe-actor beside troupe)");
  eval->add_flag("--json", given.run.json, "answer as JSON");
  eval->footer(
      "Examples:\n  troupe eval job.yaml --model runs/try/export --show 5\n  troupe eval job.yaml --model DIR "
      "--shuffle-images --json");
  eval->callback([&given] {
    given.run.evaluate = true;
    given.exit_code = run_command(given.run);
  });
}

void add_check(CLI::App& app, Given& given) {
  CLI::App* check = app.add_subcommand(
      "check", "read every record of a job: what is wrong with which, what is in them, what training on them will be");
  add_job_options(*check, given.run);
  check->add_option("--show", given.run.show, "print that many samples with their supervised text marked");
  check->add_option("--html", given.run.html, "write one page with the report and samples with thumbnails");
  check->add_option("--cluster", given.run.cluster_file, "the cluster manifest");
  check->add_option("--actor", given.run.actor, "the actor program (default: troupe-actor beside troupe)");
  check->add_flag("--json", given.run.json, "answer as JSON");
  check->footer(
      "Examples:\n  troupe check job.yaml --show 3\n  troupe check job.yaml --html check.html\nExit code 2 when the "
      "data cannot be trained on as the job says.");
  check->callback([&given] { given.exit_code = check_command(given.run); });
}

void add_convert(CLI::App& app, Given& given) {
  ConvertOptionsGiven& options = given.convert;
  CLI::App* convert = app.add_subcommand(
      "convert", "make a job spec of a training configuration of LLaMA-Factory or ms-swift, and say what is dropped");
  convert->add_option("FILE", options.file, "its YAML or JSON, or a script with `swift sft --key value ...`")
      ->required();
  convert->add_option("-o,--output", options.output, "the job spec to write (default: standard output)")
      ->check(named_file);
  convert->add_option("--from", options.tool, "whose it is, when its keys do not say it: llama-factory, ms-swift");
  convert->add_option("--model", options.model, "the model folder, where the file has a hub's id")->check(named_folder);
  convert->add_option("--devices", options.devices, "how many devices it is trained on, where the file does not say it")
      ->check(CLI::Range(1, 4096));
  convert->add_option("--global-batch", options.global_batch, "samples of a step, instead of the file's")
      ->check(CLI::Range(1, 131072));
  convert
      ->add_option("--working-dir", options.working_dir, "the folder that the other tool runs in (default: this one)")
      ->check(named_folder);
  convert->add_flag("--full", options.full, "train all weights where the file asks for adapters");
  convert->add_flag("--force", options.force, "write over a file that is there");
  convert->add_flag("--json", options.json, "answer as JSON");
  convert->footer(
      "Examples:\n  troupe convert qwen2_5vl_full_sft.yaml --model Qwen2.5-VL-3B-Instruct --devices 8 -o job.yaml\n"
      "  troupe convert sft.sh -o job.yaml && troupe plan job.yaml\n"
      "  troupe convert lora.yaml --full --json\nRelative paths of FILE are taken from --working-dir. Exit code 2, and "
      "nothing written, when it asks for\nwhat would train something else.");
  convert->callback([&given] { given.exit_code = convert_command(given.convert); });
}

void add_cluster(CLI::App& app, Given& given) {
  CLI::App* driver = app.add_subcommand("driver", "serve a cluster: take jobs, place and supervise them");
  driver->add_option("--cluster", given.driver.cluster_file, "the cluster manifest")->required();
  driver->add_option("--journal", given.driver.journal, "the driver's journal (default NAME.secrets/journal.sqlite)");
  driver->add_option("--actor", given.driver.actor, "the actor program of workers that this driver starts");
  driver->footer("Example:\n  troupe driver --cluster cluster.yaml");
  driver->callback([&given] { given.exit_code = driver_command(given.driver); });

  CLI::App* worker = app.add_subcommand("worker", "serve a node: start and watch actor hosts");
  worker->add_option("--driver", given.worker.driver, "the driver's address (default: the manifest's)");
  worker->add_option("--node", given.worker.node, "this node's name in the manifest")->required();
  worker->add_option("--cluster", given.worker.cluster_file, "the cluster manifest");
  worker->add_option("--secrets", given.worker.secrets, "the folder with the cluster's certificate and token");
  worker->add_option("--actor", given.worker.actor, "the actor program (default: troupe-actor beside troupe)");
  worker->footer(
      "Examples:\n  troupe worker --cluster cluster.yaml --node a\n  troupe worker --driver 10.0.0.1:7717 --secrets "
      "cluster.secrets --node a");
  worker->callback([&given] { given.exit_code = worker_command(given.worker); });
}

void add_clients(CLI::App& app, Given& given) {
  CLI::App* submit = app.add_subcommand("submit", "hand a job to a running driver");
  add_job_options(*submit, given.run);
  add_client_options(*submit, given.client);
  submit->add_option("--run-dir", given.run.run_dir, "where the run's files go")->check(named_folder);
  submit->add_option("--resume", given.run.resume, "a run folder to go on from, or 'auto'");
  submit->add_flag("--wait", given.wait, "wait for the end; interrupting leaves the job running");
  submit->footer("Example:\n  troupe submit job.yaml --cluster cluster.yaml --wait");
  submit->callback([&given] { given.exit_code = submit_command(given.client, given.run, given.wait); });

  CLI::App* status = app.add_subcommand("status", "what a driver's jobs, or a run folder, are doing");
  status->add_option("TARGET", given.client.target, "a job's id or a run folder; without it all jobs");
  add_client_options(*status, given.client);
  status->footer("Examples:\n  troupe status --cluster cluster.yaml\n  troupe status runs/try --json");
  status->callback([&given] { given.exit_code = status_command(given.client); });

  CLI::App* logs = app.add_subcommand("logs", "what actor hosts wrote");
  logs->add_option("TARGET", given.client.target, "a job's id or a run folder")->required();
  add_client_options(*logs, given.client);
  logs->add_option("--group", given.group, "only hosts with ranks of this group");
  logs->add_option("--rank", given.rank, "only hosts with this rank");
  logs->add_flag("--follow", given.follow, "go on until the job ends");
  logs->footer(
      "Examples:\n  troupe logs runs/try --group text --rank 0\n  troupe logs 1f2e3d4c --cluster cluster.yaml "
      "--follow");
  logs->callback([&given] { given.exit_code = logs_command(given.client, given.group, given.rank, given.follow); });

  CLI::App* trace = app.add_subcommand("trace", "merge the traces of a run's hosts into one file for ui.perfetto.dev");
  trace->add_option("RUN", given.client.target, "a run folder")->required();
  trace->add_option("--out", given.trace_out, "the file to write (default: trace.json beside the hosts' files)");
  trace->add_flag("--json", given.client.json, "answer as JSON");
  trace->footer(
      "Example:\n  troupe run job.yaml --set 'profile.steps=[10,12]' --run-dir runs/try && troupe trace runs/try");
  trace->callback(
      [&given] { given.exit_code = trace_command(given.client.target, given.trace_out, given.client.json); });

  CLI::App* cancel = app.add_subcommand("cancel", "end a job at once");
  cancel->add_option("ID", given.client.target, "the job's id")->required();
  add_client_options(*cancel, given.client);
  cancel->footer("Example:\n  troupe cancel 1f2e3d4c --cluster cluster.yaml");
  cancel->callback([&given] { given.exit_code = cancel_command(given.client); });
}

void add_others(CLI::App& app, Given& given) {
  CLI::App* bench = app.add_subcommand("bench", "measure what NAME says; `troupe bench NAME --help` says more");
  bench->prefix_command();
  bench->add_option("--actor", given.run.actor, "the actor program (default: troupe-actor beside troupe)");
  bench->footer("Benches:\n" + benches_text() +
                "\n\nExamples:\n  troupe bench dispatch --hosts 8+8\n  troupe bench step --device cpu --model "
                "examples/shapes/model --random --json");
  bench->callback([&given, bench] { given.exit_code = bench_command(given.run.actor, bench->remaining()); });
  for (const auto& verb : kNotBuilt) {
    CLI::App* command = app.add_subcommand(verb[0], std::string(verb[1]) + " (not built yet)");
    command->prefix_command();
    command->footer(std::string("Example:\n  none: `troupe ") + verb[0] + "` is refused");
    command->callback([&given, command, verb] {
      const std::vector<std::string> rest = command->remaining();
      const bool json = std::find(rest.begin(), rest.end(), "--json") != rest.end();
      given.exit_code = report(
          make_error(ErrorCode::kUnimplemented, std::string(verb[0]) + ": " + verb[1] + " is not built yet"), json);
    });
  }
}

/// Why the first word is no verb.
std::optional<Error> unknown_verb(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return std::nullopt;
  const std::string given = argv[1];
  std::vector<std::string> built;
  for (const CLI::App* command : app.get_subcommands({})) {
    const std::string verb = command->get_name();
    if (verb == given) return std::nullopt;
    const bool refused =
        std::any_of(std::begin(kNotBuilt), std::end(kNotBuilt), [&](const auto& v) { return verb == v[0]; });
    if (!refused) built.push_back(verb);
  }
  const std::string near = nearest_word(given, built);
  return invalid_argument("unknown verb '" + given + "'" +
                          (near.empty() ? std::string() : "; did you mean '" + near + "'?") +
                          "; valid: " + join_words(built));
}

int run_main(int argc, char** argv) {
  CLI::App app("Troupe trains vision-language models whose parts need different parallelism.", "troupe");
  app.set_version_flag("--version", "troupe " + version_text());
  app.require_subcommand(1);
  app.fallthrough(false);
  app.footer(
      "Examples:\n  troupe run job.yaml\n  troupe plan job.yaml\n  troupe status runs/try\n"
      "Exit codes: 0 done, 1 failed, 2 refused, 3 no driver, 4 outcome unknown, 75 saved and resumable, 130 stopped.");
  Given given;
  add_running(app, given);
  add_check(app, given);
  add_convert(app, given);
  add_cluster(app, given);
  add_clients(app, given);
  add_others(app, given);
  for (CLI::App* command : app.get_subcommands({})) command->set_version_flag("--version", "troupe " + version_text());
  const bool json = std::find(argv, argv + argc, std::string_view("--json")) != argv + argc;  // before it can be parsed
  if (const auto unknown = unknown_verb(app, argc, argv)) return report(*unknown, json);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (app.exit(error) == 0) return kExitDone;
    if (json) std::printf("%s\n", error_json(invalid_argument(error.what()), kExitRefused).c_str());
    return kExitRefused;
  }
  return given.exit_code;
}

}  // namespace
}  // namespace troupe::cli

int main(int argc, char** argv) { return troupe::exit_code_after_output("troupe", troupe::cli::run_main(argc, argv)); }
