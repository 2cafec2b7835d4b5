#include "worker/supervision/process_table.h"

#include <catch2/catch.hpp>
#include <csignal>

using namespace troupe::worker;
using std::chrono::milliseconds;

namespace {
ProcessTable::Time at(int64_t ms) { return ProcessTable::Time(milliseconds(ms)); }
}  // namespace

TEST_CASE("A process is asked with SIGTERM, then killed at its deadline, once each") {
  ProcessTable table;
  table.spawned("i", 42);
  const auto effects = table.terminate("i", milliseconds(100), at(0));
  REQUIRE(effects.size() == 1);
  CHECK(std::get<SendSignal>(effects[0]).signal == SIGTERM);
  CHECK(table.terminate("i", milliseconds(500), at(1)).empty());
  CHECK(table.next_deadline() == at(100));
  CHECK(table.tick(at(99)).empty());
  const auto kill = table.tick(at(100));
  REQUIRE(kill.size() == 1);
  CHECK(std::get<SendSignal>(kill[0]).signal == SIGKILL);
  CHECK(table.tick(at(200)).empty());
  CHECK_FALSE(table.empty());
}

TEST_CASE("A later request can shorten the grace but not lengthen it") {
  ProcessTable table;
  table.spawned("i", 42);
  table.terminate("i", milliseconds(1000), at(0));
  table.terminate("i", milliseconds(50), at(10));
  CHECK(table.next_deadline() == at(60));
}

TEST_CASE("A reaped process is reported and never signalled again") {
  ProcessTable table;
  table.spawned("i", 42);
  const auto effects = table.reaped(42, 3, 0);
  REQUIRE(effects.size() == 1);
  CHECK(std::get<ReportExit>(effects[0]).exit_code == 3);
  CHECK(table.empty());
  CHECK(table.terminate("i", milliseconds(0), at(0)).empty());
  CHECK(table.reaped(42, 0, 0).empty());
}

TEST_CASE("Terminating all reaches every process") {
  ProcessTable table;
  table.spawned("i", 1);
  table.spawned("j", 2);
  CHECK(table.terminate_all(milliseconds(10), at(0)).size() == 2);
  CHECK(table.tick(at(10)).size() == 2);
}

TEST_CASE("A process that stands still is killed at the limit, once, and its exit says so") {
  ProcessTable table;
  table.spawned("i", 42);
  table.spawned("j", 43);
  CHECK(table.pids() == std::vector<int>{42, 43});
  const milliseconds limit(2000);
  CHECK(table.looked_at(42, true, limit, at(0)).empty());
  CHECK(table.looked_at(42, true, limit, at(500)).empty());
  CHECK(table.looked_at(42, false, limit, at(1000)).empty());  // it went on: counted anew
  for (int64_t ms = 1500; ms < 3500; ms += 500) CHECK(table.looked_at(42, true, limit, at(ms)).empty());
  const auto effects = table.looked_at(42, true, limit, at(3500));
  REQUIRE(effects.size() == 1);
  CHECK(std::get<SendSignal>(effects[0]).signal == SIGKILL);
  CHECK(std::get<SendSignal>(effects[0]).pid == 42);
  CHECK(table.looked_at(42, true, limit, at(4000)).empty());
  CHECK(std::get<ReportExit>(table.reaped(42, 0, SIGKILL)[0]).stopped == milliseconds(2000));
  CHECK(std::get<ReportExit>(table.reaped(43, 0, SIGKILL)[0]).stopped == milliseconds(0));
  CHECK(table.looked_at(42, true, limit, at(9000)).empty());
}

TEST_CASE("Time in which the worker itself stood still is not held against its processes") {
  ProcessTable table;
  table.spawned("i", 42);
  CHECK(table.looked_at(42, true, milliseconds(2000), at(0)).empty());
  CHECK(table.looked_at(42, true, milliseconds(2000), at(3'600'000)).empty());
  CHECK(table.looked_at(42, true, milliseconds(2000), at(3'600'500)).empty());
  CHECK(table.looked_at(42, true, milliseconds(2000), at(3'601'000)).size() == 1);
}
