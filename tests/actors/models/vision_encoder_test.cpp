#include "actors/models/vision_encoder.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/actors/models/vision_world.h"

using namespace troupe;
using namespace troupe::testing;

namespace {

const VisionCase& reference() {
  static const VisionCase c = load_vision_case();
  return c;
}

const at::Tensor& reference_gradient(const std::string& name) { return reference().at("grad." + name.substr(7)); }

/// Every gradient against the reference, which has them for all images in one unit.
void check_gradients(const VisionRun& run, double tolerance, double factor = 1) {
  REQUIRE(!run.gradients.empty());
  for (const auto& [name, gradient] : run.gradients) {
    INFO(name);
    const at::Tensor& expected = reference_gradient(name);
    CHECK(relative_difference(gradient.view_as(expected), expected.mul(factor)) < tolerance);
  }
}

void check_against(const VisionRun& run, const VisionRun& expected) {
  CHECK(relative_difference(run.rows, expected.rows) < 1e-5);
  REQUIRE(run.gradients.size() == expected.gradients.size());
  for (const auto& [name, gradient] : expected.gradients) {
    INFO(name);
    CHECK(relative_difference(run.gradients.at(name), gradient) < 1e-4);
  }
}

}  // namespace

TEST_CASE("one rank computes the rows and gradients that transformers computes") {
  const VisionRun run = run_vision_case(reference(), {});
  CHECK(relative_difference(run.rows, reference().at("rows")) < 1e-5);
  CHECK(run.gradients.size() == 54);
  check_gradients(run, 1e-4);
}

TEST_CASE("any number of sequence ranks computes the rows and gradients that transformers computes") {
  const int sp = GENERATE(2, 3, 4, 6, 12);
  CAPTURE(sp);
  const VisionRun run = run_vision_case(reference(), {.sp = sp});
  CHECK(*std::ranges::max_element(run.rank_rows) < run.rows.size(0));
  CHECK(relative_difference(run.rows, reference().at("rows")) < 1e-5);
  check_gradients(run, 1e-4);
}

TEST_CASE("a rank without rows takes part forward and backward") {
  // One single merged token: one window for three ranks.
  const VisionRun expected = run_vision_case(reference(), {.sp = 1, .images = {2}});
  const VisionRun run = run_vision_case(reference(), {.sp = 3, .images = {2}});
  CHECK(std::ranges::count(run.rank_rows, 0) == 2);
  check_against(run, expected);
}

TEST_CASE("an image's rows do not depend on the images beside it") {
  const VisionRun alone = run_vision_case(reference(), {.sp = 2, .images = {1}});
  CHECK(relative_difference(alone.rows, reference().at("rows").narrow(0, 15, 48)) < 1e-5);
}

TEST_CASE("a unit without images does nothing on every rank") {
  const VisionRun run = run_vision_case(reference(), {.sp = 2, .no_images = true});
  CHECK(run.rows.size(0) == 0);
  CHECK(run.has_context == std::vector<bool>{true, true});
  for (const auto& [name, gradient] : run.gradients) CHECK(gradient.abs().max().item<float>() == 0.0f);
}

TEST_CASE("frozen vision blocks leave the merger's gradients as they are and get none themselves") {
  const VisionRun run = run_vision_case(reference(), {.sp = 2, .frozen = {"vision"}});
  CHECK(run.gradients.size() == 5);
  check_gradients(run, 1e-4);
}

TEST_CASE("a frozen merger passes the gradient on to the blocks") {
  const VisionRun run = run_vision_case(reference(), {.sp = 2, .frozen = {"merger"}});
  CHECK(run.gradients.size() == 49);
  check_gradients(run, 1e-4);
}

TEST_CASE("evaluation keeps no context and computes the same rows") {
  const VisionRun run = run_vision_case(reference(), {.sp = 2, .keep_context = false});
  CHECK(run.has_context == std::vector<bool>{false, false});
  CHECK(relative_difference(run.rows, reference().at("rows")) < 1e-5);
}

TEST_CASE("gradients of several passes add up") {
  check_gradients(run_vision_case(reference(), {.passes = 2}), 1e-4, 2);
}

TEST_CASE("a repeated run is bitwise equal") {
  const VisionRun first = run_vision_case(reference(), {.sp = 2}), second = run_vision_case(reference(), {.sp = 2});
  CHECK(first.rows.equal(second.rows));
  for (const auto& [name, gradient] : first.gradients) {
    INFO(name);
    CHECK(gradient.equal(second.gradients.at(name)));
  }
}

TEST_CASE("bf16 follows fp32 within its precision and sums gradients in fp32") {
  const VisionRun run = run_vision_case(reference(), {.sp = 2, .dtype = at::kBFloat16});
  CHECK(run.rows.scalar_type() == at::kBFloat16);
  CHECK(run.gradients.begin()->second.scalar_type() == at::kFloat);
  CHECK(relative_difference(run.rows, reference().at("rows")) < 0.03);
  check_gradients(run, 0.1);
}
