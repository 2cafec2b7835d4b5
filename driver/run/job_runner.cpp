#include "driver/run/job_runner.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>

#include "base/json_text.h"
#include "base/shortened_file.h"
#include "proto/rpc/event_queue.h"

namespace troupe::driver {
using nlohmann::json;
using std::chrono::milliseconds;
namespace {

constexpr milliseconds kTaskGrace{1000};
constexpr size_t kLongestTaskMessage = 16384;
constexpr milliseconds kBetweenProgress{100};  // nobody reads faster

std::string fresh_incarnation() {
  std::random_device device;
  char text[17];
  std::snprintf(text, sizeof(text), "%08x%08x", device(), device());
  return text;
}

std::vector<HostPlace> places_of(const PlannedJob& job, const RunFolder& folder) {
  std::vector<HostPlace> places;
  for (const PlannedSlot& slot : job.slots)
    places.push_back({slot.node, slot.index, {}, folder.log_path(slot.node, slot.index)});
  for (size_t g = 0; g < job.group_slots.size(); ++g)
    for (size_t r = 0; r < job.group_slots[g].size(); ++r)
      places[static_cast<size_t>(job.group_slots[g][r])].actors.emplace_back(job.group_names[g], static_cast<int>(r));
  return places;
}

JobLifeOptions life_options(const PlannedJob& job, const std::vector<HostPlace>& places, int64_t resume_step) {
  JobLifeOptions options;
  options.places = places;
  options.needs_index = job.needs_index || job.needs_eval_index;
  options.first_step = resume_step + 1;
  options.prepared_when_ready = job.mode == JobMode::kEval;
  options.save_grace = job.save_grace;
  options.reports_steps = !serves_calls(job.mode);
  return options;
}

std::vector<std::string> slot_names(const PlannedJob& job) {
  std::vector<std::string> names;
  for (const PlannedSlot& slot : job.slots) names.push_back(slot.node + ":" + std::to_string(slot.index));
  return names;
}

std::string tail_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  std::string all = text.str();
  if (all.size() > kLongestTaskMessage) all = all.substr(all.size() - kLongestTaskMessage);
  while (!all.empty() && all.back() == '\n') all.pop_back();
  return all;
}

std::string duration_text(double seconds) {
  char text[32];
  const auto whole = static_cast<long>(seconds + 0.5);
  if (whole >= 3600)
    std::snprintf(text, sizeof(text), "%ldh%02ldm", whole / 3600, whole / 60 % 60);
  else
    std::snprintf(text, sizeof(text), "%ldm%02lds", whole / 60, whole % 60);
  return text;
}

}  // namespace

JobRunner::JobRunner(std::string id, PlannedJob job, std::unique_ptr<RunFolder> folder, JobSurroundings surroundings)
    : id_(std::move(id)),
      job_(std::move(job)),
      folder_(std::move(folder)),
      around_(std::move(surroundings)),
      resume_(job_.resume.empty() ? LatestCheckpoint()
                                  : latest_checkpoint_in(job_.resume == "auto" ? job_.run_folder : job_.resume)),
      places_(places_of(job_, *folder_)),
      life_(life_options(job_, places_, resume_.step), Clock::now()),
      metrics_(slot_names(job_)),
      peers_(job_.slots.size()),
      incarnations_(job_.slots.size()),
      started_(Clock::now()) {
  json groups = json::array();
  for (size_t g = 0; g < job_.group_names.size(); ++g)
    for (size_t r = 0; r < job_.group_slots[g].size(); ++r) {
      const PlannedSlot& slot = job_.slots[static_cast<size_t>(job_.group_slots[g][r])];
      groups.push_back({{"group", job_.group_names[g]},
                        {"rank", r},
                        {"node", slot.node},
                        {"slot", slot.index},
                        {"device", slot.device}});
    }
  json planned = {{"job", id_}, {"name", job_.name}, {"placement", groups}, {"resume_from", resume_.path}};
  if (!serves_calls(job_.mode)) planned["total_steps"] = job_.total_steps;
  folder_->append_event("planned", generation_.value, planned);
  for (const std::string& warning : job_.warnings)  // said with the plan
    folder_->append_event("warning", generation_.value, {{"text", warning}});
  for (const std::string& reason : resume_.passed_over)
    warn("a newer checkpoint is not complete and is passed over: " + reason);
  if (!resume_.path.empty()) say_resume();
  around_.journal->record_job({id_, job_.name, job_.run_folder, "waiting", generation_.value, 0}, journalled());
  schedule();
}

