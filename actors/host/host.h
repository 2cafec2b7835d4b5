#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "actors/host/actor.h"
#include "actors/host/executor.h"
#include "actors/host/job_context.h"
#include "actors/host/step_clock.h"

/// One actor host: the actors of a slot, from the assignment to the last report. Runs on the calling thread.
namespace troupe {

class Host {
 public:
  /// Opens data, meets the other ranks, loads weights; returns ready to run.
  static Result<std::unique_ptr<Host>> create(HostControl& control);
  /// Carries out the assignment's mode until it is done or told to stop.
  Status run();

  /// For those who drive the actors in another way than run(): the parts, complete and connected.
  JobContext& job() { return *job_; }
  Boundary& boundary() { return *boundary_; }
  std::vector<std::unique_ptr<Actor>>& actors() { return actors_; }
  /// Of the checkpoint that the job was resumed from, else 0.
  int64_t last_step() const { return last_step_; }

 private:
  explicit Host(std::unique_ptr<JobContext> job) : job_(std::move(job)) {}
  Status make_actors();
  Status load_checkpoint();
  Status train();
  Status train_step(StepInput& input, StepClock& clock);
  Status evaluate_and_report(int64_t step);
  Status save(int64_t step);
  Status export_model();
  Status run_evaluation();
  std::vector<FeedMember> members() const;

  std::unique_ptr<JobContext> job_;
  std::unique_ptr<Boundary> boundary_;
  std::vector<std::unique_ptr<Actor>> actors_;
  std::unique_ptr<Executor> executor_;
  int64_t last_step_ = 0;      // done
  int64_t skipped_total_ = 0;  // steps without an update
  int skipped_in_row_ = 0;
  int attempt_ = 1;                  // of the steps to come
  std::optional<double> last_loss_;  // of last_step_; none when that is not known
};

}  // namespace troupe
