#include "actors/host/instruction_loop.h"

#include <chrono>

namespace troupe {
namespace {

Span span_of(const Program& program, const Instruction& i, int64_t step, int group, int rank) {
  Span span;
  span.kind = SpanKind::kInstruction;
  span.name = op_name(i.op);
  span.step = step;
  span.group = group;
  span.rank = rank;
  span.unit = i.bucket >= 0 ? i.bucket : i.unit;
  if (i.edge < 0) return span;
  const ProgramEdge& edge = program.edges[static_cast<size_t>(i.edge)];
  span.peer_group = i.group == edge.producer ? edge.consumer : edge.producer;
  span.peer_unit = i.peer_unit;
  span.gradient = i.gradient;
  return span;
}

}  // namespace

Status InstructionLoop::run_one(const Program& program, int64_t step, const Instruction& i,
                                const InstructionWork& work) {
  if (i.op == Op::kCombine) {
    work.progress(i, actors_.front().first, actors_.front().second);
    const SpanScope scope(trace_, span_of(program, i, step, -1, -1));
    return work.combine(i);
  }
  for (size_t a = 0; a < actors_.size(); ++a) {
    const auto [group, rank] = actors_[a];
    if (group != i.group) continue;
    work.progress(i, group, rank);
    const SpanScope scope(trace_, span_of(program, i, step, group, rank));
    TROUPE_RETURN_IF_ERROR(work.perform(i, a));
  }
  return {};
}

Status InstructionLoop::run(const Program& program, int64_t step, const std::vector<Instruction>& order,
                            const InstructionWork& work) {
  for (const Instruction& i : order) {
    const auto begin = std::chrono::steady_clock::now();
    const Status done = run_one(program, step, i, work);
    if (!done.ok()) return wrap(done.error(), "step " + std::to_string(step) + ", " + i.to_string(program));
    if (work.account) work.account(i, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return {};
}

}  // namespace troupe
