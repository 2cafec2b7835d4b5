#include "base/trace/host_trace.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using namespace troupe;

namespace {

Span span(SpanKind kind, const char* name, int64_t begin, int64_t end) {
  Span s;
  s.kind = kind;
  s.name = name;
  s.step = 1;
  s.begin_ns = begin;
  s.end_ns = end;
  return s;
}

Span of(Span s, int group, int rank, int unit) {
  s.group = group;
  s.rank = rank;
  s.unit = unit;
  return s;
}

Span towards(Span s, int group, int rank, int unit, int64_t bytes) {
  s.peer_group = group;
  s.peer_rank = rank;
  s.peer_unit = unit;
  s.bytes = bytes;
  return s;
}

HostTrace host(int slot, int64_t offset, std::vector<Span> spans) {
  HostTrace trace;
  trace.slot = slot;
  trace.pid = 100 + slot;
  trace.node = "a";
  trace.groups = {"vision", "text"};
  trace.actors = {{slot, 0}};
  trace.clock = {offset, 5};
  trace.spans = std::move(spans);
  return trace;
}

}  // namespace

TEST_CASE("a host's trace survives its file") {
  const HostTrace one = host(1, -7, {towards(of(span(SpanKind::kSend, "send", 3, 9), 1, 0, 2), 0, 3, 4, 4096)});
  const auto again = HostTrace::from_json(one.to_json());
  REQUIRE(again.ok());
  CHECK(again->to_json() == one.to_json());
  CHECK(again->spans == one.spans);
  CHECK_FALSE(HostTrace::from_json("{").ok());
  CHECK_FALSE(HostTrace::from_json("{\"slot\": 1}").ok());
  CHECK_FALSE(HostTrace::from_json(
                  R"({"slot":0,"pid":1,"node":"a","groups":[],"actors":[],"clock_offset_ns":0,"clock_error_ns":0,
                                      "dropped":0,"spans":[["nonsense"]]})")
                  .ok());
}

TEST_CASE("costs of a step: kernels and waits count once where they overlap, the rest is orchestration") {
  const HostTrace one =
      host(0, 0,
           {span(SpanKind::kStep, "step", 100, 200), span(SpanKind::kInstruction, "forward", 100, 160),
            span(SpanKind::kKernel, "forward", 110, 140), span(SpanKind::kKernel, "inner", 120, 130),
            towards(span(SpanKind::kPeer, "receive", 135, 170), 1, 0, 0, 64),
            towards(span(SpanKind::kSend, "send", 171, 172), 1, 0, 0, 32), span(SpanKind::kKernel, "outside", 20, 90)});
  const auto costs = step_costs(one);
  REQUIRE(costs.size() == 1);
  CHECK(costs[0].step_ns == 100);
  CHECK(costs[0].kernel_ns == 30);
  CHECK(costs[0].peer_ns == 30);
  CHECK(costs[0].rest_ns == 40);
  CHECK(costs[0].received_bytes == 64);
  CHECK(costs[0].sent_bytes == 32);
}

TEST_CASE("work of a second thread is no time of the executor") {
  Span lane = span(SpanKind::kKernel, "reduce", 0, 10);
  lane.lane = "reduce";
  const auto costs = step_costs(host(0, 0, {span(SpanKind::kStep, "step", 0, 10), lane}));
  REQUIRE(costs.size() == 1);
  CHECK(costs[0].kernel_ns == 0);
  CHECK(costs[0].rest_ns == 10);
}

TEST_CASE("the merged trace is on one clock and joins the two ends of a message") {
  const HostTrace sender = host(0, 1000, {towards(of(span(SpanKind::kSend, "send", 10, 20), 0, 0, 2), 1, 0, 5, 256)});
  const HostTrace receiver =
      host(1, 0, {towards(of(span(SpanKind::kPeer, "receive", 1000, 1030), 1, 0, 5), 0, 0, 2, 256)});
  const auto merged = nlohmann::json::parse(chrome_trace({sender, receiver}));
  nlohmann::json starts, ends, boxes = nlohmann::json::array();
  for (const auto& e : merged.at("traceEvents")) {
    if (e.at("ph") == "s") starts = e;
    if (e.at("ph") == "f") ends = e;
    if (e.at("ph") == "X") boxes.push_back(e);
  }
  REQUIRE(boxes.size() == 2);
  CHECK(boxes[0].at("ts") == 0.01);  // microseconds behind the receiver's begin
  CHECK(boxes[1].at("ts") == 0.0);
  CHECK(boxes[0].at("name") == "send 2 > text 5");
  CHECK(boxes[0].at("args").at("bytes") == 256);
  REQUIRE(starts.is_object());
  REQUIRE(ends.is_object());
  CHECK(starts.at("id") == ends.at("id"));
  CHECK(starts.at("ts") == 0.01);
  CHECK(ends.at("ts") == 0.03);
}

TEST_CASE("a message whose other end was not traced gets no arrow") {
  const HostTrace sender = host(0, 0, {towards(of(span(SpanKind::kSend, "send", 10, 20), 0, 0, 2), 1, 0, 5, 256)});
  const auto merged = nlohmann::json::parse(chrome_trace({sender}));
  for (const auto& e : merged.at("traceEvents")) CHECK(e.at("ph") != "s");
}
