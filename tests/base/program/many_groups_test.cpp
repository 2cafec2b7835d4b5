#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

#include "base/program/program.h"
#include "tests/base/program/three_groups.h"

using namespace troupe;

namespace {

Program two_encoders(int credits) {
  Recorder r = record_two_encoders(credits);
  for (int g : {0, 1, 2}) r.step(g);
  return r.finish();
}

Program chain(int credits, bool gradient = true) {
  Recorder r = record_chain(credits, gradient);
  for (int g = gradient ? 0 : 1; g < 3; ++g) r.step(g);
  return r.finish();
}

std::vector<std::vector<int>> random_feeds(std::mt19937& random, int producers, int consumers) {
  std::vector<std::vector<int>> feeds(static_cast<size_t>(producers));
  for (auto& fed : feeds)
    for (int m = 0; m < consumers; ++m)
      if (random() % 3 == 0) fed.push_back(m);
  return feeds;
}

std::string units(const std::vector<Instruction>& order, int group) {
  std::string text;
  for (const Instruction& i : order)
    if (i.group == group && (i.op == Op::kForward || i.op == Op::kBackward))
      text += std::string(i.op == Op::kForward ? "F" : "B") + std::to_string(i.unit) + " ";
  return text;
}

void sound(const Program& program, const StepShape& shape) {
  const auto order = expand(program, shape);
  const Status checked = check_order(program, shape, order);
  INFO((checked.ok() ? std::string() : checked.error().message));
  REQUIRE(checked.ok());
  for (size_t g = 0; g < shape.units.size(); ++g)
    for (const Op op : {Op::kForward, Op::kBackward}) {
      const auto count = std::count_if(order.begin(), order.end(), [&](const Instruction& i) {
        return i.op == op && i.group == static_cast<int>(g);
      });
      REQUIRE((count == 0 || count == shape.units[g]));
      if (op == Op::kForward) REQUIRE(count == shape.units[g]);
    }
}

}  // namespace

TEST_CASE("two encoders run ahead of one decoder, each within its own window") {
  const StepShape shape{{3, 3, 3}, {one_to_one(3), one_to_one(3)}};
  const Program program = two_encoders(2);
  REQUIRE(check_program(program).ok());
  sound(program, shape);
  const auto order = expand(program, shape);
  CHECK(units(order, 0) == "F0 F1 B0 F2 B1 B2 ");
  CHECK(units(order, 1) == "F0 F1 B0 F2 B1 B2 ");
  CHECK(units(order, 2) == "F0 B0 F1 B1 F2 B2 ");
}

TEST_CASE("in a chain of three, each group further from the end holds one unit more: 1F1B") {
  const StepShape shape{{4, 4, 4}, {one_to_one(4), one_to_one(4)}};
  const Program program = chain(2);
  REQUIRE(check_program(program).ok());
  sound(program, shape);
  const auto order = expand(program, shape);
  CHECK(units(order, 0) == "F0 F1 F2 B0 F3 B1 B2 B3 ");
  CHECK(units(order, 1) == "F0 F1 B0 F2 B1 F3 B2 B3 ");
  CHECK(units(order, 2) == "F0 B0 F1 B1 F2 B2 F3 B3 ");
}

TEST_CASE("with all credits a chain runs in phases") {
  const StepShape shape{{2, 2, 2}, {one_to_one(2), one_to_one(2)}};
  const auto order = expand(chain(0), shape);
  CHECK(units(order, 0) == "F0 F1 B0 B1 ");
  CHECK(units(order, 1) == "F0 F1 B0 B1 ");
}

TEST_CASE("random graphs of three groups have sound orders for every count and window") {
  std::mt19937 random(11);
  for (int trial = 0; trial < 400; ++trial) {
    const auto some = [&](int most) { return static_cast<int>(random() % static_cast<unsigned>(most)); };
    const int a = some(6), b = some(6), c = some(6);
    if (trial % 2 == 0)
      sound(two_encoders(some(4)), {{a, b, c}, {random_feeds(random, a, c), random_feeds(random, b, c)}});
    else
      sound(chain(some(4), some(3) != 0), {{a, b, c}, {random_feeds(random, a, b), random_feeds(random, b, c)}});
  }
}

