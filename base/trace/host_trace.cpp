#include "base/trace/host_trace.h"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>

namespace troupe {
namespace {

constexpr std::array<SpanKind, 5> kKinds = {SpanKind::kStep, SpanKind::kInstruction, SpanKind::kKernel, SpanKind::kSend,
                                            SpanKind::kPeer};

Result<SpanKind> kind_from_name(const std::string& name) {
  for (const SpanKind kind : kKinds)
    if (name == span_kind_name(kind)) return kind;
  return invalid_argument("trace: unknown kind of span '" + name + "'");
}

nlohmann::json span_to_json(const Span& s) {
  return {span_kind_name(s.kind), s.name,      s.lane,      s.step,     s.group, s.rank,     s.unit,
          s.peer_group,           s.peer_rank, s.peer_unit, s.gradient, s.bytes, s.begin_ns, s.end_ns};
}

Result<Span> span_from_json(const nlohmann::json& j) {
  Span s;
  TROUPE_ASSIGN(s.kind, kind_from_name(j.at(0)));
  s.name = j.at(1);
  s.lane = j.at(2);
  s.step = j.at(3);
  s.group = j.at(4);
  s.rank = j.at(5);
  s.unit = j.at(6);
  s.peer_group = j.at(7);
  s.peer_rank = j.at(8);
  s.peer_unit = j.at(9);
  s.gradient = j.at(10);
  s.bytes = j.at(11);
  s.begin_ns = j.at(12);
  s.end_ns = j.at(13);
  return s;
}

/// Length of the union of intervals, which are clipped to [begin, end).
int64_t covered(std::vector<std::pair<int64_t, int64_t>> intervals, int64_t begin, int64_t end) {
  std::sort(intervals.begin(), intervals.end());
  int64_t total = 0, at = begin;
  for (const auto& [from, to] : intervals) {
    const int64_t first = std::max(from, at), last = std::min(to, end);
    if (last <= first) continue;
    total += last - first;
    at = last;
  }
  return total;
}

}  // namespace

std::string HostTrace::to_json() const {
  nlohmann::ordered_json j;
  j["slot"] = slot;
  j["pid"] = pid;
  j["node"] = node;
  j["groups"] = groups;
  j["actors"] = actors;
  j["clock_offset_ns"] = clock.offset_ns;
  j["clock_error_ns"] = clock.error_ns;
  j["dropped"] = dropped;
  nlohmann::json list = nlohmann::json::array();
  for (const Span& span : spans) list.push_back(span_to_json(span));
  j["spans"] = std::move(list);
  return j.dump();
}

Result<HostTrace> HostTrace::from_json(const std::string& text) {
  const auto j = nlohmann::json::parse(text, nullptr, false);
  if (!j.is_object()) return invalid_argument("trace: not a JSON object");
  HostTrace trace;
  try {
    trace.slot = j.at("slot");
    trace.pid = j.at("pid");
    trace.node = j.at("node");
    trace.groups = j.at("groups").get<std::vector<std::string>>();
    trace.actors = j.at("actors").get<std::vector<std::pair<int, int>>>();
    trace.clock = {j.at("clock_offset_ns"), j.at("clock_error_ns")};
    trace.dropped = j.at("dropped");
    for (const auto& span : j.at("spans")) {
      TROUPE_ASSIGN(Span read, span_from_json(span));
      trace.spans.push_back(std::move(read));
    }
  } catch (const nlohmann::json::exception& e) {
    return invalid_argument(std::string("trace: ") + e.what());
  }
  return trace;
}

std::vector<StepCosts> step_costs(const HostTrace& host) {
  std::vector<StepCosts> out;
  for (const Span& step : host.spans) {
    if (step.kind != SpanKind::kStep) continue;
    StepCosts costs;
    costs.step = step.step;
    costs.step_ns = step.end_ns - step.begin_ns;
    std::vector<std::pair<int64_t, int64_t>> kernels, both;
    for (const Span& span : host.spans) {
      if (span.step != step.step || span.end_ns <= step.begin_ns || span.begin_ns >= step.end_ns) continue;
      if (span.kind == SpanKind::kSend) costs.sent_bytes += span.bytes;
      if (span.kind == SpanKind::kPeer) costs.received_bytes += span.bytes;
      if (!span.lane.empty() || (span.kind != SpanKind::kKernel && span.kind != SpanKind::kPeer)) continue;
      both.emplace_back(span.begin_ns, span.end_ns);
      if (span.kind == SpanKind::kKernel) kernels.emplace_back(span.begin_ns, span.end_ns);
    }
    costs.kernel_ns = covered(std::move(kernels), step.begin_ns, step.end_ns);
    const int64_t all = covered(std::move(both), step.begin_ns, step.end_ns);
    costs.peer_ns = all - costs.kernel_ns;
    costs.rest_ns = costs.step_ns - all;
    out.push_back(costs);
  }
  return out;
}

}  // namespace troupe
