#include "driver/supervision/job_life.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <random>

using namespace troupe;
using namespace troupe::driver;
using namespace troupe::driver::job_event;
using std::chrono::milliseconds;

namespace {

/// A job of two hosts and a clock that the test moves.
struct Stage {
  explicit Stage(bool index = false, int64_t first_step = 1, bool reports_steps = true) {
    JobLifeOptions options;
    options.places = {{"a", 0, {{"vision", 0}}, "a-0.log"}, {"b", 0, {{"text", 0}}, "b-0.log"}};
    options.needs_index = index;
    options.first_step = first_step;
    options.reports_steps = reports_steps;
    life.emplace(options, now);
  }
  std::vector<JobEffect> send(const JobEvent& event, int64_t ms = 1) {
    now += milliseconds(ms);
    last = life->step(event, now);
    for (const JobEffect& effect : last) {
      if (const auto* end = std::get_if<job_effect::End>(&effect)) {
        REQUIRE_FALSE(outcome);
        outcome = end->outcome;
      }
      if (const auto* grant = std::get_if<job_effect::PublishGrant>(&effect)) granted = grant->grant;
      terminated = terminated || std::holds_alternative<job_effect::Terminate>(effect);
      spawned = spawned || std::holds_alternative<job_effect::SpawnHosts>(effect);
    }
    return last;
  }
  template <typename Effect>
  bool has() const {
    return std::any_of(last.begin(), last.end(), [](const JobEffect& e) { return std::holds_alternative<Effect>(e); });
  }
  void to_loading() {
    send(WorkersReady{});
    send(HostSpawned{0, 100});
    send(HostSpawned{1, 101});
    send(HostHello{0});
    send(HostHello{1});
  }
  void to_running() {
    to_loading();
    send(HostPrepared{0, 10});
    send(HostPrepared{1, 10});
    send(HostReady{0});
    send(HostReady{1});
  }
  HostExit exit(int code, int signal = 0) {
    HostExit exit;
    exit.exit_code = code;
    exit.signal = signal;
    return exit;
  }
  JobLife::Time now{milliseconds(0)};
  std::optional<JobLife> life;
  std::vector<JobEffect> last;
  std::optional<Outcome> outcome;
  std::optional<GrantState> granted;
  bool terminated = false, spawned = false;
};

}  // namespace

TEST_CASE("A job goes from workers over loading and steps to its end") {
  Stage stage;
  stage.send(WorkersReady{});
  CHECK(stage.has<job_effect::SpawnHosts>());
  stage.send(HostHello{0});
  CHECK(stage.has<job_effect::AssignHost>());
  stage.send(HostSpawned{0, 1});
  stage.send(HostSpawned{1, 2});
  CHECK(stage.life->phase() == JobPhase::kLoading);
  stage.send(HostHello{1});
  stage.send(HostPrepared{0, 3});
  stage.send(HostPrepared{1, 3});
  CHECK_FALSE(stage.granted);
  stage.send(HostReady{0});
  stage.send(HostReady{1});
  REQUIRE(stage.granted);
  CHECK(stage.granted->run_through == 3);
  for (int step = 1; step <= 3; ++step)
    for (int slot : {0, 1}) stage.send(HostStep{slot, step});
  stage.send(HostFinished{0});
  stage.send(HostExited{0, stage.exit(0)});
  stage.send(HostFinished{1});
  CHECK_FALSE(stage.outcome);
  stage.send(HostExited{1, stage.exit(0)});
  REQUIRE(stage.outcome);
  CHECK(stage.outcome->kind == OutcomeKind::kDone);
  CHECK(stage.outcome->steps_done == 3);
  CHECK(stage.outcome->exit_code() == 0);
  CHECK_FALSE(stage.terminated);
}