TEST_CASE("a group reduces its gradients behind its own last backward, not behind everybody's") {
  const StepShape shape{{2, 2}, {one_to_one(2)}};
  Recorder r({"vision", "text"});
  r.edge(0, 1, true);
  r.for_units(0, [&] { r.forward(0); });
  r.for_units(1, [&] {
    r.forward(1);
    r.backward(1);
  });
  r.for_units(0, [&] { r.backward(0); });
  r.combine();
  r.step(0);
  r.step(1);
  const auto order = expand(r.finish(), shape);
  const auto at = [&](Op op, int group, int unit) {
    const auto same = [&](const Instruction& i) { return i.op == op && i.group == group && i.unit == unit; };
    return std::find_if(order.begin(), order.end(), same) - order.begin();
  };
  CHECK(at(Op::kBackward, 1, 1) < at(Op::kReduce, 1, -1));
  CHECK(at(Op::kReduce, 1, -1) < at(Op::kBackward, 0, 1));
  CHECK(at(Op::kBackward, 0, 1) < at(Op::kReduce, 0, -1));
  CHECK(std::count_if(order.begin(), order.end(), [](const Instruction& i) { return i.op == Op::kReduce; }) == 2);
}

TEST_CASE("a memory budget bounds the units in flight; one that is too large passes alone") {
  Recorder r({"vision", "text"});
  r.edge(0, 1, true);
  r.budget(100);
  r.for_units(0, [&] { r.forward(0); });
  r.for_units(1, [&] {
    r.forward(1);
    r.backward(1);
  });
  r.for_units(0, [&] { r.backward(0); });
  const Program program = r.finish();
  StepShape shape{{4, 4}, {one_to_one(4)}, {{40, 40, 40, 40}}};
  sound(program, shape);
  CHECK(units(expand(program, shape), 0) == "F0 F1 B0 F2 B1 F3 B2 B3 ");
  shape.held_bytes = {{10, 500, 10, 10}};
  sound(program, shape);
  CHECK(units(expand(program, shape), 0) == "F0 B0 F1 B1 F2 F3 B2 B3 ");
  shape.held_bytes.clear();
  CHECK(units(expand(program, shape), 0) == "F0 F1 F2 F3 B0 B1 B2 B3 ");
}

TEST_CASE("groups that feed each other are refused with the circle") {
  Recorder r({"vision", "text", "head"});
  r.edge(0, 1, true);
  r.edge(1, 2, true);
  r.edge(2, 0, true);
  for (int g : {0, 1, 2}) r.for_units(g, [&] { r.forward(g); });
  const Status refused = check_program(r.finish());
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().message.find("vision -> text -> head -> vision") != std::string::npos);
}

TEST_CASE("a loop recorded before what it needs is refused with the circle") {
  Recorder r({"vision", "text", "head"});
  r.edge(0, 1, true);
  r.edge(1, 2, true);
  r.for_units(0, [&] { r.forward(0); });
  r.for_units(1, [&] {
    r.forward(1);
    r.backward(1);  // needs gradients of the head, which comes later
  });
  r.for_units(2, [&] {
    r.forward(2);
    r.backward(2);
  });
  const Status refused = check_program(r.finish());
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().message.find("text.backward -> head.backward -> text.backward") != std::string::npos);
}

TEST_CASE("a backward that nobody recorded, and one recorded twice, are refused") {
  Recorder lacking({"vision", "text"});
  lacking.edge(0, 1, true);
  lacking.for_units(0, [&] { lacking.forward(0); });
  lacking.for_units(1, [&] { lacking.forward(1); });
  lacking.for_units(0, [&] { lacking.backward(0); });
  const Status refused = check_program(lacking.finish());
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().message.find("text.backward, which is never recorded") != std::string::npos);
  Recorder twice({"text"});
  for (int i = 0; i < 2; ++i) twice.for_units(0, [&] { twice.forward(0); });
  CHECK_FALSE(check_program(twice.finish()).ok());
}
