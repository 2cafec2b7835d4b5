#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/program/program.h"

namespace troupe {
namespace {

/// Orders one step of a program: a producer's forward as long as it has credit, else its ripe backward (which returns the credit), else
/// the next consumer unit. With all credits this is the phase order of colocated groups, with few it is 1F1B between disjoint ones.
class Scheduler {
 public:
  Scheduler(const Program& program, const StepShape& shape) : program_(program), shape_(shape) {
    for (const RecordedLoop& loop : program.loops)
      for (const RecordedCall& call : loop.calls)
        if (loop.units_of >= 0) recorded_.insert({call.group, call.op});
  }

  std::vector<Instruction> run() {
    for (size_t e = 0; e < program_.edges.size(); ++e) run_edge(static_cast<int>(e));
    for (size_t g = 0; g < program_.groups.size(); ++g)
      if (!on_an_edge(static_cast<int>(g)))
        for (int u = 0; u < shape_.units[g]; ++u) unit_passes(static_cast<int>(g), u);
    for (const RecordedLoop& loop : program_.loops)
      if (loop.units_of < 0)
        for (const RecordedCall& call : loop.calls) order_.push_back({call.op, call.group});
    return std::move(order_);
  }

 private:
  bool has(int group, Op op) const { return recorded_.contains({group, op}); }
  bool on_an_edge(int group) const {
    return std::any_of(program_.edges.begin(), program_.edges.end(), [&](const ProgramEdge& e) { return e.producer == group || e.consumer == group; });
  }
  void unit_passes(int group, int unit) {
    if (has(group, Op::kForward)) order_.push_back({Op::kForward, group, unit});
    if (has(group, Op::kBackward)) order_.push_back({Op::kBackward, group, unit});
  }

  void producer_forward(int e, int unit) {
    const ProgramEdge& edge = program_.edges[static_cast<size_t>(e)];
    order_.push_back({Op::kForward, edge.producer, unit});
    for (int m : feeds(e, unit)) order_.push_back({Op::kPost, edge.producer, unit, e, m});
  }
  void producer_backward(int e, int unit) {
    const ProgramEdge& edge = program_.edges[static_cast<size_t>(e)];
    for (int m : feeds(e, unit)) order_.push_back({Op::kWait, edge.producer, unit, e, m, true});
    order_.push_back({Op::kBackward, edge.producer, unit});
  }
  void consumer_passes(int e, int unit) {
    const ProgramEdge& edge = program_.edges[static_cast<size_t>(e)];
    const std::vector<int> sources = feeders(e, unit);
    for (int u : sources) order_.push_back({Op::kWait, edge.consumer, unit, e, u});
    unit_passes(edge.consumer, unit);
    if (edge.gradient)
      for (int u : sources) order_.push_back({Op::kPost, edge.consumer, unit, e, u, true});
  }

  const std::vector<int>& feeds(int e, int unit) const { return shape_.feeds[static_cast<size_t>(e)][static_cast<size_t>(unit)]; }
  std::vector<int> feeders(int e, int consumer_unit) const {
    std::vector<int> result;
    const auto& all = shape_.feeds[static_cast<size_t>(e)];
    for (size_t u = 0; u < all.size(); ++u)
      if (std::binary_search(all[u].begin(), all[u].end(), consumer_unit)) result.push_back(static_cast<int>(u));
    return result;
  }

