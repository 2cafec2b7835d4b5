#include "cli/calls_measurement.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <functional>

#include "cli/rpc/raw_echo.h"
#include "client/job.h"

namespace troupe::cli {
using nlohmann::ordered_json;
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kRounds = 8;  // in turns, so that a busy moment of the machine meets all
constexpr size_t kInFlight = 512;
constexpr std::chrono::seconds kConnect{120}, kEnd{30};

using Call = std::function<Status()>;

/// Microseconds of each call of one kind.
class Times {
 public:
  explicit Times(Call call) : call_(std::move(call)) {}
  Status run(int count) {
    for (int i = 0; i < count; ++i) {
      const auto begin = Clock::now();
      TROUPE_RETURN_IF_ERROR(call_());
      micros_.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
    }
    return {};
  }
  void forget() { micros_.clear(); }
  void sort() { std::sort(micros_.begin(), micros_.end()); }
  double at(double share) const {
    return std::round(micros_[static_cast<size_t>(share * static_cast<double>(micros_.size() - 1))] * 10) / 10;
  }

 private:
  Call call_;
  std::vector<double> micros_;
};

/// Three kinds of calls in turns; a first round warms up.
Result<ordered_json> beside(int calls, Call troupe, Call unary, Call stream) {
  std::vector<Times> kinds{Times(std::move(troupe)), Times(std::move(unary)), Times(std::move(stream))};
  for (int round = 0; round <= kRounds; ++round)
    for (Times& kind : kinds) {
      TROUPE_RETURN_IF_ERROR(kind.run(calls / kRounds));
      if (round == 0) kind.forget();
    }
  ordered_json result;
  const char* const names[] = {"troupe", "raw_unary", "raw_stream"};
  for (size_t i = 0; i < kinds.size(); ++i) {
    kinds[i].sort();
    result[names[i]] = {{"p50_us", kinds[i].at(0.5)}, {"p99_us", kinds[i].at(0.99)}};
  }
  const auto rounded = [](double value) { return std::round(value * 1000) / 1000; };
  result["of_unary"] = rounded(kinds[0].at(0.5) / kinds[1].at(0.5));
  result["of_stream"] = rounded(kinds[0].at(0.5) / kinds[2].at(0.5));
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

Result<ordered_json> measure(client::ActorGroup& group, const RawServers& servers, int calls) {
  TROUPE_ASSIGN(const auto unary, RawEchoClient::connect(RawEchoKind::kUnary, servers.unary));
  TROUPE_ASSIGN(const auto stream, RawEchoClient::connect(RawEchoKind::kStream, servers.stream));
  ordered_json result = {{"calls", calls}, {"hosts", group.size()}};
  const wire::EchoRequest echo;
  TROUPE_ASSIGN(result["execute"], beside(
                                       calls, [&] { return group.execute(Rank(0), echo).status(); },
                                       [&] { return unary->call(); }, [&] { return stream->call(); }));
  TROUPE_ASSIGN(result["execute_all"], beside(
                                           calls, [&] { return group.execute_all(echo).status(); },
                                           [&] { return unary->fan_out(); }, [&] { return stream->fan_out(); }));
  TROUPE_ASSIGN(result["in_flight_calls_per_s"], rate(group, 1, calls * 10));
  TROUPE_ASSIGN(result["in_flight_calls_per_s_4_hosts"], rate(group, group.size(), calls * 10));
  return result;
}

}  // namespace

Result<ordered_json> measure_calls(const std::string& driver, const std::string& job, const RawServers& servers,
                                   int calls) {
  client::ConnectOptions options;
  options.driver = driver;
  options.job = job;
  options.name = "troupe bench calls";
  options.timeout = kConnect;
  TROUPE_ASSIGN(const auto connected, client::Job::connect(options));
  auto result = measure(connected->decoder(), servers, calls);
  TROUPE_RETURN_IF_ERROR(connected->finish(0, kEnd).status());
  return result;
}

}  // namespace troupe::cli
