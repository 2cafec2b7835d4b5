#include <algorithm>
#include <limits>

#include "base/program/graph.h"
#include "base/program/program.h"

namespace troupe {
namespace {

/// Orders one step. Each round goes over the groups, producers first, and takes the first work that can be done: a
/// forward within the group's window, else its next ripe backward (which makes room again). With wide windows this
/// gives phases, with narrow ones 1F1B.
class Scheduler {
 public:
  Scheduler(const Program& program, const StepShape& shape)
      : program_(program), shape_(shape), graph_(program), units_(program, shape), done_(program.groups.size()) {}

  std::vector<Instruction> run() {
    for (;;) {
      for (int g : graph_.order())
        if (!done(g).reduced && finished(g)) reduce(g);
      const bool worked = std::any_of(graph_.order().begin(), graph_.order().end(), [&](int g) { return advance(g); });
      if (!worked && !force()) break;
    }
    for (const RecordedLoop& loop : program_.loops)
      if (loop.units_of < 0) finish_step(loop);
    return std::move(order_);
  }

 private:
  struct Done {
    int forward = 0, backward = 0;
    bool reduced = false, gathered = false;
  };
  Done& done(int g) { return done_[static_cast<size_t>(g)]; }
  const Done& done(int g) const { return done_[static_cast<size_t>(g)]; }
  int unit_count(int g) const { return shape_.units[static_cast<size_t>(g)]; }
  const ProgramEdge& edge(int e) const { return program_.edges[static_cast<size_t>(e)]; }

  /// The rows that the group's next unit takes are made.
  bool fed(int g) const {
    return std::all_of(graph_.incoming(g).begin(), graph_.incoming(g).end(), [&](int e) {
      const auto& sources = units_.feeding(e, done(g).forward);
      return sources.empty() || sources.back() < done(edge(e).producer).forward;
    });
  }
  /// Everybody that took rows of the unit is through with it.
  bool released(int g, int unit) const {
    return std::all_of(graph_.outgoing(g).begin(), graph_.outgoing(g).end(), [&](int e) {
      const auto& fed = units_.fed_by(e, unit);
      const int c = edge(e).consumer;
      return fed.empty() || fed.back() < (edge(e).gradient ? done(c).backward : done(c).forward);
    });
  }
  /// Units between forward and backward, or, without a backward, until their rows have been taken.
  int first_held(int g) const {
    if (graph_.backwards(g)) return done(g).backward;
    int unit = 0;
    while (unit < done(g).forward && released(g, unit)) ++unit;
    return unit;
  }
  bool has_room(int g) const {
    if (graph_.outgoing(g).empty()) return true;
    const int first = first_held(g), next = done(g).forward;
    // Between a group and the end of the graph every further group keeps a unit busy.
    if (program_.credits > 0 && next - first >= program_.credits + graph_.depth(g) - 1) return false;
    if (program_.budget_bytes == 0 || next == first || static_cast<size_t>(g) >= shape_.held_bytes.size()) return true;
    const auto& bytes = shape_.held_bytes[static_cast<size_t>(g)];
    int64_t held = 0;
    for (int u = first; u <= next; ++u)
      held += static_cast<size_t>(u) < bytes.size() ? bytes[static_cast<size_t>(u)] : 0;
    return held <= program_.budget_bytes;
  }
  bool finished(int g) const { return !more_forward(g) && (!graph_.backwards(g) || done(g).backward == unit_count(g)); }
  bool more_forward(int g) const { return graph_.forwards(g) && done(g).forward < unit_count(g); }