void JobRunner::handle(const JobEvent& event) {
  if (ended()) return;
  for (const JobEffect& effect : life_.step(event, Clock::now())) carry_out(effect);
  if (!ended()) schedule();
}

void JobRunner::schedule() {
  const auto due = life_.next_deadline();
  if (due >= scheduled_ && scheduled_ > Clock::now()) return;
  scheduled_ = due;
  around_.loop->post_at(due, [this, due] {
    if (scheduled_ != due) return;
    scheduled_ = Clock::time_point::max();
    handle(job_event::Tick{});
    if (!ended()) schedule();
  });
}

void JobRunner::carry_out(const JobEffect& effect) {
  struct Visitor {
    JobRunner& self;
    void operator()(const job_effect::StartIndex&) { self.start_index(); }
    void operator()(const job_effect::SpawnHosts&) { self.spawn_hosts(); }
    void operator()(const job_effect::AssignHost& e) { self.assign(e.slot); }
    void operator()(const job_effect::PublishGrant& e) { self.publish_grant(e.grant); }
    void operator()(const job_effect::Terminate& e) { self.terminate(e.grace); }
    void operator()(const job_effect::PhaseChanged& e) {
      const std::string phase = job_phase_name(e.phase);
      if (self.progress_due_) self.show_progress();  // the last step comes before what follows it
      self.folder_->append_event("phase", self.generation_.value, {{"phase", phase}});
      self.around_.journal->record_state(self.id_, phase, self.journalled());
      self.say(phase);
      if (e.phase == JobPhase::kLoading)
        self.folder_->append_event("spawned", self.generation_.value, {{"hosts", self.hosts_json()}});
    }
    void operator()(const job_effect::Waiting& e) {
      std::string text = e.text;
      if (self.life_.phase() == JobPhase::kWaiting) {
        const std::string missing = self.around_.missing_workers(self.nodes());
        text += missing.empty() ? ": all are there, but slots are taken by other jobs" : ": " + missing;
      }
      self.folder_->append_event("waiting", self.generation_.value, {{"text", text}});
      self.say(text);
    }
    void operator()(const job_effect::End& e) { self.end(e.outcome); }
  };
  std::visit(Visitor{*this}, effect);
}

void JobRunner::say(const std::string& line) { around_.publish({JobUpdate::Kind::kLine, line, 0, ""}); }

void JobRunner::warn(const std::string& text) {
  folder_->append_event("warning", generation_.value, {{"text", text}});
  say(text);
}

void JobRunner::say_resume() {
  const std::string done = std::to_string(resume_.step), total = std::to_string(job_.total_steps);
  std::string text = "resuming from " + resume_.path + ": ";
  const bool other = job_.steps_before > 0 && job_.total_steps > 0 && job_.steps_before != job_.total_steps;
  const std::string before = other ? "; the run before had training.steps " + std::to_string(job_.steps_before) +
                                         ", which does not hold any more (a --set holds for one start)"
                                   : "";
  if (serves_calls(job_.mode))
    say(text + "step " + done + " of the loop is saved there");
  else if (job_.total_steps <= 0)
    say(text + "step " + done + " is done, training.epochs of this job says how many come");
  else if (resume_.step < job_.total_steps)
    say(text + "steps " + std::to_string(resume_.step + 1) + " to " + total + ", as training.steps of this job says" +
        before);
  else
    warn(text + "step " + done + " is done and training.steps of this job is " + total + ": nothing is left to train" +
         before);
}

void JobRunner::start_index() {
  WorkerPeer* worker = around_.worker(job_.slots.front().node);
  if (!worker)
    return handle(job_event::IndexFailed{unavailable("node " + job_.slots.front().node + " has no worker"), false});
  SpawnOrder order;
  order.incarnation = index_incarnation_ = fresh_incarnation();
  order.job_id = id_;
  order.arguments = {"index", "--job", folder_->path() + "/job.yaml", "--out", folder_->index_path()};
  if (job_.needs_eval_index) order.arguments.insert(order.arguments.end(), {"--eval-out", folder_->eval_index_path()});
  order.output_path = folder_->path() + "/logs/index.log";
  order.task_output_path = folder_->path() + "/index/progress";
  std::error_code ignored;
  std::filesystem::remove(order.task_output_path, ignored);  // what an earlier run wrote is not this one's progress
  around_.own_process(order.incarnation, -1);
  worker->spawn(order);
}

