#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

#include "base/program/program.h"

using namespace troupe;

namespace {

Program program_with(int credits, bool gradient = true) {
  Recorder r({"vision", "text"});
  r.edge(0, 1, gradient);
  r.credits(credits);
  r.for_units(0, [&] { r.forward(0); });
  r.for_units(1, [&] {
    r.forward(1);
    r.backward(1);
  });
  if (gradient) r.for_units(0, [&] { r.backward(0); });
  r.combine();
  if (gradient) r.step(0);
  r.step(1);
  return r.finish();
}

std::string units(const std::vector<Instruction>& order, int group) {
  std::string text;
  for (const Instruction& i : order)
    if (i.group == group && (i.op == Op::kForward || i.op == Op::kBackward))
      text += std::string(i.op == Op::kForward ? "F" : "B") + std::to_string(i.unit) + " ";
  return text;
}

int most_in_flight(const std::vector<Instruction>& order) {
  int held = 0, most = 0;
  for (const Instruction& i : order) {
    if (i.group != 0) continue;
    if (i.op == Op::kForward) most = std::max(most, ++held);
    if (i.op == Op::kBackward) --held;
  }
  return most;
}

}  // namespace

TEST_CASE("with all credits the encoder's units run first") {
  const StepShape shape = {{3, 3}, {{{0}, {1}, {2}}}};
  const Program program = program_with(0);
  const auto order = expand(program, shape);
  CHECK(units(order, 0) == "F0 F1 F2 B0 B1 B2 ");
  CHECK(check_order(program, shape, order).ok());
}

TEST_CASE("with two credits the encoder alternates and never holds more than two units") {
  const StepShape shape = {{4, 4}, {{{0}, {1}, {2}, {3}}}};
  const Program program = program_with(2);
  const auto order = expand(program, shape);
  CHECK(units(order, 0) == "F0 F1 B0 F2 B1 F3 B2 B3 ");
  CHECK(most_in_flight(order) == 2);
  CHECK(check_order(program, shape, order).ok());
}

TEST_CASE("a consumer unit that needs more units than there are credits gets them") {
  const StepShape shape = {{3, 1}, {{{0}, {0}, {0}}}};
  const Program program = program_with(1);
  const auto order = expand(program, shape);
  CHECK(check_order(program, shape, order).ok());
  CHECK(units(order, 1) == "F0 B0 ");
  CHECK(most_in_flight(order) == 3);
}

TEST_CASE("steps without any image, or without any unit at all, have a sound order") {
  for (const StepShape& shape : {StepShape{{0, 2}, {{}}}, StepShape{{0, 0}, {{}}}, StepShape{{2, 2}, {{{}, {}}}}}) {
    for (int credits : {0, 1, 2}) {
      const Program program = program_with(credits);
      const auto order = expand(program, shape);
      CHECK(check_order(program, shape, order).ok());
      CHECK(std::count_if(order.begin(), order.end(), [](const Instruction& i) { return i.op == Op::kCombine; }) == 1);
    }
  }
}

TEST_CASE("random many-to-many feeds give orders in which every unit runs once each way") {
  std::mt19937 random(7);
  for (int trial = 0; trial < 500; ++trial) {
    const int producers = static_cast<int>(random() % 9), consumers = 1 + static_cast<int>(random() % 9);
    StepShape shape;
    shape.units = {producers, consumers};
    shape.feeds.resize(1);
    for (int u = 0; u < producers; ++u) {
      std::vector<int> fed;
      for (int m = 0; m < consumers; ++m)
        if (random() % 3 == 0) fed.push_back(m);
      shape.feeds[0].push_back(fed);
    }
    const Program program = program_with(static_cast<int>(random() % 5), random() % 4 != 0);
    const auto order = expand(program, shape);
    const Status sound = check_order(program, shape, order);
    INFO((sound.ok() ? std::string() : sound.error().message));
    REQUIRE(sound.ok());
    for (int u = 0; u < producers; ++u)
      CHECK(std::count_if(order.begin(), order.end(), [&](const Instruction& i) {
              return i.group == 0 && i.unit == u && i.op == Op::kForward;
            }) == 1);
  }
}

TEST_CASE("the order check names what is wrong") {
  const StepShape shape = {{1, 1}, {{{0}}}};
  const Program program = program_with(0);
  auto order = expand(program, shape);
  const auto is = [](Op op, int group) { return [=](const Instruction& i) { return i.op == op && i.group == group; }; };

  auto swapped = order;
  const auto post = std::find_if(swapped.begin(), swapped.end(), is(Op::kPost, 0)),
             wait = std::find_if(swapped.begin(), swapped.end(), is(Op::kWait, 1));
  std::iter_swap(post, wait);
  const Status early = check_order(program, shape, swapped);
  REQUIRE_FALSE(early.ok());
  CHECK(early.error().message.find(
            "the circle is text.wait(0 <- vision 0) -> vision.post(0 -> text 0) -> text.wait(0 <- vision 0)") !=
        std::string::npos);

  auto unheard = order;
  unheard.erase(std::find_if(unheard.begin(), unheard.end(), is(Op::kWait, 1)));
  const Status lonely = check_order(program, shape, unheard);
  REQUIRE_FALSE(lonely.ok());
  CHECK(lonely.error().message.find("no receiver") != std::string::npos);

  auto doubled = order;
  doubled.insert(doubled.begin(), order.front());
  CHECK_FALSE(check_order(program, shape, doubled).ok());

  auto missing = order;
  std::erase_if(missing, [&](const Instruction& i) { return (i.op == Op::kPost || i.op == Op::kWait) && !i.gradient; });
  const Status unfed = check_order(program, shape, missing);
  REQUIRE_FALSE(unfed.ok());
  CHECK(unfed.error().message.find("never reach") != std::string::npos);
}
