#include "base/program/program.h"

#include <algorithm>
#include <catch2/catch.hpp>

using namespace troupe;

namespace {

JobSpec two_group_spec() {
  JobSpec spec;
  GroupSpec vision, text;
  vision.name = "vision";
  vision.components = {"vision", "merger"};
  text.name = "text";
  text.components = {"text"};
  spec.groups = {vision, text};
  spec.components = {{"vision", {}}, {"merger", {}}, {"text", {}}};
  return spec;
}

int count(const std::vector<Instruction>& order, Op op, int group) {
  return static_cast<int>(std::count_if(order.begin(), order.end(), [&](const Instruction& i) { return i.op == op && i.group == group; }));
}

const StepShape kShape = {{2, 2}, {{{0}, {1}}}};

}  // namespace

TEST_CASE("a trained job reduces both groups before the norm is combined and updates them after it") {
  const auto order = expand(record_training_loop(two_group_spec()), kShape);
  const auto at = [&](Op op, int group) {
    return std::find_if(order.begin(), order.end(), [&](const Instruction& i) { return i.op == op && (group < 0 || i.group == group); }) - order.begin();
  };
  for (int group : {0, 1}) {
    CHECK(at(Op::kReduce, group) < at(Op::kCombine, -1));
    CHECK(at(Op::kCombine, -1) < at(Op::kUpdate, group));
    CHECK(at(Op::kUpdate, group) < at(Op::kGather, group));
  }
}

TEST_CASE("a frozen encoder has no backward, no update, and no gradient crosses the boundary") {
  JobSpec spec = two_group_spec();
  spec.components["vision"].train = spec.components["merger"].train = false;
  const auto order = expand(record_training_loop(spec), kShape);
  CHECK(count(order, Op::kForward, 0) == 2);
  CHECK(count(order, Op::kBackward, 0) == 0);
  CHECK(count(order, Op::kUpdate, 0) == 0);
  CHECK(count(order, Op::kBackward, 1) == 2);
  CHECK(std::none_of(order.begin(), order.end(), [](const Instruction& i) { return i.gradient; }));
}

TEST_CASE("a frozen decoder still passes gradients back to the encoder") {
  JobSpec spec = two_group_spec();
  spec.components["text"].train = false;
  const auto order = expand(record_training_loop(spec), kShape);
  CHECK(count(order, Op::kBackward, 1) == 2);
  CHECK(count(order, Op::kBackward, 0) == 2);
  CHECK(count(order, Op::kUpdate, 1) == 0);
  CHECK(count(order, Op::kUpdate, 0) == 1);
}

TEST_CASE("a program survives its text form") {
  const Program program = record_training_loop(two_group_spec());
  const auto again = Program::from_json(program.to_json());
  REQUIRE(again.ok());
  CHECK(again->to_json() == program.to_json());
  CHECK(expand(*again, kShape) == expand(program, kShape));
  CHECK_FALSE(Program::from_json("[]").ok());
  CHECK_FALSE(Program::from_json("{\"groups\": [\"a\"]}").ok());
}

TEST_CASE("instructions read like calls") {
  const Program program = record_training_loop(two_group_spec());
  const Instruction wait = {Op::kWait, 1, 0, 0, 2, false};
  CHECK(wait.to_string(program) == "text.wait(0 <- vision 2)");
  const Instruction post = {Op::kPost, 1, 0, 0, 2, true};
  CHECK(post.to_string(program) == "text.post(0 -> vision 2, gradient)");
}