  void run_edge(int e) {
    const ProgramEdge& edge = program_.edges[static_cast<size_t>(e)];
    const int producers = shape_.units[static_cast<size_t>(edge.producer)], consumers = shape_.units[static_cast<size_t>(edge.consumer)];
    const bool backward = edge.gradient && has(edge.producer, Op::kBackward);
    const int credits = program_.credits > 0 ? program_.credits : std::max(producers, 1);
    int forwarded = 0, returned = 0, consumed = 0;
    const auto ripe = [&](int unit) {
      const auto& fed = feeds(e, unit);
      return unit < forwarded && (fed.empty() || fed.back() < consumed);
    };
    const auto ready = [&](int unit) {
      const auto sources = feeders(e, unit);
      return sources.empty() || sources.back() < forwarded;
    };
    while (forwarded < producers || consumed < consumers || (backward && returned < producers)) {
      // Without a backward pass a credit returns when the last consumer of the unit is done.
      const int held = forwarded - (backward ? returned : freed(e, forwarded, consumed));
      if (forwarded < producers && held < credits) {
        producer_forward(e, forwarded++);
      } else if (backward && returned < producers && ripe(returned)) {
        producer_backward(e, returned++);
      } else if (consumed < consumers && ready(consumed)) {
        consumer_passes(e, consumed++);
      } else {
        producer_forward(e, forwarded++);  // the next consumer unit needs more units than there are credits: it passes alone
      }
    }
  }

  int freed(int e, int forwarded, int consumed) const {
    int count = 0;
    while (count < forwarded && (feeds(e, count).empty() || feeds(e, count).back() < consumed)) ++count;
    return count;
  }

  const Program& program_;
  const StepShape& shape_;
  std::set<std::pair<int, Op>> recorded_;
  std::vector<Instruction> order_;
};

}  // namespace

std::vector<Instruction> expand(const Program& program, const StepShape& shape) { return Scheduler(program, shape).run(); }

Status check_order(const Program& program, const StepShape& shape, const std::vector<Instruction>& order) {
  using Key = std::tuple<int, int, int, bool>;  // edge, producer unit, consumer unit, gradient
  const auto key_of = [&](const Instruction& i) {
    const bool at_producer = i.group == program.edges[static_cast<size_t>(i.edge)].producer;
    return Key{i.edge, at_producer ? i.unit : i.peer_unit, at_producer ? i.peer_unit : i.unit, i.gradient};
  };
  std::map<Key, size_t> posted;
  std::set<Key> waited;
  std::set<std::tuple<int, Op, int>> done;
  for (size_t at = 0; at < order.size(); ++at) {
    const Instruction& i = order[at];
    const auto fail = [&](const std::string& why) { return invalid_argument("order of instructions: " + i.to_string(program) + " (number " + std::to_string(at) + ") " + why); };
    if (i.unit >= 0 && i.unit >= shape.units[static_cast<size_t>(i.group)]) return fail("names a unit that the step does not have");
    if (i.op == Op::kPost) {
      if (!posted.emplace(key_of(i), at).second) return fail("posts the same rows twice");
      if (!done.contains({i.group, i.gradient ? Op::kBackward : Op::kForward, i.unit})) return fail("posts before its rows exist");
    } else if (i.op == Op::kWait) {
      // One global order in which each wait follows its post cannot have a circle, whatever is buffered.
      if (!posted.contains(key_of(i))) return fail("waits for rows that are posted later or never");
      if (!waited.insert(key_of(i)).second) return fail("waits twice for the same rows");
    } else if (!done.insert({i.group, i.op, i.unit}).second) {
      return fail("runs twice");
    } else if (i.op == Op::kBackward && !done.contains({i.group, Op::kForward, i.unit})) {
      return fail("runs before its forward");
    }
  }
  for (const auto& [key, at] : posted)
    if (!waited.contains(key)) return invalid_argument("order of instructions: " + order[at].to_string(program) + " has no receiver");
  for (size_t e = 0; e < program.edges.size(); ++e)
    for (size_t u = 0; u < shape.feeds[e].size(); ++u)
      for (int m : shape.feeds[e][u])
        if (!posted.contains(Key{static_cast<int>(e), static_cast<int>(u), m, false}))
          return invalid_argument("order of instructions: rows of unit " + std::to_string(u) + " of " + program.groups[static_cast<size_t>(program.edges[e].producer)] +
                                  " never reach unit " + std::to_string(m) + " of " + program.groups[static_cast<size_t>(program.edges[e].consumer)]);
  return {};
}

}  // namespace troupe
