#pragma once

#include <cstdint>
#include <vector>

#include "base/program/program.h"

/// What a program's units need of each other; shared by the scheduler, the checks and the timeline.
namespace troupe {

/// The groups of a program that has passed check_program, seen as a graph. Refers to the program.
class GroupGraph {
 public:
  explicit GroupGraph(const Program& program);

  bool forwards(int group) const { return forwards_[index(group)]; }
  bool backwards(int group) const { return backwards_[index(group)]; }
  /// Backward of a unit follows its forward at once: both were recorded in one loop.
  bool fused(int group) const { return fused_[index(group)]; }
  /// Edges that the group feeds, and those that feed it, ascending.
  const std::vector<int>& outgoing(int group) const { return outgoing_[index(group)]; }
  const std::vector<int>& incoming(int group) const { return incoming_[index(group)]; }
  /// Edges on the longest way from the group to one that feeds nobody.
  int depth(int group) const { return depth_[index(group)]; }
  /// Producers before consumers; as in the spec where nothing is said.
  const std::vector<int>& order() const { return order_; }

 private:
  static size_t index(int group) { return static_cast<size_t>(group); }
  std::vector<bool> forwards_, backwards_, fused_;
  std::vector<std::vector<int>> outgoing_, incoming_;
  std::vector<int> depth_, order_;
};

/// Which units feed which, from both ends.
class UnitGraph {
 public:
  UnitGraph(const Program& program, const StepShape& shape);
  const std::vector<int>& fed_by(int edge, int producer_unit) const {
    return shape_.feeds[static_cast<size_t>(edge)][static_cast<size_t>(producer_unit)];
  }
  const std::vector<int>& feeding(int edge, int consumer_unit) const {
    return feeding_[static_cast<size_t>(edge)][static_cast<size_t>(consumer_unit)];
  }

 private:
  const StepShape& shape_;
  std::vector<std::vector<std::vector<int>>> feeding_;
};

}  // namespace troupe