void JobRunner::spawn_hosts() {
  for (size_t slot = 0; slot < job_.slots.size(); ++slot) {
    const PlannedSlot& place = job_.slots[slot];
    WorkerPeer* worker = around_.worker(place.node);
    if (!worker)
      return handle(
          job_event::SpawnFailed{static_cast<int>(slot), unavailable("node " + place.node + " has no worker")});
    SpawnOrder order;
    order.incarnation = incarnations_[slot] = fresh_incarnation();
    order.job_id = id_;
    order.slot = static_cast<int>(slot);
    order.threads = place.threads;
    order.arguments = {"host"};
    order.output_path = places_[slot].log_path;
    if (serves_calls(job_.mode)) order.environment[kPollForOneself[0]] = kPollForOneself[1];
    around_.own_process(order.incarnation, static_cast<int>(slot));
    worker->spawn(order);
  }
}

void JobRunner::process_spawned(int slot, int pid, const std::optional<Error>& error) {
  if (slot < 0) {
    if (error) handle(job_event::IndexFailed{*error, false});
    return;
  }
  if (error) return handle(job_event::SpawnFailed{slot, *error});
  handle(job_event::HostSpawned{slot, pid});
}

void JobRunner::process_exited(int slot, HostExit exit, int group) {
  if (slot < 0) {
    index_incarnation_.clear();
    if (exit.signal == 0 && exit.exit_code == 0) return handle(job_event::IndexDone{});
    const bool refusal = exit.signal == 0 && exit.exit_code == 2;
    if (exit.signal != 0) {
      const std::string how = exit.stopped_ms > 0 ? "stood still for " + std::to_string(exit.stopped_ms / 1000) +
                                                        " s (stopped by SIGSTOP or its like) and was ended"
                                                  : "was killed by signal " + std::to_string(exit.signal);
      const std::string log = folder_->path() + "/logs/index.log";
      const std::string said = exit.signal == SIGBUS ? shortened_file_said_in(tail_of(log)) : "";
      return handle(job_event::IndexFailed{
          internal_error("the index task " + how + (said.empty() ? "" : ": " + said) + "; log: " + log), false});
    }
    return handle(job_event::IndexFailed{index_error(exit.exit_code), refusal});
  }
  if (group >= 0 && group < static_cast<int>(job_.group_names.size()))
    exit.group = job_.group_names[static_cast<size_t>(group)];
  exit.pid = life_.pid(slot);
  if (exit.signal == SIGBUS) exit.said = shortened_file_said_in(tail_of(places_[static_cast<size_t>(slot)].log_path));
  const PlannedSlot& place = job_.slots[static_cast<size_t>(slot)];
  folder_->append_event("host_exited", generation_.value,
                        {{"node", place.node},
                         {"slot", place.index},
                         {"pid", exit.pid},
                         {"actors", actors_of(slot)},
                         {"exit_code", exit.exit_code},
                         {"signal", exit.signal},
                         {"step", exit.step},
                         {"instruction", exit.instruction}});
  handle(job_event::HostExited{slot, exit});
}

Error JobRunner::index_error(int exit_code) const {
  const std::string text = tail_of(folder_->path() + "/logs/index.log");
  const size_t last = text.rfind('\n');
  const json parsed = json::parse(last == std::string::npos ? text : text.substr(last + 1), nullptr, false);
  if (parsed.is_object() && parsed.contains("message") && parsed["message"].is_string())
    return make_error(error_code_from_name(parsed.value("code", "invalid_argument")),
                      parsed["message"].get<std::string>());
  if (exit_code == 2 && text.empty())  // a full disk takes no log
    return make_error(ErrorCode::kResourceExhausted, "the data was refused, and the reason could not be written to " +
                                                         folder_->path() +
                                                         "/logs/index.log: make room on its disk, then run again");
  if (exit_code == 2) return invalid_argument(text);
  return internal_error("the index task exited with status " + std::to_string(exit_code) + ": " + text);
}

