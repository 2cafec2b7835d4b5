#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

/// How a job ended, as result.json says it.
namespace troupe::driver {

enum class OutcomeKind { kDone, kFailed, kRefused, kStopped, kCancelled };

/// cause_kind is one of:
///   none             it did its work
///   host_killed      an actor host died by a signal that we did not send
///   host_stopped     an actor host stood still (SIGSTOP) for a lease, 10 s at most, and was ended
///   host_exited      an actor host exited without having finished
///   host_error       a rank reported an error of its own
///   host_silent      an actor host's connection broke and its worker said nothing
///   peer_lost        ranks reported lost peers, and nobody else was found
///   worker_missing   a node's worker did not register in time
///   worker_lost      a node's worker no longer answers
///   spawn_failed     an actor host could not be started
///   index_failed     the index task died
///   refused          spec, model or data are not usable; the message says what would be
///   stopped          SIGTERM or SIGUSR1: saved (or stopped before there was anything to save) and resumable
///   save_timeout     SIGTERM or SIGUSR1, but saving outlasted the grace time
///   user_interrupt   Ctrl-C
///   cancelled        troupe cancel
///   journal_failed   the driver could not journal what it was about to do
///   run_folder_failed  the run folder took no more lines of metrics
///   loop_failed      the loop of `troupe run --loop` left without having finished the job
///   driver_error     a bug of the driver
struct Outcome {
  OutcomeKind kind = OutcomeKind::kDone;
  std::string cause_kind = "none";
  Error error;       // the first cause; empty message when done
  int culprit = -1;  // slot
  int64_t steps_done = 0;

  /// "done", "failed", "refused", "stopped" or "cancelled".
  const char* name() const;
  /// The process's exit code: 0, 1, 2, 75 or 130.
  int exit_code() const;
};

}  // namespace troupe::driver
