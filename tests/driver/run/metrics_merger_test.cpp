#include "driver/run/metrics_merger.h"

#include <catch2/catch.hpp>

using troupe::driver::MetricsMerger;

namespace {
nlohmann::json parsed(const MetricsMerger::Line& line) { return nlohmann::json::parse(line.text); }
}  // namespace

TEST_CASE("A step's line is complete when every host has reported it") {
  MetricsMerger merger({"a:0", "b:1"});
  CHECK(merger.add(1, 1, "", R"({"peak_memory_mib": 20, "activation_peak_mib": {"text/0": 3}})").empty());
  const auto lines = merger.add(0, 1, R"({"step": 1, "loss": 2.5})",
                                R"({"peak_memory_mib": 10, "activation_peak_mib": {"vision/0": 4}})");
  REQUIRE(lines.size() == 1);
  CHECK(parsed(lines[0]) == nlohmann::json::parse(R"({"step": 1, "loss": 2.5, "peak_memory_mib": {"a:0": 10, "b:1": 20},
                                             "activation_peak_mib": {"text/0": 3, "vision/0": 4}})"));
}

TEST_CASE("Lines leave in the order of steps however the reports interleave") {
  MetricsMerger merger({"a:0", "a:1"});
  merger.add(0, 1, R"({"step": 1})", "");
  merger.add(0, 2, R"({"step": 2})", "");
  CHECK(merger.add(1, 2, "", "").empty());
  const auto lines = merger.add(1, 1, "", "");
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].step == 1);
  CHECK(lines[1].step == 2);
}

TEST_CASE("When the job ends incomplete lines with metrics are kept and nonsense is ignored") {
  MetricsMerger merger({"a:0", "a:1"});
  merger.add(0, 3, R"({"step": 3})", "not json");
  merger.add(1, 4, "[1]", "{}");
  const auto lines = merger.rest();
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].step == 3);
  CHECK(merger.rest().empty());
}

TEST_CASE("Local figures that are not reported again stand as they were, from the step of their report on") {
  MetricsMerger merger({"a:0", "a:1"});
  merger.add(0, 1, R"({"step": 1})", R"({"peak_memory_mib": 1})");
  merger.add(0, 2, R"({"step": 2})", R"({"peak_memory_mib": 5})");
  CHECK(parsed(merger.add(1, 1, "", R"({"peak_memory_mib": 2})")[0])["peak_memory_mib"] ==
        nlohmann::json::parse(R"({"a:0": 1, "a:1": 2})"));
  CHECK(parsed(merger.add(1, 2, "", "")[0])["peak_memory_mib"] == nlohmann::json::parse(R"({"a:0": 5, "a:1": 2})"));
}

TEST_CASE("Figures of kinds that do not fit together do no harm") {
  MetricsMerger merger({"a:0", "a:1"});
  merger.add(0, 1, R"({"step": 1, "text": "}{"})", R"({"x": 3, "y": {"a": 1}})");
  const auto lines = merger.add(1, 1, "{}", R"({"x": {"b": 2}, "y": 4})");
  REQUIRE(lines.size() == 1);
  CHECK(parsed(lines[0])["text"] == "}{");
}
