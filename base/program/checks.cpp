#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/program/graph.h"
#include "base/program/program.h"

namespace troupe {
namespace {

/// A call of the recorded loop: forward or backward of a group.
struct Call {
  Op op = Op::kForward;
  int group = 0;
  auto operator<=>(const Call&) const = default;
};

std::string name_of(const Program& program, const Call& call) {
  return program.groups[static_cast<size_t>(call.group)] + "." + op_name(call.op);
}

/// Groups along a circle of edges, the first again at the end; empty when there is none.
std::vector<int> circle_of_groups(const Program& program) {
  std::vector<int> state(program.groups.size(), 0), path;  // 0: new, 1: on the path, 2: done
  std::vector<int> found;
  const auto visit = [&](const auto& self, int g) -> bool {
    state[static_cast<size_t>(g)] = 1;
    path.push_back(g);
    for (const ProgramEdge& e : program.edges) {
      if (e.producer != g || state[static_cast<size_t>(e.consumer)] == 2) continue;
      if (state[static_cast<size_t>(e.consumer)] == 1) {
        found.assign(std::find(path.begin(), path.end(), e.consumer), path.end());
        found.push_back(e.consumer);
        return true;
      }
      if (self(self, e.consumer)) return true;
    }
    path.pop_back();
    state[static_cast<size_t>(g)] = 2;
    return false;
  };
  for (size_t g = 0; g < program.groups.size(); ++g)
    if (state[g] == 0 && visit(visit, static_cast<int>(g))) break;
  return found;
}

/// What a call needs, with the reason: rows or gradients of an edge, or its own forward.
std::vector<std::pair<Call, std::string>> needs_of(const Program& program, const Call& call) {
  std::vector<std::pair<Call, std::string>> out;
  if (call.op == Op::kBackward) out.emplace_back(Call{Op::kForward, call.group}, "its activations");
  for (const ProgramEdge& e : program.edges) {
    if (call.op == Op::kForward && e.consumer == call.group)
      out.emplace_back(Call{Op::kForward, e.producer}, "its rows");
    if (call.op == Op::kBackward && e.gradient && e.producer == call.group)
      out.emplace_back(Call{Op::kBackward, e.consumer}, "its gradients");
  }
  return out;
}

Status check_edges(const Program& program) {
  const auto groups = static_cast<int>(program.groups.size());
  for (const ProgramEdge& e : program.edges)
    if (e.producer < 0 || e.producer >= groups || e.consumer < 0 || e.consumer >= groups)
      return invalid_argument("program: an edge names group " + std::to_string(std::max(e.producer, e.consumer)) +
                              " of " + std::to_string(groups));
  const std::vector<int> circle = circle_of_groups(program);
  if (circle.empty()) return {};
  std::string text;
  for (int g : circle) text += (text.empty() ? "" : " -> ") + program.groups[static_cast<size_t>(g)];
  return invalid_argument("program: groups feed each other in a circle, so that nobody can begin: " + text);
}

/// Whether collectives are posted, waited for and entered in one order; follows an order instruction by instruction.
class CollectiveCheck {
 public:
  CollectiveCheck(const Program& program, const StepShape& shape)
      : program_(program), shape_(shape), groups_(program.groups.size()) {
    for (const RecordedLoop& loop : program.loops)
      for (const RecordedCall& call : loop.calls)
        if (call.op == Op::kGather) groups_[static_cast<size_t>(call.group)].gathers = true;
  }

  /// What is wrong with `i` at its place; empty: nothing.
  std::string see(const Instruction& i) {
    if (i.op == Op::kCombine) return combine();
    Group& g = groups_[static_cast<size_t>(i.group)];
    if (due_ >= 0 && (i.group != due_ || (i.op != Op::kPost && i.op != Op::kReduce)))
      return "stands between the last backward of " + name(due_) +
             " and the reductions that it may post, so that ranks could enter communicators in different orders";
    switch (i.op) {
      case Op::kBackward:
        if (g.last_seen || g.posted > 0) return "adds to gradients whose reduction may be under way";
        ++g.backwards;
        g.last_seen = i.reduces;
        if (i.reduces) due_ = i.group;
        return {};
      case Op::kReduce:
        return reduce(i, g);
      case Op::kReduced:
        if (g.posted != program_.bucket_count(i.group)) return "waits for reductions that are not all posted";
        g.reduced = true;
        return {};
      case Op::kUpdate:
        if (!g.reduced) return "uses gradients whose reductions are not waited for";
        if (g.gathers && !g.gathered) return "changes weights whose last gather is not waited for";
        g.updated.insert(i.bucket);
        return {};
      case Op::kGather:
        return g.updated.contains(i.bucket) ? std::string() : "gathers weights before they are updated";
      case Op::kGathered:
        g.gathered = true;
        return g.updated.empty() ? std::string() : "waits for the gathers of the last step after weights have changed";
      default:
        return {};
    }
  }
  /// What is missing at the end of the order.
  std::string end() const {
    for (size_t g = 0; g < groups_.size(); ++g) {
      if (groups_[g].posted > 0 && !groups_[g].reduced) return "reductions of " + program_.groups[g] + " have no wait";
      if (groups_[g].last_seen && groups_[g].posted == 0)
        return "gradients of " + program_.groups[g] + " are never reduced";
    }
    return {};
  }

 private:
  struct Group {
    int backwards = 0, posted = 0;
    bool last_seen = false, reduced = false, gathers = false, gathered = false;
    std::set<int> updated;
  };
  const std::string& name(int group) const { return program_.groups[static_cast<size_t>(group)]; }

