#include "driver/run/driver.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <filesystem>
#include <fstream>
#include <future>
#include <mutex>

#include "base/checkpoint/checkpoint_folder.h"
#include "base/config/job_spec.h"
#include "tests/driver/run/file_size_limit.h"

using namespace troupe;
using namespace troupe::driver;
using std::chrono::milliseconds;
namespace fs = std::filesystem;

namespace {

/// Collects what a peer is told and lets the test wait for it.
template <typename T>
class Mailbox {
 public:
  void put(T value) {
    std::lock_guard lock(mutex_);
    values_.push_back(std::move(value));
    changed_.notify_all();
  }
  T take() {
    std::unique_lock lock(mutex_);
    REQUIRE(changed_.wait_for(lock, std::chrono::seconds(20), [this] { return !values_.empty(); }));
    T value = std::move(values_.front());
    values_.pop_front();
    return value;
  }
  bool empty() {
    std::lock_guard lock(mutex_);
    return values_.empty();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<T> values_;
};

struct FakeWorker final : WorkerPeer {
  void spawn(const SpawnOrder& order) override { spawned.put(order); }
  void terminate(const std::string& incarnation, milliseconds) override { terminated.put(incarnation); }
  void leave() override {}
  Mailbox<SpawnOrder> spawned;
  Mailbox<std::string> terminated;
};

struct FakeHost final : HostPeer {
  void assign(const AssignmentOrder& order) override { assigned.put(order.self); }
  void grant(Generation, const GrantState& state) override { granted.put(state); }
  void stop(const std::string&) override {}
  void acknowledge(uint64_t) override {}
  void refuse(const Error& error) override { refused.put(error.message); }
  Mailbox<int> assigned;
  Mailbox<GrantState> granted;
  Mailbox<std::string> refused;
};

/// A journal whose disk is full from its first grant on.
struct FullJournal final : Journal {
  Term term() const override { return Term(1); }
  void record_job(JournalledJob, Done done) override { answer(done, {}); }
  void record_grant(const std::string&, Generation, int64_t, Done done) override {
    full = true;
    answer(done, {});
  }
  void record_state(const std::string&, const std::string&, Done done) override { answer(done, {}); }
  Result<std::vector<JournalledJob>> jobs() override { return std::vector<JournalledJob>(); }

 private:
  void answer(const Done& done, Status status) {
    if (full) status = internal_error("journal: database or disk is full");
    if (done) done(std::move(status));
  }
  bool full = false;
};

/// A driver with one node and a job of two hosts.
struct Stage {
  explicit Stage(milliseconds register_timeout = milliseconds(60000), std::unique_ptr<Journal> journal = nullptr,
                 JobMode mode = JobMode::kTrain, bool needs_eval_index = false) {
    root = fs::temp_directory_path() / ("troupe_driver_test_" + std::to_string(::getpid()));
    fs::create_directories(root);
    DriverOptions options;
    options.workers = {{"a", "10.0.0.1"}};
    options.register_timeout = register_timeout;
    if (journal)
      driver = Driver::create(std::move(options), std::move(journal));
    else
      driver = std::move(*Driver::create(std::move(options)));
    PlannedJob job;
    job.name = "job";
    job.mode = mode;
    job.needs_eval_index = needs_eval_index;
    job.warnings = {"a plan's warning"};
    job.run_folder = root / "run";
    job.slots = {{"a", 0, "cpu", 1, "127.0.0.1"}, {"a", 1, "cpu", 1, "127.0.0.1"}};
    job.group_names = {"vision", "text"};
    job.group_slots = {{0}, {1}};
    id = *driver->submit(std::move(job));
    REQUIRE(driver
                ->watch(id,
                        [this](const JobUpdate& update) {
                          said.put(update.text);
                          if (update.kind == JobUpdate::Kind::kEnd) ended.set_value(update);
                        })
                .ok());
  }
  ~Stage() {
    driver.reset();
    fs::remove_all(root);
  }
  void register_worker() { REQUIRE(driver->worker_registered("a", "w1", 0, worker).ok()); }
  void start_hosts() {
    register_worker();
    for (int slot : {0, 1}) {
      const SpawnOrder order = worker->spawned.take();
      CHECK(order.slot == slot);
      incarnations[slot] = order.incarnation;
      driver->process_spawned(order.incarnation, 100 + slot, std::nullopt);
      driver->host_hello(id, slot, order.incarnation, hosts[slot]);
      CHECK(hosts[slot]->assigned.take() == slot);
    }
  }
  void report(JobEvent event) {
    driver->host_report(id, [event](JobRunner& runner) { runner.handle(event); });
  }
  void exit(int slot, int code, int signal = 0) {
    HostExit exit;
    exit.exit_code = code;
    exit.signal = signal;
    driver->process_exited(incarnations[slot], exit, -1);
  }
  nlohmann::json result() { return nlohmann::json::parse(ended.get_future().get().result_json); }

