#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/program/program.h"
#include "base/trace/trace_log.h"

/// Runs a step's order of instructions on one host: those of the actors that are here, in the order of all. Knows no
/// tensor, so that the executor, benches and tests with stand-in work run through the same code.
namespace troupe {

/// What the loop needs of its host. `actor`: position in the loop's list of actors.
struct InstructionWork {
  std::function<Status(const Instruction&, size_t actor)> perform;
  std::function<Status(const Instruction&)> combine;
  /// Before each instruction, for whoever watches the host; group and rank of the actor.
  std::function<void(const Instruction&, int group, int rank)> progress;
  /// After each instruction, with what it took here; may be empty.
  std::function<void(const Instruction&, double seconds)> account;
};

/// Owner thread only. Refers to `trace` (may be null).
class InstructionLoop {
 public:
  /// `actors`: group and rank of each on this host.
  InstructionLoop(std::vector<std::pair<int, int>> actors, TraceLog* trace)
      : actors_(std::move(actors)), trace_(trace) {}
  /// The first error ends the step; it names step and instruction.
  Status run(const Program& program, int64_t step, const std::vector<Instruction>& order, const InstructionWork& work);

 private:
  Status run_one(const Program& program, int64_t step, const Instruction& instruction, const InstructionWork& work);

  const std::vector<std::pair<int, int>> actors_;
  TraceLog* const trace_;
};

}  // namespace troupe