  std::string reduce(const Instruction& i, Group& g) {
    if (i.bucket != g.posted)
      return "is out of turn: bucket " + std::to_string(g.posted) + " of " +
             std::to_string(program_.bucket_count(i.group)) + " is next";
    if (g.backwards > 0 && g.backwards < shape_.units[static_cast<size_t>(i.group)])
      return "is posted before the last backward";
    if (++g.posted == program_.bucket_count(i.group)) due_ = -1;
    return {};
  }
  std::string combine() const {
    if (due_ >= 0) return "stands between the last backward of " + name(due_) + " and its reductions";
    for (size_t g = 0; g < groups_.size(); ++g)
      if (groups_[g].posted > 0 && !groups_[g].reduced)
        return "needs the sums of " + program_.groups[g] + ", which are not waited for";
    return {};
  }

  const Program& program_;
  const StepShape& shape_;
  std::vector<Group> groups_;
  int due_ = -1;  // the group whose last backward may have posted reductions that the order has not named yet
};

}  // namespace

Status check_program(const Program& program) {
  TROUPE_RETURN_IF_ERROR(check_edges(program));
  std::map<Call, size_t> recorded;
  for (const RecordedLoop& loop : program.loops)
    for (const RecordedCall& c : loop.calls)
      if (loop.units_of >= 0 && !recorded.emplace(Call{c.op, c.group}, recorded.size()).second)
        return invalid_argument("program: " + name_of(program, {c.op, c.group}) + " is recorded twice");
  for (const auto& [call, at] : recorded)
    for (const auto& [needed, what] : needs_of(program, call)) {
      const auto found = recorded.find(needed);
      const std::string mine = name_of(program, call), theirs = name_of(program, needed);
      if (found == recorded.end())
        return invalid_argument("program: " + mine + " needs " + what + " of " + theirs + ", which is never recorded");
      if (found->second > at)
        return invalid_argument("program: " + mine + " is recorded before " + theirs + " and needs " + what +
                                ": the circle is " + mine + " -> " + theirs + " -> " + mine);
    }
  return {};
}

Status check_order(const Program& program, const StepShape& shape, const std::vector<Instruction>& order) {
  using Key = std::tuple<int, int, int, bool>;  // edge, producer unit, consumer unit, gradient
  const auto key_of = [&](const Instruction& i) {
    const bool at_producer = i.group == program.edges[static_cast<size_t>(i.edge)].producer;
    return Key{i.edge, at_producer ? i.unit : i.peer_unit, at_producer ? i.peer_unit : i.unit, i.gradient};
  };
  std::map<Key, size_t> posted;
  std::set<Key> waited;
  std::set<std::tuple<int, Op, int, int>> done;  // group, instruction, unit, bucket
  CollectiveCheck collectives(program, shape);
  for (size_t at = 0; at < order.size(); ++at) {
    const Instruction& i = order[at];
    const auto fail = [&](const std::string& why) {
      return invalid_argument("order of instructions: " + i.to_string(program) + " (number " + std::to_string(at) +
                              ") " + why);
    };
    if (i.unit >= 0 && i.unit >= shape.units[static_cast<size_t>(i.group)])
      return fail("names a unit that the step does not have");
    if (i.op == Op::kPost) {
      if (!posted.emplace(key_of(i), at).second) return fail("posts the same rows twice");
      if (!done.contains({i.group, i.gradient ? Op::kBackward : Op::kForward, i.unit, -1}))
        return fail("posts before its rows exist");
    } else if (i.op == Op::kWait) {
      // One global order in which each wait follows its post cannot have a circle, whatever is buffered.
      if (!posted.contains(key_of(i))) {
        const auto later =
            std::find_if(order.begin() + static_cast<std::ptrdiff_t>(at), order.end(),
                         [&](const Instruction& other) { return other.op == Op::kPost && key_of(other) == key_of(i); });
        if (later == order.end()) return fail("waits for rows that are never posted");
        const std::string mine = i.to_string(program);
        return fail("waits for rows that are posted later; on a host of both the circle is " + mine + " -> " +
                    later->to_string(program) + " -> " + mine);
      }
      if (!waited.insert(key_of(i)).second) return fail("waits twice for the same rows");
    } else if (!done.insert({i.group, i.op, i.unit, i.bucket}).second) {
      return fail("runs twice");
    } else if (i.op == Op::kBackward && !done.contains({i.group, Op::kForward, i.unit, -1})) {
      return fail("runs before its forward");
    }
    const std::string wrong = collectives.see(i);
    if (!wrong.empty()) return fail(wrong);
  }
  if (const std::string missing = collectives.end(); !missing.empty())
    return invalid_argument("order of instructions: " + missing);
  for (const auto& [key, at] : posted)
    if (!waited.contains(key))
      return invalid_argument("order of instructions: " + order[at].to_string(program) + " has no receiver");
  for (size_t e = 0; e < program.edges.size(); ++e)
    for (size_t u = 0; u < shape.feeds[e].size(); ++u)
      for (int m : shape.feeds[e][u])
        if (!posted.contains(Key{static_cast<int>(e), static_cast<int>(u), m, false}))
          return invalid_argument("order of instructions: rows of unit " + std::to_string(u) + " of " +
                                  program.groups[static_cast<size_t>(program.edges[e].producer)] +
                                  " never reach unit " + std::to_string(m) + " of " +
                                  program.groups[static_cast<size_t>(program.edges[e].consumer)]);
  return {};
}

}  // namespace troupe
