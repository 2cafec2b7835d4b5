#include "actors/bench/busy_pipeline.h"

#include <catch2/catch.hpp>

#include "tests/base/program/three_groups.h"

using namespace troupe;

namespace {

BusyJob job_of(Program program, StepShape shape, double unit_s) {
  BusyJob job;
  job.program = std::move(program);
  job.shape = std::move(shape);
  job.seconds = [=](Op op, int, int) { return unit_s * (op == Op::kForward ? 1 : 2) / 3; };
  return job;
}

Program two_encoders(int credits) { return record_two_encoders(credits).finish(); }
Program chain(int credits) { return record_chain(credits).finish(); }

void comes_to_the_right_sums(const BusyJob& job) {
  const auto outcome = run_busy_job(job);
  if (!outcome.ok()) FAIL(outcome.error().to_string());
  REQUIRE(outcome->sums.size() == static_cast<size_t>(job.steps));
  for (const auto& sums : outcome->sums) CHECK(sums == expected_sums(job));
}

}  // namespace

TEST_CASE("two encoders that feed one decoder run to the sums of going through the units one by one") {
  BusyJob job = job_of(two_encoders(2), {{4, 2, 3}, {{{0}, {0, 1}, {2}, {1, 2}}, {{0, 2}, {1}}}}, 0.001);
  job.steps = 3;
  comes_to_the_right_sums(job);
}

TEST_CASE(
    "an encoder, a decoder and a head run to the right sums with every window, and with messages that overtake each "
    "other") {
  for (const int credits : {1, 2, 4, 0}) {
    BusyJob job = job_of(chain(credits), {{5, 4, 4}, {{{0}, {0, 1}, {1}, {2, 3}, {}}, one_to_one(4)}}, 0.001);
    job.steps = 2;
    comes_to_the_right_sums(job);
    job.delays = {static_cast<uint64_t>(credits + 1), std::chrono::milliseconds(4)};
    comes_to_the_right_sums(job);
  }
}

TEST_CASE(
    "a chain of three groups that take as long as each other is a pipeline: its step is near the shortest possible") {
  BusyJob job = job_of(chain(2), {{8, 8, 8}, {one_to_one(8), one_to_one(8)}}, 0.02);
  job.steps = 3;
  const auto outcome = run_busy_job(job);
  REQUIRE(outcome.ok());
  const double bound = shortest_possible(job.program, job.shape, job.seconds);
  const double least = *std::min_element(outcome->step_seconds.begin(), outcome->step_seconds.end());
  CHECK(least >= bound);
  CHECK(least < 1.25 * bound);  // one after the other takes three times the busiest group
}

TEST_CASE("delays of messages hide behind the work of other units") {
  BusyJob job = job_of(two_encoders(4), {{8, 8, 8}, {one_to_one(8), one_to_one(8)}}, 0.02);
  job.steps = 3;
  const auto prompt = run_busy_job(job);
  job.delays = {3, std::chrono::milliseconds(8)};
  const auto late = run_busy_job(job);
  REQUIRE(prompt.ok());
  REQUIRE(late.ok());
  const auto least = [](const BusyOutcome& o) {
    return *std::min_element(o.step_seconds.begin(), o.step_seconds.end());
  };
  // 32 messages of 4 ms on average would take 128 ms in a row; two of them, first and last, cannot hide.
  CHECK(least(*late) < least(*prompt) + 0.040);
}

TEST_CASE("a program whose groups feed each other is refused before a host starts") {
  BusyJob job = job_of(chain(2), {{1, 1, 1}, {one_to_one(1), one_to_one(1), one_to_one(1)}}, 0.001);
  job.program.edges.push_back({2, 0, true});
  const auto refused = run_busy_job(job);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().message.find("vision -> text -> head -> vision") != std::string::npos);
}
