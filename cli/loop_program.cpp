#include "cli/loop_program.h"

#include <csignal>

#include "cli/exit_codes.h"

namespace troupe::cli {
Result<std::unique_ptr<LoopProgram>> LoopProgram::start(const std::vector<std::string>& arguments,
                                                        const std::string& driver, const std::string& job) {
  std::unique_ptr<LoopProgram> loop(new LoopProgram());
  loop->program_ = arguments.front();
  TROUPE_ASSIGN(loop->spawner_, worker::Spawner::create([state = loop->state_](int, int exit_code, int signal) {
                  {
                    std::lock_guard lock(state->mutex);
                    state->ended = Ended{exit_code, signal};
                  }
                  state->changed.notify_all();
                }));
  worker::SpawnSpec spec;
  spec.arguments = arguments;
  spec.environment = {{"TROUPE_DRIVER", driver}, {"TROUPE_JOB", job}};
  TROUPE_ASSIGN(loop->pid_, loop->spawner_->spawn(spec));
  return loop;
}

std::string LoopProgram::describe(const Ended& ended) const {
  return "the loop " + program_ +
         (ended.signal != 0 ? " was killed by signal " + std::to_string(ended.signal)
                            : " exited with status " + std::to_string(ended.exit_code));
}

driver::LoopEnd LoopProgram::kind_of(const Ended& ended) const {
  using driver::LoopEnd;
  if (signal_ != 0 && ended.signal == 0) {
    if (ended.exit_code == kExitSaved) return LoopEnd::kSaved;
    if (ended.exit_code == kExitDone || ended.exit_code == kExitStopped || ended.exit_code == 128 + signal_)
      return LoopEnd::kStopped;
  }
  if (signal_ != 0 && ended.signal == signal_) return LoopEnd::kStopped;
  return ended.clean() ? LoopEnd::kLeft : LoopEnd::kFailed;
}

void LoopProgram::look(driver::Driver& driver, const std::string& job) {
  std::optional<Ended> ended;
  {
    std::lock_guard lock(state_->mutex);
    ended = state_->ended;
  }
  if (!ended || told_) return;
  told_ = true;
  static_cast<void>(driver.loop_ended(
      job, kind_of(*ended),
      make_error(ErrorCode::kFailedPrecondition, describe(*ended) + " without having finished the job")));
}

std::optional<std::string> LoopProgram::leave(std::chrono::milliseconds timeout) {
  spawner_->signal(pid_, SIGCONT);  // one that is stopped sees no end of its job
  std::optional<Ended> ended;
  {
    std::unique_lock lock(state_->mutex);
    state_->changed.wait_for(lock, timeout, [this] { return state_->ended.has_value(); });
    ended = state_->ended;
  }
  spawner_.reset();
  if (!ended)
    return "the loop " + program_ + " did not leave within " + std::to_string(timeout.count() / 1000) +
           " s and was killed";
  if (ended->clean()) return std::nullopt;
  return describe(*ended);
}

void LoopProgram::signal(int number) {
  signal_ = number;
  spawner_->signal(pid_, number);
  spawner_->signal(pid_, SIGCONT);  // one that is stopped would not see it
}

}  // namespace troupe::cli