void JobRunner::task_line(const std::string& line) {
  if (const auto progress = parse_progress_line(line)) {
    around_.publish({JobUpdate::Kind::kProgress, "indexing " + indexed_set_ + ": " + progress_text(*progress), 0, ""});
    return;
  }
  if (line.starts_with(kSourcesLine)) {
    indexed_set_ = line.substr(std::strlen(kSourcesLine));
    return;
  }
  if (line.starts_with(kWarningLine)) return warn(line.substr(std::strlen(kWarningLine)));
  const json summary = json::parse(line, nullptr, false);
  if (!summary.is_object()) return;
  index_summary_ = summary;
  folder_->append_event("indexed", generation_.value, summary);
  std::string text = "indexed";
  for (const auto& [key, value] : summary.items())
    if (value.is_number()) text += " " + key + "=" + value.dump();
  say(text);
  if (const auto bad = summary.value("bad", int64_t{0}); bad > 0)
    warn(std::to_string(bad) + " records cannot be used and are left out (data.on_bad_record: skip)");
}

void JobRunner::host_hello(int slot, const std::string& incarnation, std::shared_ptr<HostPeer> peer) {
  if (slot < 0 || slot >= static_cast<int>(peers_.size()) || incarnations_[static_cast<size_t>(slot)] != incarnation)
    return peer->refuse(make_error(ErrorCode::kFailedPrecondition, "slot " + std::to_string(slot) + " of job " + id_ +
                                                                       " belongs to another incarnation"));
  peers_[static_cast<size_t>(slot)] = std::move(peer);
  handle(job_event::HostHello{slot});
}

void JobRunner::assign(int slot) {
  AssignmentOrder order;
  order.job_id = id_;
  order.self = slot;
  order.generation = generation_;
  order.job = &job_;
  if (job_.needs_index) order.index_path = folder_->index_path();
  if (job_.needs_eval_index) order.eval_index_path = folder_->eval_index_path();
  order.resume_from = resume_.path;
  if (HostPeer* host = peer(slot)) host->assign(order);
}

void JobRunner::publish_grant(const GrantState& grant) {
  // Journalled before use: a grant that a restarted driver does not know of would be one that nobody gave.
  around_.journal->record_grant(id_, generation_, grant.run_through, [this, grant, loop = around_.loop](Status status) {
    loop->post([this, grant, status = std::move(status)] {
      if (!status.ok()) return journal_failed(status.error());
      for (const auto& host : peers_)
        if (host) host->grant(generation_, grant);
    });
  });
}

Journal::Done JobRunner::journalled() {
  return [this, loop = around_.loop](Status status) {
    if (!status.ok()) loop->post([this, error = status.error()] { journal_failed(error); });
  };
}

void JobRunner::journal_failed(const Error& error) {
  if (ended() || life_.phase() == JobPhase::kFinishing) return warn("journal: " + error.to_string());
  handle(job_event::JournalFailed{error});
}

void JobRunner::terminate(milliseconds grace) {
  for (const auto& answers : {store_.close("the job is stopping")}) around_.answer_store(answers);
  for (size_t slot = 0; slot < job_.slots.size(); ++slot) {
    if (peers_[slot]) peers_[slot]->stop("the job is stopping");
    if (incarnations_[slot].empty()) continue;
    if (WorkerPeer* worker = around_.worker(job_.slots[slot].node)) worker->terminate(incarnations_[slot], grace);
  }
  if (!index_incarnation_.empty())
    if (WorkerPeer* worker = around_.worker(job_.slots.front().node)) worker->terminate(index_incarnation_, kTaskGrace);
}

void JobRunner::host_progress(int slot, const HostProgress& progress) {
  std::vector<MetricsMerger::Line> lines;
  for (const HostProgress::Step& step : progress.steps)
    for (MetricsMerger::Line& line : metrics_.add(slot, step.step, step.metrics_json, step.local_json))
      lines.push_back(std::move(line));
  write_metrics(lines);
  if (progress.prepared > 0) handle(job_event::HostPrepared{slot, progress.prepared, progress.bad});
  if (!progress.steps.empty()) handle(job_event::HostStep{slot, progress.steps.back().step});
}

