#include "driver/run/driver.h"

#include <algorithm>
#include <random>
#include <set>

namespace troupe::driver {
using nlohmann::json;
using std::chrono::milliseconds;
namespace {

constexpr milliseconds kTick{250};

std::string fresh_job_id() {
  std::random_device device;
  char text[9];
  std::snprintf(text, sizeof(text), "%08x", device());
  return text;
}

std::string seconds_text(milliseconds time) {
  const auto ms = time.count();
  return ms % 1000 == 0 ? std::to_string(ms / 1000) + " s" : std::to_string(ms) + " ms";
}

Error unknown_job(const std::string& id) { return not_found("no job " + id + " at this driver"); }

}  // namespace

Result<std::unique_ptr<Driver>> Driver::create(DriverOptions options) {
  TROUPE_ASSIGN(auto journal, Journal::open(options.journal_path));
  return create(std::move(options), std::move(journal));
}

std::unique_ptr<Driver> Driver::create(DriverOptions options, std::unique_ptr<Journal> journal) {
  std::unique_ptr<Driver> driver(new Driver(std::move(options), std::move(journal)));
  driver->loop_.post([raw = driver.get()] { raw->tick(); });
  return driver;
}

Driver::Driver(DriverOptions options, std::unique_ptr<Journal> journal)
    : options_(std::move(options)),
      journal_(std::move(journal)),
      leases_(options_.workers, options_.lease, options_.register_timeout, OwnerLoop::Clock::now()) {}

Driver::~Driver() {
  loop_.finish();
  journal_.reset();
}

void Driver::set_address(const std::string& address) {
  loop_.post([this, address] { options_.address = address; });
}

Driver::Job* Driver::find(const std::string& id) {
  const auto at = jobs_.find(id);
  return at == jobs_.end() ? nullptr : &at->second;
}

Result<std::string> Driver::submit(PlannedJob planned) {
  return loop_.ask([&]() -> Result<std::string> {
    const std::string id = fresh_job_id();
    if (planned.run_folder.empty()) return invalid_argument("a job needs a run folder");
    TROUPE_ASSIGN(auto folder, RunFolder::open(planned.run_folder, !planned.resume.empty()));
    TROUPE_RETURN_IF_ERROR(folder->write_job(planned.job_yaml));
    if (!options_.address.empty()) folder->write_driver_address(options_.address);
    Job& job = jobs_[id];
    job.runner = std::make_unique<JobRunner>(id, std::move(planned), std::move(folder), surroundings(id));
    queue_.push_back(id);
    loop_.post([this] { start_what_can(); });
    return id;
  });
}

JobSurroundings Driver::surroundings(const std::string& id) {
  JobSurroundings around;
  around.loop = &loop_;
  around.journal = journal_.get();
  around.worker = [this](const std::string& node) -> WorkerPeer* {
    const auto at = workers_.find(node);
    return at == workers_.end() ? nullptr : at->second.get();
  };
  around.missing_workers = [this](const std::vector<std::string>& nodes) { return leases_.missing(nodes); };
  around.own_process = [this, id](const std::string& incarnation, int slot) { processes_[incarnation] = {id, slot}; };
  around.publish = [this, id](const JobUpdate& update) { publish(id, update); };
  around.ended = [this, id] {
    queue_.remove(id);
    loop_.post([this] { start_what_can(); });
  };
  around.answer_store = [this](const std::vector<StoreAnswer>& answers) {
    for (const StoreAnswer& answer : answers) {
      const auto at = store_replies_.find(answer.call);
      if (at == store_replies_.end()) continue;
      StoreReply reply = std::move(at->second);
      store_replies_.erase(at);
      reply(answer);
    }
  };
  return around;
}

void Driver::publish(const std::string& id, const JobUpdate& update) {
  Job* job = find(id);
  if (!job) return;
  if (update.kind != JobUpdate::Kind::kProgress) job->said.push_back(update);
  for (const auto& [number, watcher] : job->watchers) watcher(update);
}

/// Jobs start in the order of their submission as soon as their nodes are present and their slots are free.
void Driver::start_what_can() {
  std::set<std::pair<std::string, int>> taken;
  const auto now = OwnerLoop::Clock::now();
  for (const std::string& id : std::vector<std::string>(queue_.begin(), queue_.end())) {
    Job& job = jobs_[id];
    bool free = true;
    for (const PlannedSlot& slot : job.runner->job().slots) free = free && !taken.contains({slot.node, slot.index});
    for (const PlannedSlot& slot : job.runner->job().slots) taken.emplace(slot.node, slot.index);
    if (job.started || !free) continue;
    const auto nodes = job.runner->nodes();
    if (leases_.all_present(nodes)) {
      job.started = true;
      job.runner->handle(job_event::WorkersReady{});
    } else if (leases_.register_time_over(now)) {
      job.started = true;
      job.runner->handle(job_event::WorkersMissing{leases_.missing(nodes), seconds_text(options_.register_timeout)});
    }
  }
}

void Driver::tick() {
  const auto now = OwnerLoop::Clock::now();
  for (const std::string& node : leases_.expire(now)) lose_worker(node);
  start_what_can();
  loop_.post_at(now + kTick, [this] { tick(); });
}

void Driver::lose_worker(const std::string& node) {
  workers_.erase(node);
  for (auto& [id, job] : jobs_)
    if (job.started) job.runner->handle(job_event::WorkerLost{node});
}

Result<std::string> Driver::status_json(const std::string& job_id) {
  return loop_.ask([&]() -> Result<std::string> {
    if (!job_id.empty()) {
      Job* job = find(job_id);
      if (!job) return unknown_job(job_id);
      return job->runner->status().dump();
    }
    json all = {{"term", term().value}, {"jobs", json::array()}, {"workers", json::array()}};
    for (auto& [id, job] : jobs_) all["jobs"].push_back(job.runner->status());
    for (const auto& worker : options_.workers)
      all["workers"].push_back(
          {{"node", worker.node}, {"address", worker.address}, {"present", leases_.present(worker.node)}});
    return all.dump();
  });
}

Status Driver::cancel(const std::string& job_id, bool interrupt) {
  return loop_.ask([&]() -> Status {
    Job* job = find(job_id);
    if (!job) return unknown_job(job_id);
    if (job->runner->ended()) return make_error(ErrorCode::kFailedPrecondition, "job " + job_id + " has ended already");
    job->runner->handle(job_event::Cancel{interrupt});
    return {};
  });
}

Status Driver::save_and_stop(const std::string& job_id) {
  return loop_.ask([&]() -> Status {
    Job* job = find(job_id);
    if (!job) return unknown_job(job_id);
    job->runner->handle(job_event::Save{});
    return {};
  });
}

Status Driver::loop_ended(const std::string& job_id, LoopEnd how, const Error& error) {
  return loop_.ask([&]() -> Status {
    Job* job = find(job_id);
    if (!job) return unknown_job(job_id);
    job->runner->handle(job_event::LoopEnded{how, error});
    return {};
  });
}

Result<int> Driver::watch(const std::string& job_id, Watcher watcher) {
  return loop_.ask([&]() -> Result<int> {
    Job* job = find(job_id);
    if (!job) return unknown_job(job_id);
    for (const JobUpdate& update : job->said) watcher(update);
    job->watchers[++last_watcher_] = std::move(watcher);
    return last_watcher_;
  });
}

void Driver::unwatch(const std::string& job_id, int number) {
  loop_.ask([&] {
    if (Job* job = find(job_id)) job->watchers.erase(number);
  });
}

Result<std::vector<std::string>> Driver::log_files(const std::string& job_id, const std::string& group, int rank) {
  return loop_.ask([&]() -> Result<std::vector<std::string>> {
    Job* job = find(job_id);
    if (!job) return unknown_job(job_id);
    const PlannedJob& planned = job->runner->job();
    std::set<int> slots;
    for (size_t g = 0; g < planned.group_names.size(); ++g)
      for (size_t r = 0; r < planned.group_slots[g].size(); ++r)
        if ((group.empty() || group == planned.group_names[g]) && (rank < 0 || rank == static_cast<int>(r)))
          slots.insert(planned.group_slots[g][r]);
    std::vector<std::string> files;
    for (int slot : slots) {
      const PlannedSlot& place = planned.slots[static_cast<size_t>(slot)];
      files.push_back(job->runner->folder().log_path(place.node, place.index));
    }
    if (files.empty())
      return not_found("job " + job_id + " has no rank " + std::to_string(rank) + " of group '" + group + "'");
    return files;
  });
}

bool Driver::job_ended(const std::string& job_id) {
  return loop_.ask([&] {
    Job* job = find(job_id);
    return !job || job->runner->ended();
  });
}

void Driver::cancel_all() {
  loop_.ask([&] {
    for (auto& [id, job] : jobs_) job.runner->handle(job_event::Cancel{false});
  });
}

bool Driver::idle() {
  return loop_.ask([&] { return queue_.empty(); });
}

void Driver::close() {
  loop_.ask([&] {
    closed_ = true;
    for (auto& [id, job] : jobs_) job.runner->handle(job_event::Cancel{false});
    for (auto& [number, reply] : store_replies_) {
      StoreAnswer answer;
      answer.error = cancelled("the driver is closing");
      reply(answer);
    }
    store_replies_.clear();
    for (const auto& [node, worker] : workers_) worker->leave();
  });
}

int Driver::workers_present() {
  return loop_.ask([&] { return static_cast<int>(workers_.size()); });
}

Status Driver::worker_registered(const std::string& node, const std::string& incarnation, uint64_t highest_term,
                                 std::shared_ptr<WorkerPeer> peer) {
  return loop_.ask([&]() -> Status {
    if (highest_term > term().value)
      return make_error(ErrorCode::kFailedPrecondition, "this driver's term " + std::to_string(term().value) +
                                                            " is older than term " + std::to_string(highest_term) +
                                                            " that the worker has seen");
    const std::string refusal = leases_.registered(node, incarnation, OwnerLoop::Clock::now());
    if (!refusal.empty()) return make_error(ErrorCode::kFailedPrecondition, refusal);
    workers_[node] = std::move(peer);
    loop_.post([this] { start_what_can(); });
    return {};
  });
}

void Driver::worker_heartbeat(const std::string& node, const std::string& incarnation) {
  loop_.post([this, node, incarnation] { leases_.heartbeat(node, incarnation, OwnerLoop::Clock::now()); });
}

void Driver::worker_gone(const std::string& node, const std::string& incarnation) {
  loop_.post([this, node, incarnation] {
    if (leases_.stream_closed(node, incarnation)) lose_worker(node);
  });
}

void Driver::process_spawned(const std::string& incarnation, int pid, std::optional<Error> error) {
  loop_.post([this, incarnation, pid, error = std::move(error)] {
    const auto at = processes_.find(incarnation);
    if (at == processes_.end()) return;
    if (Job* job = find(at->second.job)) job->runner->process_spawned(at->second.slot, pid, error);
  });
}

void Driver::process_exited(const std::string& incarnation, HostExit exit, int group) {
  loop_.post([this, incarnation, exit = std::move(exit), group] {
    const auto at = processes_.find(incarnation);
    if (at == processes_.end()) return;
    const Process process = at->second;
    processes_.erase(at);
    if (Job* job = find(process.job)) job->runner->process_exited(process.slot, exit, group);
  });
}

void Driver::task_line(const std::string& incarnation, const std::string& line) {
  loop_.post([this, incarnation, line] {
    const auto at = processes_.find(incarnation);
    if (at == processes_.end()) return;
    if (Job* job = find(at->second.job)) job->runner->task_line(line);
  });
}

void Driver::host_hello(const std::string& job_id, int slot, const std::string& incarnation,
                        std::shared_ptr<HostPeer> peer) {
  loop_.post([this, job_id, slot, incarnation, peer = std::move(peer)] {
    Job* job = find(job_id);
    if (!job) return peer->refuse(unknown_job(job_id));
    job->runner->host_hello(slot, incarnation, peer);
  });
}

void Driver::host_report(const std::string& job_id, HostCall call) {
  loop_.post([this, job_id, call = std::move(call)] {
    if (Job* job = find(job_id)) call(*job->runner);
  });
}

void Driver::host_gone(const std::string& job_id, int slot) {
  host_report(job_id, [slot](JobRunner& runner) { runner.handle(job_event::LinkLost{slot}); });
}

void Driver::store_call(const std::string& job_id, const StoreCall& call, StoreReply reply) {
  loop_.post([this, job_id, call, reply = std::move(reply)] {
    Job* job = find(job_id);
    if (!job || closed_ || job->runner->ended()) {
      StoreAnswer answer;
      answer.error = job ? cancelled("job " + job_id + " has ended") : unknown_job(job_id);
      return reply(answer);
    }
    const uint64_t number = ++last_store_call_;
    store_replies_[number] = reply;
    job->runner->store_call(number, call);
  });
}

}  // namespace troupe::driver
