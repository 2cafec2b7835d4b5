#include "driver/supervision/job_life.h"

#include <algorithm>

namespace troupe::driver {

const char* Outcome::name() const {
  switch (kind) {
    case OutcomeKind::kDone:
      return "done";
    case OutcomeKind::kFailed:
      return "failed";
    case OutcomeKind::kRefused:
      return "refused";
    case OutcomeKind::kStopped:
      return "stopped";
    case OutcomeKind::kCancelled:
      return "cancelled";
  }
  return "failed";
}

int Outcome::exit_code() const {
  switch (kind) {
    case OutcomeKind::kDone:
      return 0;
    case OutcomeKind::kFailed:
      return 1;
    case OutcomeKind::kRefused:
      return 2;
    case OutcomeKind::kStopped:
      return 75;
    case OutcomeKind::kCancelled:
      return 130;
  }
  return 1;
}

const char* job_phase_name(JobPhase phase) {
  switch (phase) {
    case JobPhase::kWaiting:
      return "waiting for workers";
    case JobPhase::kIndexing:
      return "indexing";
    case JobPhase::kSpawning:
      return "starting hosts";
    case JobPhase::kLoading:
      return "loading";
    case JobPhase::kRunning:
      return "running";
    case JobPhase::kFinishing:
      return "finishing";
    case JobPhase::kGathering:
      return "gathering evidence";
    case JobPhase::kStopping:
      return "stopping";
    case JobPhase::kEnded:
      return "ended";
  }
  return "unknown";
}

JobLife::JobLife(JobLifeOptions options, Time now)
    : options_(std::move(options)),
      hosts_(options_.places.size()),
      window_(static_cast<int>(options_.places.size()), options_.window, options_.first_step),
      blame_(options_.places),
      now_(now),
      quiet_since_(now) {}

std::vector<JobEffect> JobLife::step(const JobEvent& event, Time now) {
  now_ = now;
  effects_.clear();
  if (phase_ != JobPhase::kEnded) {
    std::visit([this](const auto& e) { on(e); }, event);
    if (phase_ == JobPhase::kGathering && (blame_.complete() || *blame_.due() <= now_)) conclude();
    end_when_empty();
  }
  return std::move(effects_);
}

JobLife::Time JobLife::next_deadline() const {
  Time next = quiet_since_ + options_.waiting_line;
  if (phase_ == JobPhase::kGathering) next = std::min(next, *blame_.due());
  if (deadline_) next = std::min(next, *deadline_);
  if (loop_due_) next = std::min(next, *loop_due_);
  return next;
}

void JobLife::enter(JobPhase phase) {
  phase_ = phase;
  quiet_since_ = now_;
  deadline_.reset();
  effects_.emplace_back(job_effect::PhaseChanged{phase});
}

bool JobLife::any_process() const {
  return spawn_requested_ && std::any_of(hosts_.begin(), hosts_.end(), [](const Host& h) { return !h.exited; });
}

Outcome JobLife::failure(const std::string& kind, Error error) const {
  Outcome outcome;
  outcome.kind = OutcomeKind::kFailed;
  outcome.cause_kind = kind;
  outcome.error = std::move(error);
  return outcome;
}

void JobLife::request_hosts() {
  enter(JobPhase::kSpawning);
  spawn_requested_ = true;
  for (Host& host : hosts_) host.phase = "starting";
  effects_.emplace_back(job_effect::SpawnHosts{});
}

void JobLife::on(const job_event::WorkersReady&) {
  if (phase_ != JobPhase::kWaiting) return;
  if (options_.needs_index) {
    enter(JobPhase::kIndexing);
    effects_.emplace_back(job_effect::StartIndex{});
  } else {
    request_hosts();
  }
}

void JobLife::on(const job_event::WorkersMissing& event) {
  if (phase_ != JobPhase::kWaiting) return;
  Outcome outcome =
      failure("worker_missing", deadline_exceeded("no worker registered within " + event.waited + " for " + event.who));
  outcome.kind = OutcomeKind::kRefused;
  stop_with(std::move(outcome));
}

void JobLife::on(const job_event::IndexDone&) {
  if (phase_ != JobPhase::kIndexing) return;
  request_hosts();
}

void JobLife::on(const job_event::IndexFailed& event) {
  if (phase_ != JobPhase::kIndexing) return;
  Outcome outcome = failure(event.refusal ? "refused" : "index_failed", event.error);
  if (event.refusal) outcome.kind = OutcomeKind::kRefused;
  stop_with(std::move(outcome));
}

void JobLife::on(const job_event::HostSpawned& event) {
  Host& host = hosts_[static_cast<size_t>(event.slot)];
  host.spawned = true;
  host.pid = event.pid;
  if (phase_ == JobPhase::kSpawning &&
      std::all_of(hosts_.begin(), hosts_.end(), [](const Host& h) { return h.spawned; }))
    enter(JobPhase::kLoading);
}

void JobLife::on(const job_event::SpawnFailed& event) {
  hosts_[static_cast<size_t>(event.slot)].exited = true;
  if (ending() || phase_ == JobPhase::kGathering) return;
  const HostPlace& place = options_.places[static_cast<size_t>(event.slot)];
  Outcome outcome =
      failure("spawn_failed", wrap(event.error, "host of " + place.roles() + " (node " + place.node + ", slot " +
                                                    std::to_string(place.index) + ") could not be started"));
  outcome.culprit = event.slot;
  stop_with(std::move(outcome));
}

void JobLife::on(const job_event::HostHello& event) {
  Host& host = hosts_[static_cast<size_t>(event.slot)];
  if (host.helloed || ending()) return;
  host.helloed = true;
  host.phase = "loading";
  effects_.emplace_back(job_effect::AssignHost{event.slot});
}

void JobLife::on(const job_event::HostPhase& event) { hosts_[static_cast<size_t>(event.slot)].phase = event.phase; }

void JobLife::on(const job_event::HostReady& event) {
  Host& host = hosts_[static_cast<size_t>(event.slot)];
  host.ready = true;
  host.phase = "ready";
  if (options_.prepared_when_ready) window_.prepared(event.slot, options_.first_step);
  if ((phase_ != JobPhase::kLoading && phase_ != JobPhase::kSpawning) ||
      !std::all_of(hosts_.begin(), hosts_.end(), [](const Host& h) { return h.ready; }))
    return;
  enter(JobPhase::kRunning);
  // What was prepared while others were loading counts now.
  effects_.emplace_back(job_effect::PublishGrant{window_.state()});
}

void JobLife::on(const job_event::HostPrepared& event) {
  const auto grant = window_.prepared(event.slot, event.step, event.bad);
  if (grant && phase_ == JobPhase::kRunning) effects_.emplace_back(job_effect::PublishGrant{*grant});
}

void JobLife::on(const job_event::HostStep& event) {
  const int64_t before = window_.done_by_all();
  const auto grant = window_.done(event.slot, event.step, now_);
  if (window_.done_by_all() > before) quiet_since_ = now_;
  hosts_[static_cast<size_t>(event.slot)].phase = "running";
  if (grant && phase_ == JobPhase::kRunning) effects_.emplace_back(job_effect::PublishGrant{*grant});
}

void JobLife::on(const job_event::HostFinished& event) {
  Host& host = hosts_[static_cast<size_t>(event.slot)];
  host.finished = true;
  host.phase = "finished";
  if (ending() || phase_ == JobPhase::kGathering) return;
  if (!std::all_of(hosts_.begin(), hosts_.end(), [](const Host& h) { return h.finished; })) return;
  outcome_ = {};
  // A stop that came too late to cut anything off is no stop: all steps may have been done. The host says so by its
  // last step.
  if (save_requested_ && window_.state().stop_after >= 0 && window_.done_by_all() == window_.state().stop_after) {
    outcome_.kind = OutcomeKind::kStopped;
    outcome_.cause_kind = "stopped";
    outcome_.error = cancelled("stopped with a checkpoint after step " + std::to_string(window_.done_by_all()));
  }
  enter(JobPhase::kFinishing);
  deadline_ = now_ + options_.finish_timeout;
}

void JobLife::on(const job_event::HostError& event) {
  if (ending() || phase_ == JobPhase::kFinishing) return;
  blame_.host_error(event.slot, event.error, now_);
  gather();
}

void JobLife::on(const job_event::HostExited& event) {
  Host& host = hosts_[static_cast<size_t>(event.slot)];
  host.exited = true;
  host.phase = "exited";
  if (ending() || phase_ == JobPhase::kFinishing) return;
  if (host.finished && event.exit.signal == 0 && event.exit.exit_code == 0) return;
  blame_.host_exited(event.slot, event.exit, now_);
  gather();
}

void JobLife::on(const job_event::LinkLost& event) {
  const Host& host = hosts_[static_cast<size_t>(event.slot)];
  if (ending() || phase_ == JobPhase::kFinishing || host.finished || host.exited) return;
  blame_.link_lost(event.slot, now_);
  gather();
}

void JobLife::on(const job_event::WorkerLost& event) {
  bool concerned = false;
  for (size_t slot = 0; slot < hosts_.size(); ++slot) {
    if (options_.places[slot].node != event.node) continue;
    concerned = true;
    // Its hosts die with it; nobody is left to report that.
    hosts_[slot].exited = true;
  }
  if (!concerned || ending() || phase_ == JobPhase::kFinishing || phase_ == JobPhase::kWaiting) return;
  blame_.worker_lost(event.node, now_);
  gather();
}

void JobLife::on(const job_event::JournalFailed& event) {
  // Nothing is granted any more, and while evidence is gathered the first cause is another.
  if (ending() || phase_ == JobPhase::kFinishing || phase_ == JobPhase::kGathering) return;
  stop_with(failure("journal_failed", make_error(event.error.code, "the driver cannot journal what it does next: " +
                                                                       event.error.message)));
}

void JobLife::on(const job_event::RunFolderFailed& event) {
  // The reserve may take what is left, and while evidence is gathered the first cause is another.
  if (ending() || phase_ == JobPhase::kFinishing || phase_ == JobPhase::kGathering) return;
  stop_with(failure("run_folder_failed", event.error));
}

void JobLife::on(const job_event::Cancel& event) {
  if (ending()) return;
  Outcome outcome;
  outcome.kind = OutcomeKind::kCancelled;
  outcome.cause_kind = event.interrupt ? "user_interrupt" : "cancelled";
  outcome.error = cancelled(event.interrupt ? "stopped by the user" : "cancelled");
  stop_with(std::move(outcome));
}

void JobLife::on(const job_event::Save&) {
  if (save_requested_ || ending() || phase_ == JobPhase::kFinishing || phase_ == JobPhase::kGathering) return;
  if (phase_ != JobPhase::kRunning) {
    if (options_.prepared_when_ready) return on(job_event::Cancel{true});  // an evaluation has nothing to resume
    Outcome outcome;
    outcome.kind = OutcomeKind::kStopped;
    outcome.cause_kind = "stopped";
    outcome.error = cancelled("stopped before the first step: there was nothing to save");
    return stop_with(std::move(outcome));
  }
  save_requested_ = true;
  deadline_ = now_ + options_.save_grace;
  if (const auto grant = window_.stop(true)) effects_.emplace_back(job_effect::PublishGrant{*grant});
}

void JobLife::on(const job_event::HostFinishing& event) {
  Host& host = hosts_[static_cast<size_t>(event.slot)];
  host.finishing = true;
  host.phase = "finishing";
}

void JobLife::on(const job_event::LoopEnded& event) {
  if (ending() || loop_end_) return;
  loop_end_ = event;
  // A loop often fails because a host did, whose own word may still be on its way.
  loop_due_ = now_ + (event.how == LoopEnd::kLeft ? options_.loop_timeout : Blame::kGather);
}

void JobLife::judge_loop() {
  loop_due_.reset();
  if (ending() || phase_ == JobPhase::kFinishing || phase_ == JobPhase::kGathering) return;
  if (std::all_of(hosts_.begin(), hosts_.end(), [](const Host& h) { return h.finishing; })) return;
  Outcome outcome = failure("loop_failed", loop_end_->error);
  if (loop_end_->how == LoopEnd::kSaved) {
    outcome.kind = OutcomeKind::kStopped;
    outcome.cause_kind = "stopped";
    outcome.error = cancelled("stopped by its loop, which had saved");
  } else if (loop_end_->how == LoopEnd::kStopped) {
    return on(job_event::Cancel{true});
  }
  stop_with(std::move(outcome));
}

void JobLife::on(const job_event::Tick&) {
  if (loop_due_ && now_ >= *loop_due_) judge_loop();
  if (deadline_ && now_ >= *deadline_) {
    deadline_.reset();
    if (phase_ == JobPhase::kRunning && save_requested_) {
      stop_with(failure("save_timeout", deadline_exceeded("the checkpoint was not written within the grace time")));
    } else if (phase_ == JobPhase::kFinishing) {
      stop_with(outcome_);
    } else if (phase_ == JobPhase::kStopping) {
      end();
      return;
    }
  }
  if (now_ - quiet_since_ >= options_.waiting_line) {
    quiet_since_ = now_;
    if (phase_ == JobPhase::kRunning && !options_.reports_steps) return;
    effects_.emplace_back(job_effect::Waiting{waiting_text()});
  }
}

void JobLife::gather() {
  if (phase_ == JobPhase::kGathering) return;
  enter(JobPhase::kGathering);
}

void JobLife::conclude() {
  Verdict verdict = blame_.verdict();
  const ErrorCode code = verdict.error.code;
  Outcome outcome = failure(verdict.kind, std::move(verdict.error));
  outcome.culprit = verdict.slot;
  // Before the first grant nothing has run: an unusable spec, model or data set is a refusal.
  if (verdict.kind == "host_error" && window_.state().run_through < options_.first_step &&
      (code == ErrorCode::kInvalidArgument || code == ErrorCode::kNotFound || code == ErrorCode::kUnimplemented ||
       code == ErrorCode::kDataLoss)) {
    outcome.kind = OutcomeKind::kRefused;
    outcome.cause_kind = "refused";
    // What is wrong with the request matters, not which rank saw it first; its log goes with the run folder.
    const Error own = outcome.error.cause ? *outcome.error.cause : outcome.error;
    outcome.error = own;
  }
  stop_with(std::move(outcome));
}

void JobLife::stop_with(Outcome outcome) {
  outcome_ = std::move(outcome);
  enter(JobPhase::kStopping);
  deadline_ = now_ + options_.stop_timeout;
  effects_.emplace_back(job_effect::Terminate{options_.terminate_grace});
}

void JobLife::end_when_empty() {
  if ((phase_ == JobPhase::kStopping || phase_ == JobPhase::kFinishing) && !any_process()) end();
}

void JobLife::end() {
  phase_ = JobPhase::kEnded;
  outcome_.steps_done = window_.done_by_all();
  effects_.emplace_back(job_effect::End{outcome_});
}

std::string JobLife::waiting_text() const {
  std::string text = job_phase_name(phase_);
  std::string who;
  int64_t slowest = window_.done_by_all();
  for (size_t slot = 0; slot < hosts_.size(); ++slot) {
    const Host& host = hosts_[slot];
    const bool waited_for =
        phase_ == JobPhase::kSpawning  ? !host.spawned
        : phase_ == JobPhase::kLoading ? !host.ready
        : phase_ == JobPhase::kRunning ? !host.finished && window_.done_by(static_cast<int>(slot)) == slowest
        : phase_ == JobPhase::kFinishing || phase_ == JobPhase::kStopping ? spawn_requested_ && !host.exited
                                                                          : false;
    if (!waited_for) continue;
    const HostPlace& place = options_.places[slot];
    who += (who.empty() ? "" : ", ") + place.roles() + " (node " + place.node + ", slot " +
           std::to_string(place.index) + ": " + host.phase + ")";
  }
  if (phase_ == JobPhase::kRunning) text += ", step " + std::to_string(slowest + 1);
  return who.empty() ? text : text + ": waiting for " + who;
}

}  // namespace troupe::driver
