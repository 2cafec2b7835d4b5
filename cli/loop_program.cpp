#include "cli/loop_program.h"

namespace troupe::cli {
namespace {

using Clock = std::chrono::steady_clock;
/// For the hosts to end, after the loop has finished the job and left.
constexpr std::chrono::seconds kFinish{20};

}  // namespace

Result<std::unique_ptr<LoopProgram>> LoopProgram::start(const std::vector<std::string>& arguments,
                                                        const std::string& driver, const std::string& job) {
  std::unique_ptr<LoopProgram> loop(new LoopProgram());
  loop->program_ = arguments.front();
  TROUPE_ASSIGN(loop->spawner_, worker::Spawner::create([state = loop->state_](int, int exit_code, int signal) {
                  {
                    std::lock_guard lock(state->mutex);
                    state->ended = Ended{exit_code, signal, Clock::now()};
                  }
                  state->changed.notify_all();
                }));
  worker::SpawnSpec spec;
  spec.arguments = arguments;
  spec.environment = {{"TROUPE_DRIVER", driver}, {"TROUPE_JOB", job}};
  TROUPE_ASSIGN(loop->pid_, loop->spawner_->spawn(spec));
  return loop;
}

void LoopProgram::look(driver::Driver& driver, const std::string& job) {
  std::optional<Ended> ended;
  {
    std::lock_guard lock(state_->mutex);
    ended = state_->ended;
  }
  if (!ended || told_) return;
  const bool clean = ended->signal == 0 && ended->exit_code == 0;
  if (clean && Clock::now() < ended->at + kFinish) return;
  told_ = true;
  if (signalled_ && !clean) {
    static_cast<void>(driver.cancel(job, true));
    return;
  }
  const std::string how = ended->signal != 0 ? "was killed by signal " + std::to_string(ended->signal)
                                             : "exited with status " + std::to_string(ended->exit_code);
  static_cast<void>(
      driver.loop_failed(job, make_error(ErrorCode::kFailedPrecondition,
                                         "the loop " + program_ + " " + how + " without having finished the job")));
}

bool LoopProgram::leave(std::chrono::milliseconds timeout) {
  bool clean;
  {
    std::unique_lock lock(state_->mutex);
    state_->changed.wait_for(lock, timeout, [this] { return state_->ended.has_value(); });
    clean = state_->ended && state_->ended->signal == 0 && state_->ended->exit_code == 0;
  }
  spawner_.reset();
  return clean;
}

void LoopProgram::signal(int number) {
  signalled_ = true;
  spawner_->signal(pid_, number);
}

}  // namespace troupe::cli