TEST_CASE("An evaluation's one step is granted when all hosts are ready") {
  JobLifeOptions options;
  options.places = {{"a", 0, {{"text", 0}}, "a-0.log"}};
  options.prepared_when_ready = true;
  Stage stage;
  stage.life.emplace(options, stage.now);
  stage.send(WorkersReady{});
  stage.send(HostSpawned{0, 1});
  stage.send(HostHello{0});
  stage.send(HostReady{0});
  REQUIRE(stage.granted);
  CHECK(stage.granted->run_through == 1);
}

TEST_CASE("Hosts are started after the index and not at all when it refuses the data") {
  Stage stage(true);
  stage.send(WorkersReady{});
  CHECK(stage.has<job_effect::StartIndex>());
  CHECK_FALSE(stage.spawned);
  SECTION("done") {
    stage.send(IndexDone{});
    CHECK(stage.spawned);
  }
  SECTION("refused") {
    stage.send(IndexFailed{invalid_argument("line 3"), true});
    REQUIRE(stage.outcome);
    CHECK(stage.outcome->exit_code() == 2);
    CHECK_FALSE(stage.spawned);
  }
  SECTION("died") {
    stage.send(IndexFailed{internal_error("signal 9"), false});
    REQUIRE(stage.outcome);
    CHECK(stage.outcome->cause_kind == "index_failed");
    CHECK(stage.outcome->exit_code() == 1);
  }
}

TEST_CASE("A killed rank ends the job with that rank as the first cause, whoever complains first") {
  Stage stage;
  stage.to_running();
  stage.send(HostError{1, unavailable("peer closed")});
  CHECK(stage.life->phase() == JobPhase::kGathering);
  stage.send(HostExited{1, stage.exit(1)});
  stage.send(HostExited{0, stage.exit(0, SIGKILL)});
  REQUIRE(stage.outcome);
  CHECK(stage.outcome->cause_kind == "host_killed");
  CHECK(stage.outcome->culprit == 0);
  CHECK(stage.outcome->exit_code() == 1);
  CHECK(stage.terminated);
}

TEST_CASE("After a death the survivors are terminated within a second and the job ends when they are gone") {
  Stage stage;
  stage.to_running();
  stage.send(HostExited{0, stage.exit(3)});
  CHECK_FALSE(stage.terminated);
  stage.send(Tick{}, 1000);
  CHECK(stage.terminated);
  CHECK_FALSE(stage.outcome);
  stage.send(HostExited{1, stage.exit(0, SIGTERM)});
  REQUIRE(stage.outcome);
  CHECK(stage.outcome->cause_kind == "host_exited");
  CHECK(stage.outcome->culprit == 0);
}

TEST_CASE("A job ends even when a worker never reports its host's end") {
  Stage stage;
  stage.to_running();
  stage.send(Cancel{true});
  CHECK(stage.terminated);
  stage.send(Tick{}, 11000);
  CHECK_FALSE(stage.outcome);
  stage.send(Tick{}, 2000);
  REQUIRE(stage.outcome);
  CHECK(stage.outcome->exit_code() == 130);
}

TEST_CASE("Cancelling before any host exists ends at once") {
  Stage stage;
  stage.send(Cancel{});
  REQUIRE(stage.outcome);
  CHECK(stage.outcome->cause_kind == "cancelled");
}

TEST_CASE("A second Ctrl-C and deaths of our own doing change nothing") {
  Stage stage;
  stage.to_running();
  stage.send(Cancel{true});
  stage.send(Cancel{true});
  stage.send(LinkLost{0});
  stage.send(HostError{1, internal_error("late")});
  stage.send(HostExited{0, stage.exit(0, SIGTERM)});
  stage.send(HostExited{1, stage.exit(0, SIGKILL)});
  REQUIRE(stage.outcome);
  CHECK(stage.outcome->cause_kind == "user_interrupt");
}

