#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "base/program/program.h"

using namespace troupe;

namespace {

/// Encoder and decoder with three and two buckets.
Program program_with(int credits, std::vector<int> buckets = {3, 2}) {
  Recorder r({"vision", "text"});
  r.edge(0, 1, true);
  r.credits(credits);
  r.buckets(std::move(buckets));
  r.for_units(0, [&] { r.forward(0); });
  r.for_units(1, [&] {
    r.forward(1);
    r.backward(1);
  });
  r.for_units(0, [&] { r.backward(0); });
  r.combine();
  r.step(0);
  r.step(1);
  return r.finish();
}

const StepShape kTwoUnits = {{2, 2}, {{{0}, {1}}}};

/// Those of a group that concern collectives, in short: R0 R1 w (reductions), U1 G1 U0 G0 g (weights), B (last
/// backward).
std::string collectives(const std::vector<Instruction>& order, int group) {
  std::string text;
  for (const Instruction& i : order) {
    if (i.group != group) continue;
    if (i.op == Op::kBackward && i.reduces) text += "B ";
    if (i.op == Op::kReduce) text += "R" + std::to_string(i.bucket) + " ";
    if (i.op == Op::kReduced) text += "w ";
    if (i.op == Op::kUpdate) text += "U" + std::to_string(i.bucket) + " ";
    if (i.op == Op::kGather) text += "G" + std::to_string(i.bucket) + " ";
    if (i.op == Op::kGathered) text += "g ";
  }
  return text;
}

size_t place(const std::vector<Instruction>& order, const std::function<bool(const Instruction&)>& wanted) {
  const auto found = std::find_if(order.begin(), order.end(), wanted);
  REQUIRE(found != order.end());
  return static_cast<size_t>(found - order.begin());
}
std::function<bool(const Instruction&)> is(Op op, int group, int bucket = -1) {
  return [=](const Instruction& i) { return i.op == op && i.group == group && (bucket < 0 || i.bucket == bucket); };
}

std::string refusal(const Program& program, const std::vector<Instruction>& order) {
  const Status checked = check_order(program, kTwoUnits, order);
  return checked.ok() ? std::string() : checked.error().message;
}

}  // namespace

TEST_CASE(
    "buckets are reduced behind the last backward, waited for once, updated and gathered from the first layers on") {
  for (const int credits : {0, 1, 2}) {
    const Program program = program_with(credits);
    const auto order = expand(program, kTwoUnits);
    CHECK(collectives(order, 0) == "g B R0 R1 R2 w U2 G2 U1 G1 U0 G0 ");
    CHECK(collectives(order, 1) == "g B R0 R1 w U1 G1 U0 G0 ");
    CHECK(refusal(program, order) == "");
  }
}

TEST_CASE("a group's reductions are under way while the other group works, and are waited for ahead of the norm") {
  const auto order = expand(program_with(0), kTwoUnits);
  const size_t posted = place(order, is(Op::kReduce, 1, 1)), waited = place(order, is(Op::kReduced, 1));
  const size_t backward =
      place(order, [](const Instruction& i) { return i.op == Op::kBackward && i.group == 0 && i.reduces; });
  CHECK(posted < backward);
  CHECK(backward < waited);
  CHECK(waited < place(order, is(Op::kCombine, -1)));
}

TEST_CASE("a group without any unit posts every bucket in the same order") {
  for (const StepShape& shape : {StepShape{{0, 2}, {{}}}, StepShape{{0, 0}, {{}}}}) {
    const Program program = program_with(0);
    const auto order = expand(program, shape);
    CHECK(collectives(order, 0) == "g R0 R1 R2 w U2 G2 U1 G1 U0 G0 ");
    CHECK(check_order(program, shape, order).ok());
  }
}

TEST_CASE("a group whose parts are all frozen posts nothing") {
  Recorder r({"vision", "text"});
  r.edge(0, 1, false);
  r.buckets({0, 2});
  r.for_units(0, [&] { r.forward(0); });
  r.for_units(1, [&] {
    r.forward(1);
    r.backward(1);
  });
  r.combine();
  r.step(1);
  const Program program = r.finish();
  const auto order = expand(program, kTwoUnits);
  CHECK(collectives(order, 0) == "");
  CHECK(refusal(program, order) == "");
}

TEST_CASE("the order check refuses collectives that ranks could enter in different orders") {
  const Program program = program_with(0);
  const auto order = expand(program, kTwoUnits);
  const auto moved = [&](const auto& what, const auto& before) {
    auto changed = order;
    const size_t from = place(changed, what);
    const Instruction one = changed[from];
    changed.erase(changed.begin() + static_cast<std::ptrdiff_t>(from));
    changed.insert(changed.begin() + static_cast<std::ptrdiff_t>(place(changed, before)), one);
    return refusal(program, changed);
  };
  const auto last_backward = [](const Instruction& i) { return i.op == Op::kBackward && i.group == 1 && i.reduces; };
  const auto has = [](const std::string& text, const std::string& part) {
    INFO(text);
    CHECK(text.find(part) != std::string::npos);
  };
  has(moved(is(Op::kReduce, 0, 1), is(Op::kReduce, 0, 0)), "vision.reduce(bucket 1)");
  has(moved(is(Op::kReduce, 0, 1), is(Op::kReduce, 0, 0)), "out of turn: bucket 0 of 3 is next");
  has(moved(is(Op::kReduce, 1, 0), last_backward), "is posted before the last backward");
  has(moved(is(Op::kReduced, 1), is(Op::kReduce, 1, 1)), "different orders");
  has(moved(is(Op::kCombine, -1), is(Op::kReduced, 1)), "needs the sums of");
  has(moved(is(Op::kUpdate, 0, 2), is(Op::kReduced, 0)), "not waited for");
  has(moved(is(Op::kGather, 0, 2), is(Op::kUpdate, 0, 2)), "gathers weights before they are updated");
  // A unit of the encoder between the decoder's last backward and its posts: one rank would enter the encoder's
  // communicators ahead of the decoder's, another behind them.
  has(moved([](const Instruction& i) { return i.op == Op::kBackward && i.group == 0; }, is(Op::kReduce, 1, 0)),
      "different orders");
  auto unwaited = order;
  std::erase_if(unwaited, is(Op::kReduced, 0));
  has(refusal(program, unwaited), "not waited for");
  auto ungathered = order;
  std::erase_if(ungathered, is(Op::kGathered, 0));
  has(refusal(program, ungathered), "last gather is not waited for");
  auto late = order;
  std::erase_if(late, is(Op::kReduce, 1));
  has(refusal(program, late), "different orders");
}

TEST_CASE("a program with buckets survives its text form and reads like calls") {
  const Program program = program_with(2);
  const auto again = Program::from_json(program.to_json());
  REQUIRE(again.ok());
  CHECK(again->buckets == std::vector<int>{3, 2});
  CHECK(expand(*again, kTwoUnits) == expand(program, kTwoUnits));
  const auto order = expand(program, kTwoUnits);
  CHECK(order[place(order, is(Op::kReduce, 0, 2))].to_string(program) == "vision.reduce(bucket 2)");
  CHECK(order[place(order, is(Op::kGathered, 1))].to_string(program) == "text.gathered");
}
