#include "base/trace/trace_log.h"

#include <catch2/catch.hpp>
#include <thread>

using namespace troupe;

namespace {
Span named(const char* name) {
  Span span;
  span.name = name;
  return span;
}
}  // namespace

TEST_CASE("a log that is off keeps nothing, and a scope without a log does nothing") {
  TraceLog log;
  { SpanScope scope(&log, named("early")); }
  { SpanScope scope(nullptr, named("nowhere")); }
  log.add(named("direct"));
  CHECK(log.take().empty());
}

TEST_CASE("scopes nest: the inner one ends first and lies within the outer one") {
  TraceLog log;
  log.start();
  {
    SpanScope outer(&log, named("outer"));
    SpanScope inner(&log, named("inner"));
    inner.set_bytes(7);
  }
  const auto spans = log.take();
  REQUIRE(spans.size() == 2);
  CHECK(spans[0].name == "inner");
  CHECK(spans[0].bytes == 7);
  CHECK(spans[1].begin_ns <= spans[0].begin_ns);
  CHECK(spans[0].end_ns <= spans[1].end_ns);
  CHECK(log.take().empty());
}

TEST_CASE("a full log counts what it cannot keep") {
  TraceLog log(3);
  log.start();
  for (int i = 0; i < 5; ++i) log.add(named("x"));
  CHECK(log.take().size() == 3);
  CHECK(log.dropped() == 2);
}

TEST_CASE("threads may add at once") {
  TraceLog log;
  log.start();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&log] {
      for (int i = 0; i < 500; ++i) SpanScope scope(&log, named("x"));
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(log.take().size() == 2000);
}