TEST_CASE("An unusable model found while loading is a refusal, the same error later a failure") {
  Stage stage;
  stage.to_loading();
  const bool running = GENERATE(false, true);
  if (running) {
    stage.send(HostPrepared{0, 10});
    stage.send(HostPrepared{1, 10});
    stage.send(HostReady{0});
    stage.send(HostReady{1});
  }
  stage.send(HostError{0, not_found("tensor x")});
  stage.send(HostExited{0, stage.exit(1)});
  stage.send(Tick{}, 1000);
  stage.send(HostExited{1, stage.exit(0, SIGTERM)});
  REQUIRE(stage.outcome);
  CHECK(stage.outcome->exit_code() == (running ? 1 : 2));
}

TEST_CASE("SIGTERM lets the hosts save at a step known ahead") {
  Stage stage;
  stage.to_running();
  CHECK(stage.granted->run_through == 4);
  stage.send(Save{});
  CHECK(stage.granted->stop_after == 5);
  CHECK(stage.granted->save_at == 5);
  for (int step = 1; step <= 5; ++step)
    for (int slot : {0, 1}) stage.send(HostStep{slot, step});
  CHECK(stage.granted->run_through == 5);
  for (int slot : {0, 1}) stage.send(HostFinished{slot});
  for (int slot : {0, 1}) stage.send(HostExited{slot, stage.exit(0)});
  REQUIRE(stage.outcome);
  CHECK(stage.outcome->exit_code() == 75);
  CHECK_FALSE(stage.terminated);
}

TEST_CASE("A save that comes too late to cut anything off leaves the job done") {
  Stage stage;
  stage.to_running();
  stage.send(Save{});
  for (int step = 1; step <= 4; ++step)
    for (int slot : {0, 1}) stage.send(HostStep{slot, step});
  for (int slot : {0, 1}) stage.send(HostFinished{slot});
  for (int slot : {0, 1}) stage.send(HostExited{slot, stage.exit(0)});
  REQUIRE(stage.outcome);
  CHECK(stage.outcome->kind == OutcomeKind::kDone);
}

TEST_CASE("A journal that cannot be written ends the job with that cause, unless all work is done") {
  Stage stage;
  stage.to_running();
  stage.send(JournalFailed{internal_error("no space left")});
  CHECK(stage.terminated);
  for (int slot : {0, 1}) stage.send(HostExited{slot, stage.exit(0, SIGTERM)});
  REQUIRE(stage.outcome);
  CHECK(stage.outcome->exit_code() == 1);
  CHECK(stage.outcome->cause_kind == "journal_failed");
  CHECK(stage.outcome->error.to_string().find("no space left") != std::string::npos);
  Stage done;
  done.to_running();
  for (int slot : {0, 1}) done.send(HostFinished{slot});
  done.send(JournalFailed{internal_error("no space left")});
  for (int slot : {0, 1}) done.send(HostExited{slot, done.exit(0)});
  REQUIRE(done.outcome);
  CHECK(done.outcome->kind == OutcomeKind::kDone);
}

TEST_CASE("A run folder that takes no more lines ends the job with that cause, unless all work is done") {
  for (const bool finished : {false, true}) {
    Stage stage;
    stage.to_running();
    if (finished)
      for (int slot : {0, 1}) stage.send(HostFinished{slot});
    stage.send(RunFolderFailed{internal_error("cannot write metrics.jsonl")});
    for (int slot : {0, 1}) stage.send(HostExited{slot, finished ? stage.exit(0) : stage.exit(0, SIGTERM)});
    REQUIRE(stage.outcome);
    CHECK(stage.outcome->exit_code() == (finished ? 0 : 1));
    CHECK(stage.outcome->cause_kind == (finished ? "none" : "run_folder_failed"));
  }
}

TEST_CASE("A save before the first step ends the job as stopped: there is nothing to save") {
  Stage stage;
  stage.to_loading();
  stage.send(Save{});
  CHECK(stage.terminated);
  for (int slot : {0, 1}) stage.send(HostExited{slot, stage.exit(0, SIGTERM)});
  REQUIRE(stage.outcome);
  CHECK(stage.outcome->exit_code() == 75);
  CHECK(stage.outcome->cause_kind == "stopped");
  CHECK(stage.outcome->steps_done == 0);
}