void JobRunner::write_metrics(const std::vector<MetricsMerger::Line>& lines) {
  if (lines.empty()) return;
  std::string text;
  for (const MetricsMerger::Line& line : lines) {
    text += line.text + '\n';
    progress_due_ =
        progress_due_ || line.step % std::max<int64_t>(1, job_.log_every) == 0 || line.step == job_.total_steps;
  }
  record_metrics(text);
  last_line_ = lines.back().text;
  if (first_step_seen_ == 0) {
    first_step_seen_ = lines.back().step;
    first_step_at_ = Clock::now();
  }
  if (progress_due_ && Clock::now() - last_progress_ >= kBetweenProgress) show_progress();
}

void JobRunner::record_metrics(const std::string& lines) {
  const Status written = folder_->append_metrics(lines);
  // What did not fit waits for the reserve that is given up at the end.
  if (!written.ok()) handle(job_event::RunFolderFailed{written.error()});
}

void JobRunner::show_progress() {
  progress_due_ = false;
  last_progress_ = Clock::now();
  const json line = json::parse(last_line_, nullptr, false);
  if (line.is_object()) around_.publish({JobUpdate::Kind::kProgress, step_text(line), 0, ""});
}

std::string JobRunner::step_text(const json& line) {
  auto is_number = [&](const char* key) { return line.contains(key) && line[key].is_number(); };
  auto number = [&](const char* key) { return is_number(key) ? line[key].get<double>() : 0.0; };
  const auto step = static_cast<int64_t>(number("step"));
  char text[160];
  const std::string total = job_.total_steps > 0 ? "/" + std::to_string(job_.total_steps) : "";
  char loss[32] = "not finite";
  if (is_number("loss")) std::snprintf(loss, sizeof(loss), "%.4f", number("loss"));
  std::snprintf(text, sizeof(text), "step %lld%s  loss %s  %.0f tokens/s", static_cast<long long>(step), total.c_str(),
                loss, number("tokens_per_s"));
  std::string result = text;
  if (job_.total_steps > 0 && step > first_step_seen_) {
    const double seconds = std::chrono::duration<double>(Clock::now() - first_step_at_).count() /
                           static_cast<double>(step - first_step_seen_);
    result += "  ETA " + duration_text(seconds * static_cast<double>(job_.total_steps - step));
  }
  return result;
}

void JobRunner::host_evaluation(int, int64_t step, const std::string& json_text) {
  json line = json::parse(json_text, nullptr, false);
  if (!line.is_object()) return;
  line["step"] = step;
  record_metrics(line.dump() + '\n');
  std::string text = "evaluation after step " + std::to_string(step) + ":";
  for (const auto& [key, value] : line.items())
    if (value.is_number() && key != "step") text += "  " + key + " " + figure_text(value);
  say(text);
}

void JobRunner::host_event(int slot, const std::string& kind, const std::string& json_text) {
  json details = json::parse(json_text, nullptr, false);
  if (!details.is_object()) details = json::object();
  if (kind == "training_plan" && details.contains("steps") && details["steps"].is_number_integer())
    job_.total_steps = details["steps"];
  const PlannedSlot& place = job_.slots[static_cast<size_t>(slot)];
  details["node"] = place.node;
  details["slot"] = place.index;
  details["pid"] = life_.pid(slot);
  if (!details.contains("group")) details["actors"] = actors_of(slot);
  folder_->append_event(kind, generation_.value, details);
  if (details.contains("text") && details["text"].is_string()) say(details["text"].get<std::string>());
}

void JobRunner::host_finished(int slot, const std::string& result_json) {
  const json result = json::parse(result_json, nullptr, false);
  if (result.is_object()) host_results_.merge_patch(result);
  handle(job_event::HostFinished{slot});
}

void JobRunner::store_call(uint64_t number, const StoreCall& call) {
  const auto now = Clock::now();
  around_.answer_store(store_.call(number, call, now));
  if (call.kind == StoreKind::kGet)
    around_.loop->post_at(now + call.timeout, [this] { around_.answer_store(store_.expire(Clock::now())); });
}

