#include "driver/supervision/blame.h"

#include <catch2/catch.hpp>
#include <csignal>

using namespace troupe;
using namespace troupe::driver;
using std::chrono::milliseconds;

namespace {

Blame::Time at(int64_t ms) { return Blame::Time(milliseconds(ms)); }
std::vector<HostPlace> three() {
  return {{"n0", 0, {{"vision", 0}, {"text", 0}}, "/run/logs/n0-0.log"},
          {"n0", 1, {{"vision", 1}}, "/run/logs/n0-1.log"},
          {"n1", 0, {{"text", 1}}, "/run/logs/n1-0.log"}};
}
HostExit killed(int signal) {
  HostExit exit;
  exit.pid = 4711;
  exit.signal = signal;
  exit.page_valid = true;
  exit.step = 12;
  exit.instruction = "forward vision unit 3";
  exit.group = "vision";
  exit.rank = 1;
  return exit;
}
HostExit exited(int code) {
  HostExit exit;
  exit.pid = 4712;
  exit.exit_code = code;
  return exit;
}

}  // namespace

TEST_CASE("A killed host outranks the errors of those who lost it, in any order of arrival") {
  const bool killed_first = GENERATE(true, false);
  Blame blame(three());
  if (killed_first) blame.host_exited(1, killed(SIGKILL), at(0));
  blame.host_error(0, unavailable("peer closed"), at(1));
  blame.host_exited(0, exited(1), at(2));
  blame.host_error(2, internal_error("gloo: connection reset"), at(2));
  blame.link_lost(2, at(3));
  if (!killed_first) blame.host_exited(1, killed(SIGKILL), at(4));
  const Verdict verdict = blame.verdict();
  CHECK(verdict.slot == 1);
  CHECK(verdict.kind == "host_killed");
  const std::string& text = verdict.error.message;
  for (const char* part : {"rank 1 of group vision", "node n0", "slot 1", "pid 4711", "SIGKILL", "step 12",
                           "forward vision unit 3", "/run/logs/n0-1.log"})
    CHECK(text.find(part) != std::string::npos);
}

TEST_CASE("A host that was ended because it stood still is named as such, not as killed") {
  Blame blame(three());
  blame.host_error(0, unavailable("peer closed"), at(0));
  HostExit exit = killed(SIGKILL);
  exit.stopped_ms = 5499;
  blame.host_exited(1, exit, at(1));
  const Verdict verdict = blame.verdict();
  CHECK(verdict.kind == "host_stopped");
  for (const char* part : {"rank 1 of group vision", "pid 4711", "stood still for 5 s", "SIGSTOP", "step 12"})
    CHECK(verdict.error.message.find(part) != std::string::npos);
  CHECK(verdict.error.message.find("memory") == std::string::npos);
}

TEST_CASE("A host that read bytes which its file no longer has is blamed with what its log says of it") {
  Blame blame(three());
  HostExit exit = killed(SIGBUS);
  blame.host_exited(1, exit, at(1));
  CHECK(blame.verdict().error.message.find("signal 7 (SIGBUS); if its log names a file") != std::string::npos);
  exit.said = "/data/a.jsonl became shorter";
  Blame named(three());
  named.host_exited(1, exit, at(1));
  CHECK(named.verdict().error.message.find("signal 7 (SIGBUS): /data/a.jsonl became shorter; it was in step 12") !=
        std::string::npos);
}

TEST_CASE("A rank's own error outranks errors that point at a peer") {
  Blame blame(three());
  blame.host_error(0, unavailable("peer vision/1 closed"), at(0));
  blame.host_error(2, make_error(ErrorCode::kDeadlineExceeded, "waiting for vision/1"), at(1));
  blame.host_error(1, internal_error("division by zero"), at(5));
  blame.host_exited(1, exited(1), at(6));
  const Verdict verdict = blame.verdict();
  CHECK(verdict.slot == 1);
  CHECK(verdict.kind == "host_error");
  CHECK(verdict.error.message.find("division by zero") != std::string::npos);
  CHECK(verdict.error.code == ErrorCode::kInternal);
}

TEST_CASE("A host that exits without a word is blamed with its status") {
  Blame blame(three());
  blame.host_error(0, unavailable("peer closed"), at(0));
  blame.host_exited(2, exited(3), at(1));
  const Verdict verdict = blame.verdict();
  CHECK(verdict.slot == 2);
  CHECK(verdict.kind == "host_exited");
  CHECK(verdict.error.message.find("status 3") != std::string::npos);
}

TEST_CASE("Among equals the earliest is the cause") {
  Blame blame(three());
  blame.host_error(2, internal_error("second"), at(9));
  blame.host_error(1, internal_error("first"), at(8));
  CHECK(blame.verdict().slot == 1);
}

TEST_CASE("Evidence is gathered for a second at most, and only a moment after a death") {
  Blame blame(three());
  CHECK_FALSE(blame.due());
  blame.host_error(0, unavailable("peer closed"), at(0));
  CHECK(blame.due() == at(1000));
  blame.host_exited(1, killed(SIGKILL), at(500));
  CHECK(blame.due() == at(650));
  CHECK_FALSE(blame.complete());
  blame.link_lost(2, at(510));
  CHECK(blame.complete());
}

TEST_CASE("A lost worker is named as the cause for its hosts") {
  Blame blame(three());
  blame.host_error(0, unavailable("peer closed"), at(0));
  blame.worker_lost("n1", at(3));
  const Verdict verdict = blame.verdict();
  CHECK(verdict.kind == "worker_lost");
  CHECK(verdict.slot == 2);
  CHECK(verdict.error.message.find("node n1") != std::string::npos);
}

TEST_CASE("When only peers were lost that is what is said") {
  Blame blame(three());
  blame.host_error(2, make_error(ErrorCode::kAborted, "the generation ended"), at(4));
  CHECK(blame.verdict().kind == "peer_lost");
  CHECK(blame.verdict().error.message.find(
            "no word from vision/0 and text/0 (node n0, slot 0), vision/1 (node n0, slot 1)") != std::string::npos);
  Blame silent(three());
  silent.link_lost(0, at(0));
  CHECK(silent.verdict().kind == "host_silent");
}