TEST_CASE("A save that outlasts its grace time is a failure") {
  Stage stage;
  stage.to_running();
  stage.send(Save{});
  stage.send(Tick{}, 300001);
  CHECK(stage.terminated);
  for (int slot : {0, 1}) stage.send(HostExited{slot, stage.exit(0, SIGTERM)});
  REQUIRE(stage.outcome);
  CHECK(stage.outcome->cause_kind == "save_timeout");
}

TEST_CASE("Silence is broken every thirty seconds with the phase and the ranks waited for") {
  Stage stage;
  stage.to_loading();
  stage.send(HostPhase{1, "loading weights"});
  stage.send(HostReady{0});
  stage.send(Tick{}, 29000);
  CHECK_FALSE(stage.has<job_effect::Waiting>());
  stage.send(Tick{}, 1000);
  REQUIRE(stage.has<job_effect::Waiting>());
  std::string text;
  for (const JobEffect& effect : stage.last)
    if (const auto* waiting = std::get_if<job_effect::Waiting>(&effect)) text = waiting->text;
  CHECK(text.find("loading") == 0);
  CHECK(text.find("text/0 (node b, slot 0: loading weights)") != std::string::npos);
  CHECK(text.find("vision/0") == std::string::npos);
}

TEST_CASE("Workers that do not come refuse the job by node and address") {
  Stage stage;
  stage.send(WorkersMissing{"node b at 10.0.0.2", "15 s"});
  REQUIRE(stage.outcome);
  CHECK(stage.outcome->cause_kind == "worker_missing");
  CHECK(stage.outcome->exit_code() == 2);
  CHECK(stage.outcome->error.message.find("node b at 10.0.0.2") != std::string::npos);
}

TEST_CASE("A host that cannot be started fails the job and ends its sibling") {
  Stage stage;
  stage.send(WorkersReady{});
  stage.send(HostSpawned{0, 1});
  stage.send(SpawnFailed{1, not_found("no such program")});
  CHECK(stage.terminated);
  stage.send(HostExited{0, stage.exit(0, SIGTERM)});
  REQUIRE(stage.outcome);
  CHECK(stage.outcome->cause_kind == "spawn_failed");
}

TEST_CASE("In any order of events a job ends exactly once and never grants after it is stopped") {
  std::mt19937 random(11);
  for (int round = 0; round < 2000; ++round) {
    Stage stage(round % 2 == 0);
    bool stopped = false;
    for (int count = 0; count < 60 && !stage.outcome; ++count) {
      const int slot = static_cast<int>(random() % 2);
      const JobEvent events[] = {WorkersReady{},
                                 IndexDone{},
                                 HostSpawned{slot, 9},
                                 HostHello{slot},
                                 HostReady{slot},
                                 HostPrepared{slot, static_cast<int64_t>(random() % 20)},
                                 HostStep{slot, static_cast<int64_t>(random() % 6)},
                                 HostFinished{slot},
                                 HostError{slot, unavailable("x")},
                                 HostExited{slot, stage.exit(1)},
                                 LinkLost{slot},
                                 WorkerLost{"b"},
                                 JournalFailed{internal_error("full")},
                                 RunFolderFailed{internal_error("full")},
                                 HostFinishing{slot},
                                 LoopEnded{LoopEnd::kLeft, internal_error("it left")},
                                 Cancel{},
                                 Save{},
                                 Tick{}};
      stage.send(events[random() % (sizeof(events) / sizeof(events[0]))], static_cast<int64_t>(random() % 3000));
      if (stopped) REQUIRE_FALSE(stage.has<job_effect::PublishGrant>());
      stopped = stopped || stage.terminated;
      REQUIRE(stage.life->next_deadline() > JobLife::Time(milliseconds(0)));
    }
    if (!stage.outcome) {
      stage.send(Cancel{});
      for (int i = 0; i < 4 && !stage.outcome; ++i) stage.send(Tick{}, 30000);
    }
    REQUIRE(stage.outcome);
    stage.send(Cancel{});
    REQUIRE(stage.last.empty());
  }
}

