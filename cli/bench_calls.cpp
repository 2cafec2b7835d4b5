#include "cli/bench_calls.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <deque>
#include <functional>
#include <future>
#include <nlohmann/json.hpp>

#include "cli/embedded.h"
#include "cli/exit_codes.h"
#include "cli/noop_job.h"
#include "cli/rpc/raw_echo.h"
#include "client/job.h"

namespace troupe::cli {
using nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;
namespace {

constexpr int kHosts = 4;   // of the group that calls go to
constexpr int kRounds = 8;  // in turns, so that a busy moment of the machine meets both
constexpr size_t kInFlight = 512;
constexpr std::chrono::seconds kEnd{30};

struct Flags {
  int calls = 4000;
  bool json = false;
};

/// Microseconds of each call of one kind.
class Times {
 public:
  Status run(int count, const std::function<Status()>& call) {
    for (int i = 0; i < count; ++i) {
      const auto begin = Clock::now();
      TROUPE_RETURN_IF_ERROR(call());
      micros_.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
    }
    return {};
  }
  void forget() { micros_.clear(); }
  ordered_json to_json() {
    std::sort(micros_.begin(), micros_.end());
    const auto at = [&](double share) {
      return std::round(micros_[static_cast<size_t>(share * static_cast<double>(micros_.size() - 1))] * 10) / 10;
    };
    return {{"p50_us", at(0.5)}, {"p99_us", at(0.99)}};
  }

 private:
  std::vector<double> micros_;
};

/// Two kinds of calls in turns; a first round warms up.
Result<ordered_json> beside(int calls, const std::function<Status()>& ours, const std::function<Status()>& raw) {
  Times our_times, raw_times;
  for (int round = 0; round <= kRounds; ++round) {
    TROUPE_RETURN_IF_ERROR(our_times.run(calls / kRounds, ours));
    TROUPE_RETURN_IF_ERROR(raw_times.run(calls / kRounds, raw));
    if (round > 0) continue;
    our_times.forget();
    raw_times.forget();
  }
  ordered_json result = {{"troupe", our_times.to_json()}, {"raw_grpc", raw_times.to_json()}};
  result["ratio"] =
      std::round(result["troupe"]["p50_us"].get<double>() / result["raw_grpc"]["p50_us"].get<double>() * 1000) / 1000;
  return result;
}

/// Calls a second with kInFlight on their way, to `ranks` hosts in turn.
Result<double> rate(client::ActorGroup& group, int ranks, int calls) {
  std::deque<client::Pending<wire::EchoReply>> pending;
  const auto begin = Clock::now();
  for (int i = 0; i < calls; ++i) {
    if (pending.size() == kInFlight) {
      TROUPE_RETURN_IF_ERROR(pending.front().wait().status());
      pending.pop_front();
    }
    pending.push_back(group.execute_async(Rank(i % ranks), wire::EchoRequest()));
  }
  for (auto& one : pending) TROUPE_RETURN_IF_ERROR(one.wait().status());
  return std::round(calls / std::chrono::duration<double>(Clock::now() - begin).count());
}

Result<ordered_json> measure(client::Job& job, RawEchoClient& raw, int calls) {
  client::ActorGroup& group = job.decoder();
  ordered_json result = {{"calls", calls}, {"hosts", group.size()}};
  TROUPE_ASSIGN(result["execute"], beside(
                                       calls, [&] { return group.execute(Rank(0), wire::EchoRequest()).status(); },
                                       [&] { return raw.call(); }));
  TROUPE_ASSIGN(result["execute_all"], beside(
                                           calls, [&] { return group.execute_all(wire::EchoRequest()).status(); },
                                           [&] { return raw.fan_out(); }));
  TROUPE_ASSIGN(result["in_flight_calls_per_s"], rate(group, 1, calls * 10));
  TROUPE_ASSIGN(result["in_flight_calls_per_s_4_hosts"], rate(group, kHosts, calls * 10));
  return result;
}

Result<ordered_json> bench(const std::string& actor, const Flags& flags) {
  TROUPE_ASSIGN(const auto folder, PrivateFolder::create());
  std::vector<std::string> addresses;
  std::vector<std::unique_ptr<RawEchoServer>> servers;
  for (int i = 0; i < kHosts; ++i) {
    addresses.push_back("unix:" + folder->path() + "/raw-" + std::to_string(i) + ".sock");
    TROUPE_ASSIGN(servers.emplace_back(), RawEchoServer::start(addresses.back()));
  }
  Embedded embedded;
  TROUPE_RETURN_IF_ERROR(start_driver(embedded, std::nullopt));
  TROUPE_RETURN_IF_ERROR(start_workers(embedded, std::nullopt, actor, ""));
  TROUPE_ASSIGN(PlannedRun planned, plan_noop_job("calls-noop", embedded.folder->path() + "/noop", 1, kHosts, 1));
  TROUPE_ASSIGN(const std::string id, embedded.driver->submit(std::move(planned.job)));
  std::promise<driver::JobUpdate> promise;
  std::future<driver::JobUpdate> ended = promise.get_future();
  TROUPE_RETURN_IF_ERROR(embedded.driver
                             ->watch(id,
                                     [&](const driver::JobUpdate& update) {
                                       if (update.kind == driver::JobUpdate::Kind::kEnd) promise.set_value(update);
                                     })
                             .status());
  client::ConnectOptions options;
  options.driver = embedded.server->address();
  options.job = id;
  options.name = "troupe bench calls";
  options.timeout = std::chrono::seconds(120);
  TROUPE_ASSIGN(const auto job, client::Job::connect(options));
  TROUPE_ASSIGN(const auto raw, RawEchoClient::connect(addresses));
  auto result = measure(*job, *raw, flags.calls);
  TROUPE_RETURN_IF_ERROR(job->finish(0, kEnd).status());
  if (ended.wait_for(kEnd) != std::future_status::ready)
    return deadline_exceeded("the job of no-ops did not end within 30 s after its loop had finished it");
  return result;
}

void print(const ordered_json& result) {
  std::printf("%-22s %12s %12s %12s %12s %8s\n", "", "p50 us", "p99 us", "raw p50 us", "raw p99 us", "ratio");
  for (const char* key : {"execute", "execute_all"}) {
    const auto& row = result[key];
    std::printf(
        "%-22s %12.1f %12.1f %12.1f %12.1f %8.3f\n", key == std::string("execute") ? "execute" : "execute_all, 4 hosts",
        row["troupe"]["p50_us"].get<double>(), row["troupe"]["p99_us"].get<double>(),
        row["raw_grpc"]["p50_us"].get<double>(), row["raw_grpc"]["p99_us"].get<double>(), row["ratio"].get<double>());
  }
  std::printf("in flight, 1 host: %.0f calls/s; 4 hosts: %.0f calls/s\n", result["in_flight_calls_per_s"].get<double>(),
              result["in_flight_calls_per_s_4_hosts"].get<double>());
}

}  // namespace

int bench_calls_command(const std::string& actor, std::vector<std::string> arguments) {
  Flags flags;
  CLI::App app(
      "Times calls on actor hosts that only echo (one rank, four ranks at once, many in flight), in turns with plain "
      "gRPC between the same kinds of processes over the same kind of socket.\nExample: troupe bench calls --json",
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
