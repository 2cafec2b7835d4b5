#include "base/program/timeline.h"

#include <catch2/catch.hpp>

using namespace troupe;

namespace {

Program encoder_decoder(int credits) {
  Recorder r({"vision", "text"});
  r.edge(0, 1, true);
  r.credits(credits);
  r.for_units(0, [&] { r.forward(0); });
  r.for_units(1, [&] {
    r.forward(1);
    r.backward(1);
  });
  r.for_units(0, [&] { r.backward(0); });
  return r.finish();
}

StepShape equal_units(int n) {
  StepShape shape{{n, n}, {{}}};
  for (int u = 0; u < n; ++u) shape.feeds[0].push_back({u});
  return shape;
}

/// A third of a unit's time is forward.
WorkSeconds work(double vision, double text) {
  return [=](Op op, int group, int) { return (group == 0 ? vision : text) * (op == Op::kForward ? 1 : 2) / 3; };
}

}  // namespace

TEST_CASE("with two credits and more a disjoint step takes the shortest time that its units allow") {
  for (const double ratio : {0.25, 1.0, 4.0})
    for (const int credits : {2, 4, 0}) {
      const StepShape shape = equal_units(8);
      const Program program = encoder_decoder(credits);
      const double length = play(program, expand(program, shape), work(3 * ratio, 3)).length;
      const double bound = shortest_possible(program, shape, work(3 * ratio, 3));
      INFO("vision/text " << ratio << ", credits " << credits);
      CHECK(length >= bound - 1e-9);
      // Phases (credits 0) leave the encoder idle while the decoder works through the last units.
      CHECK(length <= bound * (credits == 0 ? 1.5 : 1.02));
    }
}

TEST_CASE("the bound is exact where it is easily seen") {
  const Program program = encoder_decoder(2);
  CHECK(shortest_possible(program, equal_units(1), work(3, 6)) == Approx(9));
  CHECK(shortest_possible(program, equal_units(4), work(3, 6)) ==
        Approx(1 + 4 * 6 + 2));  // first forward, decoder, last backward
  CHECK(shortest_possible(program, equal_units(4), work(30, 3)) == Approx(4 * 30));
}

TEST_CASE("with one credit the groups take turns") {
  const Program program = encoder_decoder(1);
  const StepShape shape = equal_units(4);
  CHECK(play(program, expand(program, shape), work(3, 3)).length == Approx(4 * 6));
}

TEST_CASE("waits begin when their group gets there and end when the post is made") {
  const Program program = encoder_decoder(2);
  const StepShape shape = equal_units(2);
  const auto order = expand(program, shape);
  const Timeline line = play(program, order, work(3, 6));
  for (size_t i = 0; i < order.size(); ++i)
    if (order[i] == Instruction{Op::kWait, 1, 0, 0, 0}) {
      CHECK(line.begin[i] == 0);
      CHECK(line.end[i] == Approx(1));
    }
}
