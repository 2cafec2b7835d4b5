#include "driver/plan/instruction_order.h"

#include <algorithm>
#include <catch2/catch.hpp>

using namespace troupe;

namespace {

JobSpec spec_with(int64_t batch, PlacementKind placement) {
  JobSpec spec;
  GroupSpec vision, text;
  vision.name = "vision";
  vision.components = {"vision", "merger"};
  text.name = "text";
  text.components = {"text"};
  spec.groups = {vision, text};
  spec.components = {{"vision", {}}, {"merger", {}}, {"text", {}}};
  spec.placement.kind = placement;
  spec.training.global_batch = batch;
  return spec;
}

}  // namespace

TEST_CASE("the order of a colocated step runs all encoder units before the first decoder unit") {
  const auto order = instruction_order(spec_with(3, PlacementKind::kColocated));
  const auto at = [&](const std::string& line) { return std::find(order.begin(), order.end(), line) - order.begin(); };
  CHECK(at("vision.forward(2)") < at("text.forward(0)"));
  CHECK(at("text.backward(2)") < at("all.combine"));
  CHECK(order.back() == "text.gather(bucket 0)");
}

TEST_CASE("the order of a disjoint step lets the encoder run ahead by its credits") {
  const auto order = instruction_order(spec_with(4, PlacementKind::kDisjoint));
  const auto at = [&](const std::string& line) { return std::find(order.begin(), order.end(), line) - order.begin(); };
  CHECK(at("vision.forward(1)") < at("text.forward(0)"));
  CHECK(at("vision.forward(2)") > at("vision.backward(0)"));
}

TEST_CASE("every size of step that a spec allows has a sound order") {
  for (int64_t batch : {1, 2, 7, 64})
    for (const PlacementKind kind : {PlacementKind::kColocated, PlacementKind::kDisjoint, PlacementKind::kCounts})
      CHECK(check_instruction_order(spec_with(batch, kind)).ok());
}

TEST_CASE("a long order is shortened for a person") {
  const std::string text = render_instruction_order(spec_with(64, PlacementKind::kColocated));
  CHECK(std::count(text.begin(), text.end(), '\n') < 45);
  CHECK(text.find(" more (all with --json)") != std::string::npos);
  CHECK(text.find("a vision unit for each text unit; how many the records make, `troupe check` counts\n") !=
        std::string::npos);
}