  fs::path root;
  std::unique_ptr<Driver> driver;
  std::shared_ptr<FakeWorker> worker = std::make_shared<FakeWorker>();
  std::shared_ptr<FakeHost> hosts[2] = {std::make_shared<FakeHost>(), std::make_shared<FakeHost>()};
  std::string id, incarnations[2];
  std::promise<JobUpdate> ended;
  Mailbox<std::string> said;
};

}  // namespace

TEST_CASE("A job runs on a worker that registers after it was submitted, and leaves its files") {
  Stage stage;
  stage.start_hosts();
  for (int slot : {0, 1}) {
    stage.report(job_event::HostPrepared{slot, 1});
    stage.report(job_event::HostReady{slot});
  }
  for (int slot : {0, 1}) {
    CHECK(stage.hosts[slot]->granted.take().run_through == 1);
    stage.driver->host_report(stage.id, [slot](JobRunner& runner) {
      runner.host_progress(slot,
                           {0, {}, {{1, slot == 0 ? R"({"step": 1, "loss": 2.0})" : "", R"({"peak_memory_mib": 5})"}}});
      runner.host_finished(slot, slot == 0 ? R"({"a": 1})" : "");
    });
  }
  for (int slot : {0, 1}) stage.exit(slot, 0);
  const auto result = stage.result();
  CHECK(result["outcome"] == "done");
  CHECK(result["steps_done"] == 1);
  CHECK(result["results"]["a"] == 1);
  std::ifstream metrics(stage.root / "run/metrics.jsonl");
  std::string line;
  REQUIRE(std::getline(metrics, line));
  CHECK(nlohmann::json::parse(line)["peak_memory_mib"] == nlohmann::json({{"a:0", 5}, {"a:1", 5}}));
  CHECK(fs::exists(stage.root / "run/result.json"));
}

TEST_CASE("The last step is said before the phase that follows it") {
  Stage stage;
  stage.start_hosts();
  for (int slot : {0, 1}) {
    stage.report(job_event::HostPrepared{slot, 2});
    stage.report(job_event::HostReady{slot});
  }
  for (int slot : {0, 1}) {
    CHECK(stage.hosts[slot]->granted.take().run_through == 2);
    for (int step : {1, 2})  // at once: sooner than two lines may follow each other
      stage.driver->host_report(stage.id, [slot, step](JobRunner& runner) {
        const std::string line = R"({"step": )" + std::to_string(step) + R"(, "loss": 2.0})";
        runner.host_progress(slot, {0, {}, {{step, slot == 0 ? line : "", "{}"}}});
      });
    stage.driver->host_report(stage.id, [slot](JobRunner& runner) { runner.host_finished(slot, ""); });
  }
  std::string before;
  for (std::string text = stage.said.take(); text != "finishing"; text = stage.said.take()) before = text;
  CHECK(before.find("step 2") == 0);
  for (int slot : {0, 1}) stage.exit(slot, 0);
  CHECK(stage.result()["outcome"] == "done");
}

TEST_CASE("A host of another incarnation is refused and changes nothing") {
  Stage stage;
  stage.register_worker();
  const SpawnOrder order = stage.worker->spawned.take();
  auto stranger = std::make_shared<FakeHost>();
  stage.driver->host_hello(stage.id, order.slot, "someone else", stranger);
  CHECK(stranger->refused.take().find("another incarnation") != std::string::npos);
  stage.driver->host_hello("no-such-job", 0, "x", stranger);
  CHECK(stranger->refused.take().find("no-such-job") != std::string::npos);
}

TEST_CASE("A killed host ends the job, terminates the other and is named in result.json") {
  Stage stage;
  stage.start_hosts();
  stage.exit(1, 0, SIGKILL);
  // Which of the two comes first does not matter: the dead one's termination is a no-op for its worker.
  stage.worker->terminated.take();
  stage.worker->terminated.take();
  stage.exit(0, 0, SIGTERM);
  const auto result = stage.result();
  CHECK(result["outcome"] == "failed");
  CHECK(result["cause"]["kind"] == "host_killed");
  CHECK(result["cause"]["node"] == "a");
  CHECK(result["cause"]["slot"] == 1);
  CHECK(result["cause"]["pid"] == 101);
  CHECK(result["cause"]["actors"][0]["group"] == "text");
}

TEST_CASE("A worker that never registers refuses the job, names the node and its address, and leaves no folder") {
  Stage stage(milliseconds(300));
  const auto result = stage.result();
  CHECK(result["exit_code"] == 2);
  CHECK(result["cause"]["message"].get<std::string>().find("node a at 10.0.0.1") != std::string::npos);
  CHECK_FALSE(fs::exists(stage.root / "run"));
}

TEST_CASE("A worker of an older driver's cluster, an unknown node and a second worker of a node are refused") {
  Stage stage;
  CHECK_FALSE(stage.driver->worker_registered("a", "w1", 99, stage.worker).ok());
  CHECK_FALSE(stage.driver->worker_registered("b", "w1", 0, stage.worker).ok());
  stage.register_worker();
  CHECK_FALSE(stage.driver->worker_registered("a", "w2", 0, stage.worker).ok());
}

TEST_CASE("A grant that cannot be journalled is not given, and the job ends with that cause") {
  Stage stage(milliseconds(60000), std::make_unique<FullJournal>());
  stage.start_hosts();
  for (int slot : {0, 1}) {
    stage.report(job_event::HostPrepared{slot, 1});
    stage.report(job_event::HostReady{slot});
  }
  stage.worker->terminated.take();
  stage.worker->terminated.take();
  for (int slot : {0, 1}) stage.exit(slot, 0, SIGTERM);
  const auto result = stage.result();
  CHECK(result["outcome"] == "failed");
  CHECK(result["cause"]["kind"] == "journal_failed");
  CHECK(result["cause"]["message"].get<std::string>().find("disk is full") != std::string::npos);
  for (int slot : {0, 1}) CHECK(stage.hosts[slot]->granted.empty());
}

TEST_CASE("A run folder that takes no more metrics ends the job; what was under way is written from the reserve") {
  Stage stage;
  stage.start_hosts();
  for (int slot : {0, 1}) {
    stage.report(job_event::HostPrepared{slot, 3});
    stage.report(job_event::HostReady{slot});
  }
  const std::string file = stage.root / "run/metrics.jsonl";
  const auto done = [&](int64_t step) {
    for (int slot : {0, 1})
      stage.driver->host_report(stage.id, [=](JobRunner& runner) {
        const std::string line =
            "{\"step\": " + std::to_string(step) + ", \"text\": \"" + std::string(1000, 'x') + "\"}";
        runner.host_progress(slot, {0, {}, {{step, slot == 0 ? line : "", ""}}});
      });
  };
  {
    const FileSizeLimit limit(1500);  // takes one line and a part of the second
    done(1);
    done(2);
    stage.worker->terminated.take();
    stage.worker->terminated.take();
    CHECK(fs::file_size(file) < 1500);
  }
  for (int slot : {0, 1}) stage.exit(slot, 0, SIGTERM);
  const auto result = stage.result();
  CHECK(result["exit_code"] == 1);
  CHECK(result["cause"]["kind"] == "run_folder_failed");
  CHECK(result["cause"]["message"].get<std::string>().find(file) != std::string::npos);
  std::ifstream metrics(file);
  std::vector<int64_t> steps;
  for (std::string line; std::getline(metrics, line);) steps.push_back(nlohmann::json::parse(line)["step"]);
  CHECK(steps == std::vector<int64_t>{1, 2});
}

TEST_CASE("Warnings of the plan and records that are left out are events") {
  Stage stage;
  stage.driver->host_report(stage.id, [](JobRunner& runner) { runner.task_line(R"({"samples": 5, "bad": 3})"); });
  CHECK(stage.driver->cancel(stage.id).ok());
  CHECK(stage.result()["exit_code"] == 130);
  std::ifstream events(stage.root / "run/events.jsonl");
  std::vector<std::string> warnings;
  for (std::string line; std::getline(events, line);)
    if (const auto event = nlohmann::json::parse(line); event["kind"] == "warning") warnings.push_back(event["text"]);
  REQUIRE(warnings.size() == 2);
  CHECK(warnings[0] == "a plan's warning");
  CHECK(warnings[1].find("3 records") == 0);
}

TEST_CASE("A look at records names the set: those to train on, then those held out") {
  Stage stage(milliseconds(60000), nullptr, JobMode::kTrain, /*needs_eval_index=*/true);
  // The same file twice, of which the cache knows everything the second time.
  for (const char* line : {"sources data.sources", "progress 10 50 200 1", "progress 40 200 200 0",
                           "progress 40 200 200 0", "sources eval.sources", "progress 40 200 200 0"})
    stage.driver->host_report(stage.id, [line](JobRunner& runner) { runner.task_line(line); });
  CHECK(stage.driver->cancel(stage.id).ok());
  stage.result();
  std::vector<std::string> sets;
  for (std::string text; !stage.said.empty();)
    if (text = stage.said.take(); text.starts_with("indexing ")) sets.push_back(text.substr(9, text.find(':') - 9));
  CHECK(sets == std::vector<std::string>{"data.sources", "data.sources", "data.sources", "eval.sources"});
}

TEST_CASE("A resumed run says which steps come, and that a number of steps of before holds no more") {
  const fs::path root = fs::temp_directory_path() / ("troupe_driver_resume_" + std::to_string(::getpid()));
  const std::string run = root / "run";
  JobSpec spec;
  spec.groups.resize(1);
  spec.groups[0].name = "text";
  auto temporary = begin_checkpoint(run, 30, Generation{1});
  REQUIRE(temporary.ok());
  std::ofstream(*temporary + "/text-0.safetensors") << "weights";
  REQUIRE(commit_checkpoint(*temporary, run, manifest_of_spec(spec, 30)).ok());
  std::ofstream(run + "/events.jsonl") << "";
  const auto said = [&](int64_t steps, int64_t before) {
    auto driver = std::move(*Driver::create(DriverOptions{}));
    PlannedJob job;
    job.name = "job";
    job.run_folder = run;
    job.resume = "auto";
    job.slots = {{"a", 0, "cpu", 1, "127.0.0.1"}};
    job.group_names = {"text"};
    job.group_slots = {{0}};
    job.total_steps = steps;
    job.steps_before = before;
    std::string found;
    const auto id = driver->submit(std::move(job));
    REQUIRE(id.ok());
    REQUIRE(driver
                ->watch(*id,
                        [&](const JobUpdate& update) {
                          if (update.text.starts_with("resuming from "))
                            found = update.text.substr(update.text.find(": ") + 2);
                        })
                .ok());
    driver->close();
    return found;
  };
  CHECK(said(40, 40) == "steps 31 to 40, as training.steps of this job says");
  CHECK(said(40, 0) == "steps 31 to 40, as training.steps of this job says");
  CHECK(said(50, 40) ==
        "steps 31 to 50, as training.steps of this job says; the run before had training.steps 40, which does not "
        "hold any more (a --set holds for one start)");
  CHECK(said(20, 40) ==
        "step 30 is done and training.steps of this job is 20: nothing is left to train; the run before had "
        "training.steps 40, which does not hold any more (a --set holds for one start)");
  CHECK(said(0, 0) == "step 30 is done, training.epochs of this job says how many come");
  fs::remove_all(root);
}

TEST_CASE("Threads of hosts that take calls poll for themselves; a loop that ends early is the job's cause") {
  CHECK([] {
    Stage recorded;
    recorded.register_worker();
    return recorded.worker->spawned.take().environment;
  }() == std::map<std::string, std::string>{});
  Stage stage(milliseconds(60000), nullptr, JobMode::kCalls);
  stage.register_worker();
  for (int slot : {0, 1}) {
    const SpawnOrder order = stage.worker->spawned.take();
    CHECK(order.environment == std::map<std::string, std::string>{{"GRPC_POLL_STRATEGY", "poll"}});
    stage.incarnations[slot] = order.incarnation;
    stage.driver->process_spawned(order.incarnation, 100 + slot, std::nullopt);
  }
  CHECK_FALSE(stage.driver->loop_ended("no-such-job", LoopEnd::kFailed, internal_error("it left")).ok());
  CHECK(stage.driver->loop_ended(stage.id, LoopEnd::kFailed, internal_error("it left")).ok());
  for (int slot : {0, 1}) CHECK(stage.worker->terminated.take() == stage.incarnations[slot]);
  for (int slot : {0, 1}) stage.exit(slot, 0, SIGTERM);
  const auto result = stage.result();
  CHECK(result["outcome"] == "failed");
  CHECK(result["cause"]["kind"] == "loop_failed");
  CHECK_FALSE(result.contains("steps_done"));  // nobody said how many
}

TEST_CASE("A rendezvous wait is cancelled when its job ends") {
  Stage stage;
  stage.start_hosts();
  StoreCall get;
  get.kind = StoreKind::kGet;
  get.keys = {"k"};
  get.timeout = milliseconds(60000);
  std::promise<StoreAnswer> answer;
  stage.driver->store_call(stage.id, get, [&](const StoreAnswer& a) { answer.set_value(a); });
  CHECK(stage.driver->cancel(stage.id).ok());
  CHECK(answer.get_future().get().error->code == ErrorCode::kCancelled);
  for (int slot : {0, 1}) stage.exit(slot, 0, SIGTERM);
  CHECK(stage.result()["exit_code"] == 130);
  CHECK_FALSE(stage.driver->cancel(stage.id).ok());
}
