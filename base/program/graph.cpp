#include "base/program/graph.h"

#include <algorithm>

namespace troupe {

GroupGraph::GroupGraph(const Program& program) {
  const size_t groups = program.groups.size();
  forwards_.resize(groups);
  backwards_.resize(groups);
  fused_.resize(groups);
  outgoing_.resize(groups);
  incoming_.resize(groups);
  depth_.resize(groups);
  for (const RecordedLoop& loop : program.loops) {
    if (loop.units_of < 0) continue;
    const auto has = [&](Op op) {
      return std::any_of(loop.calls.begin(), loop.calls.end(), [&](const RecordedCall& c) { return c.op == op; });
    };
    const size_t g = index(loop.units_of);
    forwards_[g] = forwards_[g] || has(Op::kForward);
    backwards_[g] = backwards_[g] || has(Op::kBackward);
    fused_[g] = fused_[g] || (has(Op::kForward) && has(Op::kBackward));
  }
  for (size_t e = 0; e < program.edges.size(); ++e) {
    outgoing_[index(program.edges[e].producer)].push_back(static_cast<int>(e));
    incoming_[index(program.edges[e].consumer)].push_back(static_cast<int>(e));
  }
  std::vector<size_t> missing(groups);
  for (size_t g = 0; g < groups; ++g) missing[g] = incoming_[g].size();
  std::vector<bool> placed(groups, false);
  while (order_.size() < groups) {
    size_t next = 0;
    while (next < groups && (placed[next] || missing[next] > 0)) ++next;
    TROUPE_CHECK(next < groups);  // a circle: check_program refuses it
    placed[next] = true;
    order_.push_back(static_cast<int>(next));
    for (int e : outgoing_[next]) --missing[index(program.edges[static_cast<size_t>(e)].consumer)];
  }
  for (auto g = order_.rbegin(); g != order_.rend(); ++g)
    for (int e : outgoing_[index(*g)])
      depth_[index(*g)] =
          std::max(depth_[index(*g)], 1 + depth_[index(program.edges[static_cast<size_t>(e)].consumer)]);
}

UnitGraph::UnitGraph(const Program& program, const StepShape& shape) : shape_(shape), feeding_(program.edges.size()) {
  for (size_t e = 0; e < program.edges.size(); ++e) {
    feeding_[e].resize(static_cast<size_t>(shape.units[static_cast<size_t>(program.edges[e].consumer)]));
    for (size_t u = 0; u < shape.feeds[e].size(); ++u)
      for (int m : shape.feeds[e][u]) feeding_[e][static_cast<size_t>(m)].push_back(static_cast<int>(u));
  }
}

}  // namespace troupe
