#include "actors/bench/boundary_bench.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>

#include "actors/bench/bench_failure.h"
#include "actors/bench/bench_processes.h"
#include "actors/bench/boundary_ends.h"
#include "actors/bench/median.h"
#include "base/rendezvous/memory_kv_store.h"
#include "base/rendezvous/shared_kv_store.h"
#include "transport/channel/channel.h"

namespace troupe {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;

constexpr size_t kMiB = size_t{1} << 20;
constexpr int kCopies = 5;

/// A row of the table: a channel and the settings of raw UCX that it is measured beside.
struct Contender {
  std::string name;
  std::vector<BenchEndOptions> ends;  // the channel's first
};

/// `without_segment`: also what processes of a node fall back to when they cannot map each other's memory.
std::vector<Contender> contenders(bool without_segment) {
  const auto channel = [](const char* label, const char* transports, bool segment) {
    BenchEndOptions options;
    options.label = label;
    options.transports = transports;
    options.shared_segment = segment;
    return options;
  };
  const auto raw = [](const char* label, const char* transports, bool eager) {
    BenchEndOptions options;
    options.label = label;
    options.transports = transports;
    options.raw = true;
    options.eager = eager;
    return options;
  };
  std::vector<Contender> all = {
      {"shared memory",
       {channel("segment", "", true), raw("posix", "posix,cma", false), raw("sysv", "sysv,cma", false),
        raw("posix-eager", "posix", true)}},
      {"tcp", {channel("ucx-tcp", "tcp", false), raw("tcp", "tcp", false), raw("tcp-eager", "tcp", true)}}};
  if (without_segment)
    all.push_back(
        {"ucx's shared memory",
         {channel("ucx-posix", "posix", false), raw("posix2", "posix", false), raw("posix2-eager", "posix", true)}});
  return all;
}

struct Sample {
  double one_way_us = 0, gb_per_s = 0;
};

int messages_for(size_t bytes) {
  return static_cast<int>(std::clamp<size_t>(96 * kMiB / std::max<size_t>(bytes, 1), 3, 1500));
}

/// One measurement; both ends call it alike. End 0's clock counts.
Result<Sample> measure(BenchEnd& end, int self, size_t bytes) {
  Sample sample;
  const int rounds = std::clamp(messages_for(bytes) / 4, 2, 50);
  TROUPE_RETURN_IF_ERROR(end.expect(bytes));
  auto start = Clock::now();
  for (int i = 0; i < rounds; ++i) {
    const bool last = i + 1 == rounds;
    if (self == 0) TROUPE_RETURN_IF_ERROR(end.send(bytes));
    TROUPE_RETURN_IF_ERROR(end.take(bytes));
    if (!last) TROUPE_RETURN_IF_ERROR(end.expect(bytes));
    if (self == 1) TROUPE_RETURN_IF_ERROR(end.send(bytes));
  }
  TROUPE_RETURN_IF_ERROR(end.flush());
  sample.one_way_us = std::chrono::duration<double, std::micro>(Clock::now() - start).count() / rounds / 2;
  const int count = messages_for(bytes);
  if (self == 1) {
    const int ahead = std::min(count, kBenchWindow);
    for (int i = 0; i < ahead; ++i) TROUPE_RETURN_IF_ERROR(end.expect(bytes));
    TROUPE_RETURN_IF_ERROR(end.send(8));  // ready
    for (int i = 0; i < count; ++i) {
      TROUPE_RETURN_IF_ERROR(end.take(bytes));
      if (i + ahead < count) TROUPE_RETURN_IF_ERROR(end.expect(bytes));
    }
    TROUPE_RETURN_IF_ERROR(end.send(8));  // done
    TROUPE_RETURN_IF_ERROR(end.flush());
    return sample;
  }
  TROUPE_RETURN_IF_ERROR(end.expect(8));
  TROUPE_RETURN_IF_ERROR(end.take(8));
  TROUPE_RETURN_IF_ERROR(end.expect(8));
  start = Clock::now();
  for (int i = 0; i < count; ++i) TROUPE_RETURN_IF_ERROR(end.send(bytes));
  TROUPE_RETURN_IF_ERROR(end.take(8));
  sample.gb_per_s =
      static_cast<double>(bytes) * count / std::chrono::duration<double>(Clock::now() - start).count() / 1e9;
  TROUPE_RETURN_IF_ERROR(end.flush());
  return sample;
}

double memcpy_gb_per_s(size_t bytes) {
  std::vector<std::byte> from(bytes, std::byte{1}), to(bytes, std::byte{2});
  double best = 0;
  for (int repeat = 0; repeat < kCopies; ++repeat) {
    const int count = std::min(messages_for(bytes), 50);
    const auto start = Clock::now();
    for (int i = 0; i < count; ++i) {
      std::memcpy(to.data(), from.data(), bytes);
      asm volatile("" : : "r"(to.data()) : "memory");
    }
    best = std::max(
        best, static_cast<double>(bytes) * count / std::chrono::duration<double>(Clock::now() - start).count() / 1e9);
  }
  return best;
}

/// A channel and a raw setting at one size.
struct Pair {
  Sample channel, raw;         // the best of each
  std::vector<double> of_raw;  // [repeat]
};

Result<Pair> measure_pair(BenchEnd& channel, BenchEnd& raw, int self, size_t bytes) {
  Pair pair;
  const auto better = [](Sample& best, const Sample& sample) {
    best.gb_per_s = std::max(best.gb_per_s, sample.gb_per_s);
    best.one_way_us = best.one_way_us == 0 ? sample.one_way_us : std::min(best.one_way_us, sample.one_way_us);
  };
  const int repeats = bytes <= kMiB ? 75 : bytes <= 16 * kMiB ? 25 : 7;  // odd: a median is one of them
  for (int repeat = 0; repeat < repeats; ++repeat) {
    Sample samples[2];  // channel, raw
    for (const int which : {repeat % 2, 1 - repeat % 2}) {
      TROUPE_ASSIGN(samples[which], measure(which == 0 ? channel : raw, self, bytes));
    }
    better(pair.channel, samples[0]);
    better(pair.raw, samples[1]);
    pair.of_raw.push_back(samples[0].gb_per_s / samples[1].gb_per_s);
  }
  return pair;
}

/// A machine's speed changes inside of a run: a channel is compared with what ran right beside it, by the median of
/// such pairs, and of the raw settings the one counts that it looks worst beside.
Result<json> measure_size(const Contender& contender, const std::vector<std::unique_ptr<BenchEnd>>& ends, int self,
                          size_t bytes) {
  json row = {{"channel", contender.name}, {"bytes", bytes}};
  double of_raw = 0;
  for (size_t i = 1; i < ends.size(); ++i) {
    TROUPE_ASSIGN(const Pair pair, measure_pair(*ends[0], *ends[i], self, bytes));
    const double beside = median(pair.of_raw);
    if (i > 1 && beside >= of_raw) continue;
    of_raw = beside;
    row["raw_setting"] = contender.ends[i].transports + (contender.ends[i].eager ? ", eager" : "");
    row["one_way_us"] = pair.channel.one_way_us;
    row["gb_per_s"] = pair.channel.gb_per_s;
    row["raw_one_way_us"] = pair.raw.one_way_us;
    row["raw_gb_per_s"] = pair.raw.gb_per_s;
  }
  row["of_raw"] = of_raw;
  return row;
}

using OnRow = std::function<void(const json& row)>;

/// Both processes run this; the rows, each told as it is done, are of use in end 0 only.
Status run_end(int self, std::vector<Contender> contenders, const std::vector<size_t>& sizes, KvStore& store,
               const OnRow& on_row) {
  for (Contender& contender : contenders) {
    std::vector<std::unique_ptr<BenchEnd>> ends;
    for (BenchEndOptions& options : contender.ends) {
      options.self = self;
      options.most_bytes = sizes.back();
      TROUPE_ASSIGN(auto end, create_bench_end(options, store));
      ends.push_back(std::move(end));
    }
    for (const size_t bytes : sizes) {
      TROUPE_ASSIGN(json row, measure_size(contender, ends, self, bytes));
      if (self == 0) row["memcpy_gb_per_s"] = memcpy_gb_per_s(bytes);
      if (on_row) on_row(row);
    }
    // Nobody leaves while the other may still read.
    const std::string left = contender.ends[0].label + "/left/";
    TROUPE_RETURN_IF_ERROR(store.set(left + std::to_string(self), "1"));
    TROUPE_RETURN_IF_ERROR(store.get(left + std::to_string(1 - self), std::chrono::seconds(20)).status());
  }
  return {};
}

json in_process_row() {
  const auto channel = create_in_process_channel();
  MemoryKvStore store;
  constexpr int kCount = 20000;
  const auto memory = std::make_shared<std::vector<std::byte>>(kMiB);
  const MessageHeader header{1, static_cast<int64_t>(kMiB), 0, 0};
  if (!channel->connect({SlotId(0)}, store, std::chrono::seconds(1)).ok()) return {};
  const auto start = Clock::now();
  for (int i = 0; i < kCount; ++i) {
    MessageTag tag;
    tag.step = i;
    (void)channel->send(SlotId(0), tag, header, {memory->data(), kMiB, memory, nullptr});
    (void)channel->receive(SlotId(0), tag, header, std::chrono::seconds(1));
  }
  const double us = std::chrono::duration<double, std::micro>(Clock::now() - start).count() / kCount;
  return {{"bytes", kMiB}, {"hand_over_us", us}, {"bytes_copied", channel->counters().bytes_copied}};
}

Result<json> layout_rows() {
  json rows = json::array();
  for (const auto& [producers, consumers] : {std::pair(1, 1), {4, 2}, {3, 5}, {8, 1}, {1, 8}}) {
    TROUPE_ASSIGN(const LayoutPairBytes bytes, measure_layout_pair(producers, consumers));
    rows.push_back({{"producers", producers},
                    {"consumers", consumers},
                    {"tensor_bytes", bytes.tensor_bytes},
                    {"wire_bytes", bytes.wire_bytes},
                    {"ratio", static_cast<double>(bytes.wire_bytes) / static_cast<double>(bytes.tensor_bytes)},
                    {"largest_rank_ratio", bytes.largest_rank_ratio}});
  }
  return rows;
}

/// Each end is a process of its own, so that this one can end both whatever they wait for.
Result<json> measure_all(size_t most_bytes, bool without_segment, const OnRow& on_row) {
  std::vector<size_t> sizes;
  for (size_t bytes = 8; bytes <= most_bytes; bytes *= bytes < (64 << 10) ? 8 : 4) {
    if (bytes == (32 << 10)) bytes = 64 << 10;
    sizes.push_back(bytes);
  }
  SharedKvStore store;
  const auto first = [&](const OnLine& say) -> Status {
    const auto say_row = [&](const json& row) { say(json{{"row", row}}.dump()); };
    TROUPE_RETURN_IF_ERROR(run_end(0, contenders(without_segment), sizes, store, say_row));
    TROUPE_ASSIGN(const json layouts, layout_rows());
    say(json{{"in_process", in_process_row()}, {"layouts", layouts}}.dump());
    return {};
  };
  const auto second = [&](const OnLine&) { return run_end(1, contenders(without_segment), sizes, store, nullptr); };
  json result = {{"rows", json::array()}};
  const auto heard = [&](const std::string& line) {
    const json told = json::parse(line);
    if (!told.contains("row")) return result.update(told);
    if (on_row) on_row(told["row"]);
    result["rows"].push_back(told["row"]);
  };
  TROUPE_RETURN_IF_ERROR(run_processes({first, second}, heard));
  return result;
}

void print_heading() {
  std::printf("%-20s %10s %11s %11s %8s %8s %7s %7s  %s\n", "channel", "bytes", "one way us", "raw us", "GB/s", "raw",
              "of raw", "memcpy", "raw UCX setting");
  std::fflush(stdout);
}

void print_row(const json& row) {
  std::printf("%-20s %10zu %11.2f %11.2f %8.3f %8.3f %7.2f %7.2f  %s\n", row["channel"].get<std::string>().c_str(),
              row["bytes"].get<size_t>(), row["one_way_us"].get<double>(), row["raw_one_way_us"].get<double>(),
              row["gb_per_s"].get<double>(), row["raw_gb_per_s"].get<double>(), row["of_raw"].get<double>(),
              row["memcpy_gb_per_s"].get<double>(), row["raw_setting"].get<std::string>().c_str());
  std::fflush(stdout);
}

void print_rest(const json& result) {
  const json& local = result["in_process"];
  std::printf("in-process: %zu bytes handed over in %.2f us, %zu bytes copied\n", local["bytes"].get<size_t>(),
              local["hand_over_us"].get<double>(), local["bytes_copied"].get<size_t>());
  for (const json& row : result["layouts"]) {
    std::printf("layout %d -> %d: %zu bytes on the wire for %zu of the tensor, %.3fx; largest rank %.3fx\n",
                row["producers"].get<int>(), row["consumers"].get<int>(), row["wire_bytes"].get<size_t>(),
                row["tensor_bytes"].get<size_t>(), row["ratio"].get<double>(), row["largest_rank_ratio"].get<double>());
  }
}

}  // namespace

int boundary_bench_command(int argc, char** argv) {
  size_t most_mib = 256;
  bool as_json = false, without_segment = false;
  CLI::App app(
      "Times boundary channels between two processes of this machine beside raw UCX tag sends and memcpy, and counts\n"
      "the bytes that layout pairs put on the wire. Example: troupe bench boundary --max-size 64 --json",
      "troupe bench boundary");
  app.add_option("--max-size", most_mib, "largest message, MiB")->check(CLI::Range(1, 1024));
  app.add_flag("--without-segment", without_segment,
               "also UCX's own shared memory, which is used where processes cannot map each other's");
  app.add_flag("--json", as_json, "one line of JSON");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  if (!as_json) print_heading();
  const auto result = measure_all(most_mib * kMiB, without_segment, as_json ? OnRow() : print_row);
  if (!result.ok()) return bench_failure("boundary", result.error(), as_json);
  if (as_json) {
    std::printf("%s\n", result->dump().c_str());
  } else {
    print_rest(*result);
  }
  return 0;
}

}  // namespace troupe
