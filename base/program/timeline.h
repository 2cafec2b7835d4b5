#pragma once

#include <functional>
#include <vector>

#include "base/program/program.h"

/// When the instructions of a step would run if work took known times: what a schedule can reach, beside what a run did
/// reach.
namespace troupe {

/// Seconds of a forward or backward of one unit.
using WorkSeconds = std::function<double(Op op, int group, int unit)>;

struct Timeline {
  std::vector<double> begin, end;  // [position in the order]; posts and waits take no time of their own
  double length = 0;               // until the last unit's work is done
};

/// Every group works alone, in its order; a wait ends when its post is made; messages take no time.
Timeline play(const Program& program, const std::vector<Instruction>& order, const WorkSeconds& seconds);

/// No schedule of these units can be shorter: the busiest group with the least that must come before its first and
/// after its last work, and the longest chain of needs.
double shortest_possible(const Program& program, const StepShape& shape, const WorkSeconds& seconds);

}  // namespace troupe
