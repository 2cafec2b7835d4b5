#include "cli/bench_calls.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <nlohmann/json.hpp>

#include "cli/calls_measurement.h"
#include "cli/embedded.h"
#include "cli/exit_codes.h"
#include "cli/forked_process.h"
#include "cli/noop_job.h"
#include "cli/rpc/raw_echo.h"
#include "proto/rpc/event_queue.h"

namespace troupe::cli {
using nlohmann::ordered_json;
namespace {

constexpr int kHosts = 4;  // of the group that calls go to
constexpr std::chrono::seconds kStart{120}, kEnd{30};
constexpr std::chrono::hours kMeasurement{1};

struct Flags {
  int calls = 4000;
  bool json = false;
};

/// The processes of a bench that are not the job's: servers of plain gRPC, and the loop, which is told of the job.
struct Peers {
  std::vector<std::unique_ptr<ForkedProcess>> servers;
  std::unique_ptr<ForkedProcess> loop;
};

/// `request`: {"driver", "job"}, from the bench; the answer is the result or {"error"}.
int run_loop(int socket, const RawServers& servers, int calls) {
  const auto request = read_all(socket, kStart);
  const auto told = ordered_json::parse(request.ok() ? *request : "", nullptr, false);
  if (!told.is_object()) return 1;
  const auto result = measure_calls(told.value("driver", ""), told.value("job", ""), servers, calls);
  const ordered_json answer = result.ok() ? *result : ordered_json{{"error", result.error().to_string()}};
  return write_all(socket, answer.dump()).ok() ? 0 : 1;
}

Result<Peers> start_peers(const std::string& folder, int calls) {
  Peers peers;
  RawServers raw;
  for (const auto kind : {RawEchoKind::kUnary, RawEchoKind::kStream})
    for (int i = 0; i < kHosts; ++i) {
      auto& addresses = kind == RawEchoKind::kUnary ? raw.unary : raw.stream;
      const char* name = kind == RawEchoKind::kUnary ? "/unary-" : "/stream-";
      const std::string address = addresses.emplace_back("unix:" + folder + name + std::to_string(i) + ".sock");
      TROUPE_ASSIGN(peers.servers.emplace_back(), ForkedProcess::start([&](int) {
                      ::setenv(kPollForOneself[0], kPollForOneself[1], 1);  // as the hosts have it
                      return serve_raw_echo(kind, address);
                    }));
    }
  TROUPE_ASSIGN(peers.loop, ForkedProcess::start([&](int socket) { return run_loop(socket, raw, calls); }));
  return peers;
}

Result<ordered_json> bench(const std::string& actor, const Flags& flags) {
  TROUPE_ASSIGN(const auto folder, PrivateFolder::create());
  TROUPE_ASSIGN(const Peers peers, start_peers(folder->path(), flags.calls));
  Embedded embedded;
  TROUPE_RETURN_IF_ERROR(start_driver(embedded, std::nullopt));
  TROUPE_RETURN_IF_ERROR(start_workers(embedded, std::nullopt, actor, ""));
  TROUPE_ASSIGN(PlannedRun planned,
                plan_noop_job(JobMode::kNoopCalls, embedded.folder->path() + "/noop", 1, kHosts, 1));
  TROUPE_ASSIGN(const std::string id, embedded.driver->submit(std::move(planned.job)));
  TROUPE_ASSIGN(const std::future<driver::JobUpdate> ended, end_of_job(*embedded.driver, id));
  TROUPE_RETURN_IF_ERROR(peers.loop->tell(ordered_json{{"driver", embedded.server->address()}, {"job", id}}.dump()));
  TROUPE_ASSIGN(const std::string text, peers.loop->hear(kMeasurement));
  const auto result = ordered_json::parse(text, nullptr, false);
  if (!result.is_object()) return internal_error("the loop of the bench ended without a result");
  if (result.contains("error")) return internal_error(result["error"].get<std::string>());
  if (ended.wait_for(kEnd) != std::future_status::ready)
    return deadline_exceeded("the job of no-ops did not end within 30 s after its loop had finished it");
  return result;
}

void print(const ordered_json& result) {
  std::printf("%-22s %10s %10s %10s %10s %10s %10s %8s %9s\n", "us", "p50", "p99", "unary p50", "p99", "stream p50",
              "p99", "of unary", "of stream");
  for (const char* key : {"execute", "execute_all"}) {
    const auto& row = result[key];
    std::printf("%-22s", key == std::string("execute") ? "execute" : "execute_all, 4 hosts");
    for (const char* kind : {"troupe", "raw_unary", "raw_stream"})
      std::printf(" %10.1f %10.1f", row[kind]["p50_us"].get<double>(), row[kind]["p99_us"].get<double>());
    std::printf(" %8.3f %9.3f\n", row["of_unary"].get<double>(), row["of_stream"].get<double>());
  }
  std::printf("in flight, 1 host: %.0f calls/s; 4 hosts: %.0f calls/s\n", result["in_flight_calls_per_s"].get<double>(),
              result["in_flight_calls_per_s_4_hosts"].get<double>());
}

}  // namespace

int bench_calls_command(const std::string& actor, std::vector<std::string> arguments) {
  Flags flags;
  CLI::App app(
      "Times calls on actor hosts that only echo (one rank, four ranks at once, many in flight), in turns with plain "
      "gRPC (unary calls, and a stream) between the same kinds of processes over the same kind of socket.\nExample: "
      "troupe bench calls --json",
      "troupe bench calls");
  app.add_option("--calls", flags.calls, "calls of each kind; ten times as many in flight")
      ->check(CLI::Range(80, 10000000));
  app.add_flag("--json", flags.json, "one line of JSON");
  try {
    std::reverse(arguments.begin(), arguments.end());
    app.parse(arguments);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitDone : kExitRefused;
  }
  Result<ordered_json> result = bench(actor_program(actor), flags);
  if (!result) return report(result.error(), flags.json);
  if (flags.json)
    std::printf("%s\n", result->dump().c_str());
  else
    print(*result);
  return kExitDone;
}

}  // namespace troupe::cli
