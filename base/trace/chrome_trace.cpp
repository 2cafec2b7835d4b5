#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "base/trace/host_trace.h"

namespace troupe {
namespace {

using nlohmann::ordered_json;

/// Tracks of a process: 0 is the host itself, then its actors, then its second threads.
class Tracks {
 public:
  explicit Tracks(const HostTrace& host) : actors_(host.actors) {
    for (const Span& span : host.spans)
      if (!span.lane.empty()) lanes_.insert({span.group, span.rank, span.lane});
  }
  int of(const Span& span) const {
    if (!span.lane.empty()) {
      const auto at = lanes_.find({span.group, span.rank, span.lane});
      return static_cast<int>(actors_.size()) + 1 + static_cast<int>(std::distance(lanes_.begin(), at));
    }
    const auto at = std::find(actors_.begin(), actors_.end(), std::make_pair(span.group, span.rank));
    return at == actors_.end() ? 0 : static_cast<int>(at - actors_.begin()) + 1;
  }
  std::vector<std::string> names(const std::vector<std::string>& groups) const {
    const auto actor = [&](int group, int rank) {
      return groups[static_cast<size_t>(group)] + "/" + std::to_string(rank);
    };
    std::vector<std::string> out{"host"};
    for (const auto& [group, rank] : actors_) out.push_back(actor(group, rank));
    for (const auto& [group, rank, lane] : lanes_)
      out.push_back((group < 0 ? "host" : actor(group, rank)) + " " + lane);
    return out;
  }

 private:
  std::vector<std::pair<int, int>> actors_;
  std::set<std::tuple<int, int, std::string>> lanes_;
};

std::string title(const HostTrace& host, const Span& span) {
  std::string text = span.name;
  if (span.unit < 0) return text;
  text += " " + std::to_string(span.unit);
  if (span.peer_group < 0) return text;
  const bool leaves = span.name == "post" || span.kind == SpanKind::kSend;
  text += (leaves ? " > " : " < ") + host.groups[static_cast<size_t>(span.peer_group)] + " " +
          std::to_string(span.peer_unit);
  return text + (span.gradient ? " grad" : "");
}

/// The two ends of a message name it alike.
std::string message_name(const Span& span) {
  const bool sends = span.kind == SpanKind::kSend;
  const auto end = [](int group, int rank, int unit) {
    return std::to_string(group) + "/" + std::to_string(rank) + "/" + std::to_string(unit);
  };
  const std::string mine = end(span.group, span.rank, span.unit),
                    theirs = end(span.peer_group, span.peer_rank, span.peer_unit);
  return std::to_string(span.step) + (span.gradient ? "b" : "f") + (sends ? mine + ">" + theirs : theirs + ">" + mine);
}

void add_names(const HostTrace& host, const Tracks& tracks, ordered_json& events) {
  const auto meta = [&](const char* what, int track, const std::string& name) {
    events.push_back({{"ph", "M"}, {"name", what}, {"pid", host.slot}, {"tid", track}, {"args", {{"name", name}}}});
  };
  meta("process_name", 0,
       "slot " + std::to_string(host.slot) + " of node " + host.node + ", pid " + std::to_string(host.pid));
  const std::vector<std::string> names = tracks.names(host.groups);
  for (size_t t = 0; t < names.size(); ++t) meta("thread_name", static_cast<int>(t), names[t]);
}

ordered_json span_event(const HostTrace& host, const Span& span, int track, double begin_us, double length_us) {
  ordered_json e = {{"ph", "X"},
                    {"name", title(host, span)},
                    {"cat", span_kind_name(span.kind)},
                    {"pid", host.slot},
                    {"tid", track},
                    {"ts", begin_us},
                    {"dur", length_us}};
  e["args"] = {{"step", span.step}};
  if (span.group >= 0) e["args"]["group"] = host.groups[static_cast<size_t>(span.group)];
  if (span.unit >= 0) e["args"]["unit"] = span.unit;
  if (span.peer_rank >= 0)
    e["args"]["peer"] = host.groups[static_cast<size_t>(span.peer_group)] + "/" + std::to_string(span.peer_rank);
  if (span.bytes > 0) e["args"]["bytes"] = span.bytes;
  return e;
}

}  // namespace

std::string chrome_trace(const std::vector<HostTrace>& hosts) {
  int64_t zero = std::numeric_limits<int64_t>::max();
  for (const HostTrace& host : hosts)
    for (const Span& span : host.spans) zero = std::min(zero, span.begin_ns + host.clock.offset_ns);
  ordered_json events = ordered_json::array();
  ordered_json clocks = ordered_json::array();
  std::set<std::string> arrived;
  for (const HostTrace& host : hosts)
    for (const Span& span : host.spans)
      if (span.kind == SpanKind::kPeer && span.peer_rank >= 0) arrived.insert(message_name(span));
  for (const HostTrace& host : hosts) {
    const Tracks tracks(host);
    add_names(host, tracks, events);
    clocks.push_back({{"slot", host.slot},
                      {"offset_ns", host.clock.offset_ns},
                      {"error_ns", host.clock.error_ns},
                      {"dropped", host.dropped}});
    for (const Span& span : host.spans) {
      const auto us = [&](int64_t ns) { return static_cast<double>(ns + host.clock.offset_ns - zero) / 1e3; };
      const int track = tracks.of(span);
      events.push_back(
          span_event(host, span, track, us(span.begin_ns), static_cast<double>(span.end_ns - span.begin_ns) / 1e3));
      const bool sends = span.kind == SpanKind::kSend;
      if ((!sends && span.kind != SpanKind::kPeer) || span.peer_rank < 0 || !arrived.contains(message_name(span)))
        continue;
      ordered_json arrow = {{"ph", sends ? "s" : "f"},
                            {"name", "rows"},
                            {"cat", "message"},
                            {"id", message_name(span)},
                            {"pid", host.slot},
                            {"tid", track},
                            {"ts", us(sends ? span.begin_ns : span.end_ns)}};
      if (!sends) arrow["bp"] = "e";
      events.push_back(std::move(arrow));
    }
  }
  return ordered_json{
      {"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}, {"otherData", {{"clocks", std::move(clocks)}}}}
      .dump();
}

}  // namespace troupe