TEST_CASE("A loop that leaves while its job runs ends it as it left; a host's own end is the cause before it") {
  Stage stage(false, 1, false);
  stage.to_running();
  const auto leave = [&](LoopEnd how) { stage.send(LoopEnded{how, internal_error("the loop left")}); };
  const auto end = [&] {
    for (int slot : {0, 1}) stage.send(HostExited{slot, stage.exit(0, SIGTERM)});
    REQUIRE(stage.outcome);
    return stage.outcome->name() + std::string(" ") + stage.outcome->cause_kind;
  };
  SECTION("failed") {
    leave(LoopEnd::kFailed);
    CHECK_FALSE(stage.terminated);  // a host's word may be on its way
    stage.send(Tick{}, 1000);
    CHECK(stage.terminated);
    CHECK(end() == "failed loop_failed");
  }
  SECTION("failed because a host had died, as is heard a moment later") {
    leave(LoopEnd::kFailed);
    stage.send(HostExited{1, stage.exit(0, SIGKILL)}, 100);
    stage.send(Tick{}, 900);
    CHECK(end() == "failed host_killed");
  }
  SECTION("with status 0 and nothing finished") {
    leave(LoopEnd::kLeft);
    stage.send(Tick{}, 19000);
    CHECK_FALSE(stage.terminated);
    stage.send(Tick{}, 1000);
    CHECK(end() == "failed loop_failed");
  }
  SECTION("by a signal") {
    leave(LoopEnd::kStopped);
    stage.send(Tick{}, 1000);
    CHECK(end() == "cancelled user_interrupt");
  }
  SECTION("by a signal, and it had saved") {
    leave(LoopEnd::kSaved);
    stage.send(Tick{}, 1000);
    CHECK(end() == "stopped stopped");
  }
  SECTION("when the job has been stopped") {
    stage.send(Cancel{});
    leave(LoopEnd::kFailed);
    stage.send(Tick{}, 1000);
    CHECK(end() == "cancelled cancelled");
  }
}

TEST_CASE("A loop that has finished the job may leave at once; its hosts take the time that their export needs") {
  Stage stage(false, 1, false);
  stage.to_running();
  const LoopEnd how = GENERATE(LoopEnd::kLeft, LoopEnd::kFailed, LoopEnd::kStopped);
  stage.send(HostFinishing{0});
  stage.send(LoopEnded{how, internal_error("the loop left")});
  stage.send(HostFinishing{1});
  for (int minute = 0; minute < 10; ++minute) stage.send(Tick{}, 60000);
  CHECK_FALSE(stage.terminated);
  for (int slot : {0, 1}) stage.send(HostFinished{slot});
  for (int slot : {0, 1}) stage.send(HostExited{slot, stage.exit(0)});
  REQUIRE(stage.outcome);
  CHECK(stage.outcome->kind == OutcomeKind::kDone);
}

TEST_CASE("What fails while evidence is gathered does not take the place of its cause") {
  Stage stage;
  stage.to_running();
  stage.send(HostError{0, internal_error("a weight is not finite")});
  SECTION("the journal") { stage.send(JournalFailed{internal_error("full")}); }
  SECTION("the run folder") { stage.send(RunFolderFailed{internal_error("full")}); }
  stage.send(Tick{}, 1000);
  for (int slot : {0, 1}) stage.send(HostExited{slot, stage.exit(1)});
  REQUIRE(stage.outcome);
  CHECK(stage.outcome->cause_kind == "host_error");
}

TEST_CASE("A loop that takes its time is nobody's delay, a recorded one is") {
  Stage own(false, 1, false), recorded;
  for (Stage* stage : {&own, &recorded}) {
    stage->to_running();
    stage->send(Tick{}, 60000);
  }
  CHECK_FALSE(own.has<job_effect::Waiting>());
  CHECK(recorded.has<job_effect::Waiting>());
}
