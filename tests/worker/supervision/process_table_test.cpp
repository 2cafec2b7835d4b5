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
