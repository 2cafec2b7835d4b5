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
  return static_cast<int>(
      std::count_if(order.begin(), order.end(), [&](const Instruction& i) { return i.op == op && i.group == group; }));
}

const StepShape kShape = {{2, 2}, {{{0}, {1}}}};

}  // namespace

TEST_CASE("a trained job reduces both groups before the norm is combined and updates them after it") {
  const auto order = expand(record_training_loop(two_group_spec()), kShape);
  const auto at = [&](Op op, int group) {
    return std::find_if(order.begin(), order.end(),
                        [&](const Instruction& i) { return i.op == op && (group < 0 || i.group == group); }) -
           order.begin();
  };
  for (int group : {0, 1}) {
    CHECK(at(Op::kReduce, group) < at(Op::kCombine, -1));
    CHECK(at(Op::kCombine, -1) < at(Op::kUpdate, group));
    CHECK(at(Op::kUpdate, group) < at(Op::kGather, group));
  }
}

TEST_CASE("schedule.memory_gib bounds what the encoder holds by the rows of its units, in the lane that has most") {
  JobSpec spec = two_group_spec();
  spec.placement.kind = PlacementKind::kColocated;
  spec.memory_gib = 1;
  constexpr int64_t kGiB = int64_t{1} << 30;
  const Program program = record_training_loop(spec, {}, kGiB / 10);
  StepPlan plan;  // two lanes; images of 4, 3, 2 and 5 rows
  plan.rows = 14;
  for (const int64_t first : {0, 4, 7, 9}) {
    plan.images.emplace_back();
    plan.images.back().first_row = first;
  }
  plan.vision = {{{{0}}, {{2}}}, {{{1}}, {{3}}}};
  plan.samples = {0, 1};
  plan.text = {{{{0}, 1}, {{1}, 1}}};
  for (int image = 0; image < 4; ++image) plan.images[static_cast<size_t>(image)].sample = image / 2;
  const StepShape shape = shape_of(program, plan);
  CHECK(shape.held_bytes[0] == std::vector<int64_t>{4 * (kGiB / 10), 5 * (kGiB / 10)});
  const auto one_unit_at_a_time = [&](const Program& p) {
    const auto order = expand(p, shape_of(p, plan));
    std::vector<Instruction> work;
    for (const Instruction& i : order)
      if (i.group == 0 && (i.op == Op::kForward || i.op == Op::kBackward)) work.push_back(i);
    return work[1].op == Op::kBackward;
  };
  CHECK_FALSE(one_unit_at_a_time(program));                             // 9 of 10 rows
  CHECK(one_unit_at_a_time(record_training_loop(spec, {}, kGiB / 8)));  // 9 of 8 rows
  spec.memory_gib = 0;
  CHECK_FALSE(one_unit_at_a_time(record_training_loop(spec, {}, kGiB)));
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