void JobRunner::end(Outcome outcome) {
  write_metrics(metrics_.rest());
  if (const Status lines = folder_->make_room_for_end(); !lines.ok()) {
    if (outcome.kind == OutcomeKind::kDone) {
      outcome.kind = OutcomeKind::kFailed;
      outcome.cause_kind = "run_folder_failed";
      outcome.error = lines.error();
    } else {
      say("warning: lines of this run are lost: " + lines.error().to_string());
    }
  }
  if (progress_due_) show_progress();
  json cause = {{"kind", outcome.cause_kind}};
  if (!outcome.error.message.empty()) {
    cause["message"] = outcome.error.message;
    cause["code"] = error_code_name(outcome.error.code);
  }
  if (outcome.culprit >= 0) {
    const PlannedSlot& place = job_.slots[static_cast<size_t>(outcome.culprit)];
    cause.update({{"node", place.node},
                  {"slot", place.index},
                  {"pid", life_.pid(outcome.culprit)},
                  {"actors", actors_of(outcome.culprit)},
                  {"log", places_[static_cast<size_t>(outcome.culprit)].log_path}});
  }
  result_ = {{"outcome", outcome.name()},
             {"exit_code", outcome.exit_code()},
             {"cause", cause},
             {"job", id_},
             {"name", job_.name},
             {"run_folder", job_.run_folder},
             {"results", host_results_},
             {"wall_s", std::chrono::duration<double>(Clock::now() - started_).count()}};
  json last_words = {{"outcome", outcome.name()}, {"cause", cause}};
  if (const auto steps = steps_done()) result_["steps_done"] = last_words["steps_done"] = *steps;
  if (const json last = json::parse(last_line_, nullptr, false); last.is_object() && last.contains("loss"))
    result_["last_loss"] = last["loss"];
  else if (host_results_.contains("loss") && host_results_["loss"].is_number())
    result_["last_loss"] = host_results_["loss"];  // of the run that was resumed, when no step was left
  around_.journal->record_state(id_, outcome.name(), journalled());
  folder_->append_event("ended", generation_.value, last_words);
  if (outcome.kind == OutcomeKind::kRefused && folder_->fresh())
    folder_->discard();
  else if (Status written = folder_->write_result(result_); !written.ok())
    say(written.error().to_string());
  around_.publish(
      {JobUpdate::Kind::kEnd, "", outcome.exit_code(), result_.dump(-1, ' ', false, json::error_handler_t::replace)});
  around_.ended();
}

std::optional<int64_t> JobRunner::steps_done() const {
  if (!serves_calls(job_.mode)) return life_.steps_done();
  if (!host_results_.contains("steps")) return std::nullopt;
  return host_results_["steps"].get<int64_t>();
}

std::vector<std::string> JobRunner::nodes() const {
  std::set<std::string> nodes;
  for (const PlannedSlot& slot : job_.slots) nodes.insert(slot.node);
  return {nodes.begin(), nodes.end()};
}

json JobRunner::actors_of(int slot) const {
  json actors = json::array();
  for (const auto& [group, rank] : places_[static_cast<size_t>(slot)].actors)
    actors.push_back({{"group", group}, {"rank", rank}});
  return actors;
}

json JobRunner::hosts_json() const {
  json hosts = json::array();
  for (size_t slot = 0; slot < job_.slots.size(); ++slot) {
    const PlannedSlot& place = job_.slots[slot];
    std::string phase = life_.host_phase(static_cast<int>(slot));
    if (ended() && phase != "exited") phase = "ended";
    for (const auto& [group, rank] : places_[slot].actors)
      hosts.push_back({{"node", place.node},
                       {"slot", place.index},
                       {"device", place.device},
                       {"pid", life_.pid(static_cast<int>(slot))},
                       {"group", group},
                       {"rank", rank},
                       {"phase", phase}});
  }
  return hosts;
}

json JobRunner::status() const {
  json status = {{"job", id_},
                 {"name", job_.name},
                 {"phase", job_phase_name(life_.phase())},
                 {"run_folder", job_.run_folder},
                 {"generation", generation_.value},
                 {"run_through", life_.grant().run_through},
                 {"hosts", hosts_json()}};
  if (const auto steps = steps_done()) status["step"] = *steps;
  if (!serves_calls(job_.mode)) status["total_steps"] = job_.total_steps;
  if (!result_.is_null()) status["result"] = result_;
  return status;
}

}  // namespace troupe::driver
