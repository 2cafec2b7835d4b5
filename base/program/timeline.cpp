#include "base/program/timeline.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "base/program/graph.h"

namespace troupe {

Timeline play(const Program& program, const std::vector<Instruction>& order, const WorkSeconds& seconds) {
  using Key = std::tuple<int, int, int, bool>;  // edge, producer unit, consumer unit, gradient
  std::map<Key, double> posted;
  std::vector<double> free_at(program.groups.size(), 0);
  Timeline line;
  for (const Instruction& i : order) {
    if (i.unit < 0) {
      line.begin.push_back(line.length);
      line.end.push_back(line.length);
      continue;
    }
    double& now = free_at[static_cast<size_t>(i.group)];
    double begin = now;
    if (i.op == Op::kPost || i.op == Op::kWait) {
      const bool at_producer = i.group == program.edges[static_cast<size_t>(i.edge)].producer;
      const Key key{i.edge, at_producer ? i.unit : i.peer_unit, at_producer ? i.peer_unit : i.unit, i.gradient};
      if (i.op == Op::kPost)
        posted[key] = now;
      else
        now = std::max(now, posted.at(key));
    } else {
      now += seconds(i.op, i.group, i.unit);
    }
    line.begin.push_back(begin);
    line.end.push_back(now);
    line.length = std::max(line.length, now);
  }
  return line;
}

namespace {

/// Longest chains through single units' work: until a unit's forward and backward have ended, and from their begin to
/// the end of the step.
class Chains {
 public:
  Chains(const Program& program, const StepShape& shape, const WorkSeconds& seconds)
      : program_(program), shape_(shape), seconds_(seconds), graph_(program), units_(program, shape) {
    for (int g : graph_.order())
      each_unit(g, [&](int u) { ends_[{Op::kForward, g, u}] = head(Op::kForward, g, u) + time(Op::kForward, g, u); });
    for (auto g = graph_.order().rbegin(); g != graph_.order().rend(); ++g)
      each_unit(*g, [&](int u) {
        ends_[{Op::kBackward, *g, u}] = head(Op::kBackward, *g, u) + time(Op::kBackward, *g, u);
      });
    for (int g : graph_.order())
      each_unit(g, [&](int u) {
        rest_[{Op::kBackward, g, u}] = time(Op::kBackward, g, u) + tail(Op::kBackward, g, u);
      });
    for (auto g = graph_.order().rbegin(); g != graph_.order().rend(); ++g)
      each_unit(*g, [&](int u) {
        rest_[{Op::kForward, *g, u}] = time(Op::kForward, *g, u) + tail(Op::kForward, *g, u);
      });
  }

  double bound() const {
    double longest = 0;
    for (size_t g = 0; g < program_.groups.size(); ++g) {
      double busy = 0, first = std::numeric_limits<double>::max(), last = first;
      each_unit(static_cast<int>(g), [&](int u) {
        for (const Op op : {Op::kForward, Op::kBackward}) {
          const Work w{op, static_cast<int>(g), u};
          if (time(op, static_cast<int>(g), u) <= 0) continue;
          busy += time(op, static_cast<int>(g), u);
          first = std::min(first, ends_.at(w) - time(op, static_cast<int>(g), u));
          last = std::min(last, rest_.at(w) - time(op, static_cast<int>(g), u));
          longest = std::max(longest, ends_.at(w));
        }
      });
      if (busy > 0) longest = std::max(longest, first + busy + last);
    }
    return longest;
  }

 private:
  using Work = std::tuple<Op, int, int>;
  template <typename F>
  void each_unit(int g, const F& f) const {
    for (int u = 0; u < shape_.units[static_cast<size_t>(g)]; ++u) f(u);
  }
  double time(Op op, int g, int u) const {
    const bool runs = op == Op::kForward ? graph_.forwards(g) : graph_.backwards(g);
    return runs ? seconds_(op, g, u) : 0;
  }
  const ProgramEdge& edge(int e) const { return program_.edges[static_cast<size_t>(e)]; }
  double at(const std::map<Work, double>& values, Op op, int g, int u) const {
    const auto found = values.find({op, g, u});
    return found == values.end() ? 0 : found->second;
  }
  double head(Op op, int g, int u) const {
    double longest = op == Op::kBackward ? at(ends_, Op::kForward, g, u) : 0;
    if (op == Op::kForward)
      for (int e : graph_.incoming(g))
        for (int v : units_.feeding(e, u)) longest = std::max(longest, at(ends_, op, edge(e).producer, v));
    else
      for (int e : graph_.outgoing(g))
        if (edge(e).gradient)
          for (int m : units_.fed_by(e, u)) longest = std::max(longest, at(ends_, op, edge(e).consumer, m));
    return longest;
  }
  double tail(Op op, int g, int u) const {
    double longest = op == Op::kForward ? at(rest_, Op::kBackward, g, u) : 0;
    if (op == Op::kForward)
      for (int e : graph_.outgoing(g))
        for (int m : units_.fed_by(e, u)) longest = std::max(longest, at(rest_, op, edge(e).consumer, m));
    else
      for (int e : graph_.incoming(g))
        if (edge(e).gradient)
          for (int v : units_.feeding(e, u)) longest = std::max(longest, at(rest_, op, edge(e).producer, v));
    return longest;
  }

  const Program& program_;
  const StepShape& shape_;
  const WorkSeconds& seconds_;
  const GroupGraph graph_;
  const UnitGraph units_;
  std::map<Work, double> ends_, rest_;
};

}  // namespace

double shortest_possible(const Program& program, const StepShape& shape, const WorkSeconds& seconds) {
  return Chains(program, shape, seconds).bound();
}

}  // namespace troupe
