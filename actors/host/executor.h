#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "actors/host/actor.h"
#include "actors/host/instruction_loop.h"
#include "actors/host/job_context.h"

/// Runs a step's instructions for the actors of this host, in the job's global order.
namespace troupe {

/// Seconds spent by this host in instructions of one kind, by group.
using OpSeconds = std::map<std::pair<int, Op>, double>;

struct StepOutcome {
  OpSeconds seconds;                 // of this host
  StepSums sums;                     // over all ranks of all groups
  double grad_norm = 0;              // before clipping
  bool skipped = false;              // non-finite: no weights changed
  std::map<std::string, double> lr;  // by trained component
};

/// Called on the executor's thread between combine and update of a training step: gradients are reduced, not clipped.
using GradientHook = std::function<Status(int64_t step)>;

/// Owner thread only. An error names the instruction that failed.
class Executor {
 public:
  /// `actors` are complete and stay where they are.
  Executor(const JobContext& job, std::vector<std::unique_ptr<Actor>>& actors, Boundary& boundary);
  /// One step of training; weights change. `updates` counts the optimizer's updates, this one included if it is not
  /// skipped.
  Result<StepOutcome> train(StepInput& input, int64_t updates, const GradientHook& hook);
  /// Forward passes only.
  Result<StepOutcome> evaluate(StepInput& input);
  /// With fences, StepOutcome::seconds holds what the device spent, not what handing it the work took; steps then run
  /// slower on GPUs.
  void fence_instructions(bool fence) { fence_ = fence; }

 private:
  Result<StepOutcome> run(const Program& program, StepInput& input, int64_t updates, bool evaluation,
                          const GradientHook& hook);
  Status run_instruction(const Instruction& instruction, Actor& actor, int64_t updates, const StepOutcome& outcome);
  std::map<std::string, double> learning_rates(int64_t step) const;
  Status combine(StepOutcome& outcome, bool evaluation);
  Result<StepSums> group_sums(Actor& actor, bool evaluation, bool first_on_host);

  const JobContext& job_;
  std::vector<std::unique_ptr<Actor>>& actors_;
  Boundary& boundary_;
  InstructionLoop loop_;
  bool fence_ = false;
  int64_t step_ = 0;  // under way
};

}  // namespace troupe