  bool advance(int g) {
    if (done(g).backward < done(g).forward && graph_.backwards(g) && graph_.outgoing(g).empty())
      return backward(g), true;
    if (more_forward(g) && fed(g) && has_room(g)) return forward(g), true;
    if (graph_.backwards(g) && done(g).backward < done(g).forward && released(g, done(g).backward))
      return backward(g), true;
    return false;
  }
  /// Nobody can work within the windows: a consumer needs more units at once than there is room for, and gets them.
  bool force() {
    for (auto g = graph_.order().rbegin(); g != graph_.order().rend(); ++g) {
      if (!more_forward(*g)) continue;
      int wanting = *g;
      while (!fed(wanting)) {
        for (int e : graph_.incoming(wanting)) {
          const auto& sources = units_.feeding(e, done(wanting).forward);
          if (sources.empty() || sources.back() < done(edge(e).producer).forward) continue;
          wanting = edge(e).producer;
          break;
        }
      }
      forward(wanting);
      return true;
    }
    return false;
  }

  void forward(int g) {
    const int unit = done(g).forward++;
    for (int e : graph_.incoming(g))
      for (int u : units_.feeding(e, unit)) order_.push_back({Op::kWait, g, unit, e, u});
    order_.push_back({Op::kForward, g, unit});
    for (int e : graph_.outgoing(g))
      for (int m : units_.fed_by(e, unit)) order_.push_back({Op::kPost, g, unit, e, m});
    gathered(g);
    if (graph_.fused(g)) backward(g);
  }
  void backward(int g) {
    const int unit = done(g).backward++;
    for (int e : graph_.outgoing(g))
      if (edge(e).gradient)
        for (int m : units_.fed_by(e, unit)) order_.push_back({Op::kWait, g, unit, e, m, true});
    Instruction work{Op::kBackward, g, unit};
    work.reduces = unit + 1 == unit_count(g) && recorded(Op::kReduce, g);
    order_.push_back(work);
    for (int e : graph_.incoming(g))
      if (edge(e).gradient)
        for (int u : units_.feeding(e, unit)) order_.push_back({Op::kPost, g, unit, e, u, true});
  }
  bool recorded(Op op, int g) const {
    return std::any_of(program_.loops.begin(), program_.loops.end(), [&](const RecordedLoop& loop) {
      return loop.units_of < 0 && std::any_of(loop.calls.begin(), loop.calls.end(),
                                              [&](const RecordedCall& c) { return c.op == op && c.group == g; });
    });
  }
  void push_bucket(Op op, int g, int bucket) {
    Instruction i{op, g};
    i.bucket = bucket;
    order_.push_back(i);
  }
  /// The last step's gathers end in the first forward; a group without any unit waits for them before its reductions.
  void gathered(int g) {
    if (done(g).gathered) return;
    done(g).gathered = true;
    if (recorded(Op::kGather, g)) order_.push_back({Op::kGathered, g});
  }
  /// As soon as a group's gradients are whole; others may still be at work.
  void reduce(int g) {
    done(g).reduced = true;
    gathered(g);
    if (!recorded(Op::kReduce, g)) return;
    for (int bucket = 0; bucket < program_.bucket_count(g); ++bucket) push_bucket(Op::kReduce, g, bucket);
  }
  /// What is recorded once a step, behind all units.
  void finish_step(const RecordedLoop& loop) {
    for (const RecordedCall& call : loop.calls) {
      if (call.op != Op::kCombine) continue;
      for (int g = 0; g < static_cast<int>(program_.groups.size()); ++g)
        if (recorded(Op::kReduce, g)) order_.push_back({Op::kReduced, g});
      order_.push_back({Op::kCombine, call.group});
    }
    if (std::none_of(loop.calls.begin(), loop.calls.end(), [](const auto& c) { return c.op == Op::kUpdate; })) return;
    // The first layers first: the next forward needs them first. A bucket is gathered beside the next one's update.
    const int g = loop.calls.front().group;
    for (int bucket = program_.bucket_count(g) - 1; bucket >= 0; --bucket)
      for (const RecordedCall& call : loop.calls) push_bucket(call.op, call.group, bucket);
  }

  const Program& program_;
  const StepShape& shape_;
  const GroupGraph graph_;
  const UnitGraph units_;
  std::vector<Done> done_;
  std::vector<Instruction> order_;
};

}  // namespace

std::vector<Instruction> expand(const Program& program, const StepShape& shape) {
  return Scheduler(program, shape).run();
}

}  // namespace troupe
