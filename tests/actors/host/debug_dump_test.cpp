#include "actors/host/debug_dump.h"

#include <catch2/catch.hpp>

using namespace troupe;

TEST_CASE("a dump tells samples of one id apart by their order in the step") {
  SampleIndex index;
  for (const char* id : {"a", "b", "a", "a#2"}) {
    IndexedSample s;
    s.id = id;
    index.samples.push_back(s);
  }
  StepPlan plan;
  plan.samples = {0, 1, 2, 3, 1};
  CHECK(dump_names(plan, index) == std::vector<std::string>{"a", "b", "a#3", "a#2", "b#2"});
}
