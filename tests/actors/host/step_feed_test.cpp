#include "actors/host/step_feed.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <future>

#include "tests/actors/host/small_job.h"

using namespace troupe;
using namespace troupe::testing;

namespace {
constexpr std::chrono::seconds kPatience{30};

/// A random batch of which one sample's images cannot be decoded and one's tokens cannot be read, or whose images are
/// given only once a gate is open.
class FaultyDataset final : public Dataset {
 public:
  explicit FaultyDataset(int64_t broken, int64_t unreadable = -1)
      : data_(make_random_batch({4, 6, 10, 20}, small_config(), 5)), broken_(broken), unreadable_(unreadable) {}
  const SampleIndex& index() const override { return data_->index(); }
  Result<TokenizedSample> tokens(int64_t sample) const override {
    if (sample == unreadable_) return data_loss("records.jsonl: changed");
    return data_->tokens(sample);
  }
  Result<at::Tensor> patches(int64_t sample, int image) const override {
    if (gate.valid()) gate.wait();
    if (sample == broken_) return data_loss("picture.png: is broken in the middle");
    return data_->patches(sample, image);
  }
  Result<SampleText> text(int64_t sample) const override { return data_->text(sample); }
  Result<std::string> decode(const std::vector<int64_t>& ids) const override { return data_->decode(ids); }
  int64_t end_of_turn() const override { return data_->end_of_turn(); }
  std::shared_future<void> gate;

 private:
  std::unique_ptr<Dataset> data_;
  int64_t broken_, unreadable_;
};

std::unique_ptr<JobContext> feed_job(LocalControl& control, int sp = 1) {
  JobSpec spec = small_spec(4);
  spec.groups[0].mesh.set(Axis::kSp, sp);
  return small_job(control, spec, make_random_batch({4, 6, 10, 20}, small_config(), 5));
}
}  // namespace

TEST_CASE("the feed gives steps in order, each with the input of its members") {
  LocalControl control(small_assignment(0, {{0}, {0}}, 1));
  const auto job = feed_job(control);
  StepFeed feed(*job, {{0, 0}, {1, 0}}, 2, 5, 2);
  for (int64_t step = 2; step <= 5; ++step) {
    auto input = feed.take(kPatience);
    REQUIRE(input.ok());
    CHECK(input->plan.step == step);
    CHECK(input->vision[0].size() == 4);
    CHECK(input->vision[1].empty());
    REQUIRE(input->text[1].size() == 4);
    const TextUnitBatch& unit = input->text[1][0];
    CHECK(unit.ids.size(0) == 20 + 15 + 2);
    CHECK(unit.positions.size(1) == unit.ids.size(0));
    CHECK(unit.vision_positions.size(0) == 15);
    CHECK(unit.loss_rows.size(0) == static_cast<int64_t>(unit.loss_samples.size()));
  }
}

TEST_CASE("a feed that is not emptied ends with its owner") {
  LocalControl control(small_assignment(0, {{0}, {0}}, 1));
  const auto job = feed_job(control);
  const StepFeed feed(*job, {{0, 0}}, 1, 1000, 1);
}

TEST_CASE("the patches of all sequence ranks together are those of the images") {
  LocalControl control(small_assignment(0, {{0}, {0}}, 1));
  const auto whole = feed_job(control), parts = feed_job(control, 3);
  BatchPlanner planner(whole->data->index(), whole->training_samples,
                       batch_plan_options(whole->spec, whole->config.vision, 4));
  auto one = make_step_input(*whole, *whole->data, planner.plan(1), {{0, 0}}, {});
  auto three = make_step_input(*parts, *parts->data, planner.plan(1), {{0, 0}, {0, 1}, {0, 2}}, {});
  REQUIRE(one.ok());
  REQUIRE(three.ok());
  int64_t rows = 0;
  double sum = 0;
  for (int r = 0; r < 3; ++r) {
    rows += three->vision[static_cast<size_t>(r)][0].patches.size(0);
    sum += three->vision[static_cast<size_t>(r)][0].patches.sum().item<double>();
  }
  CHECK(rows == one->vision[0][0].patches.size(0));
  CHECK(sum == Approx(one->vision[0][0].patches.sum().item<double>()).margin(1e-2));
}

TEST_CASE("targets are the tokens after their rows, within a sample") {
  LocalControl control(small_assignment(0, {{0}, {0}}, 1));
  const auto job = feed_job(control);
  BatchPlanner planner(job->data->index(), job->training_samples, batch_plan_options(job->spec, job->config.vision, 4));
  auto input = make_step_input(*job, *job->data, planner.plan(1), {{1, 0}}, {});
  REQUIRE(input.ok());
  const TextUnitBatch& unit = input->text[0][2];
  REQUIRE(unit.loss_rows.size(0) == 12);
  for (int64_t r = 0; r < unit.loss_rows.size(0); ++r)
    CHECK(unit.ids[unit.loss_rows[r].item<int64_t>() + 1].item<int64_t>() == unit.targets[r].item<int64_t>());
}

TEST_CASE("a sample that cannot be decoded ends the feed with its reason, and nothing waits behind it") {
  LocalControl control(small_assignment(0, {{0}, {0}}, 1));
  JobSpec spec = small_spec(2);  // steps of two samples: the second step meets the broken one
  const auto job = small_job(control, spec, std::make_unique<FaultyDataset>(3));
  StepFeed feed(*job, {{0, 0}}, 1, 9, 2);
  CHECK(feed.take(kPatience).ok());
  const auto broken = feed.take(kPatience);
  REQUIRE_FALSE(broken.ok());
  CHECK(broken.error().code == ErrorCode::kDataLoss);
  CHECK(broken.error().message.find("picture.png") != std::string::npos);
  const auto behind = feed.take(kPatience);
  REQUIRE_FALSE(behind.ok());
  CHECK(behind.error().code == ErrorCode::kFailedPrecondition);
}

TEST_CASE("with on_bad_record: skip every bad record of a step is reported, and the rest is the batch without them") {
  class ListeningControl final : public LocalControl {
   public:
    using LocalControl::LocalControl;
    void report_prepared(int64_t step, const std::vector<int64_t>& bad) override {
      const std::lock_guard lock(mutex);
      reported[step] = bad;
    }
    std::mutex mutex;
    std::map<int64_t, std::vector<int64_t>> reported;
  };
  ListeningControl control(small_assignment(0, {{0}, {0}}, 1));
  JobSpec spec = small_spec(4);
  spec.data.on_bad_record = OnBadRecord::kSkip;
  const auto job = small_job(control, spec, std::make_unique<FaultyDataset>(1, 2));
  Result<StepInput> input = internal_error("not taken");
  StepInput rest;
  {
    StepFeed feed(*job, {{0, 0}, {1, 0}}, 1, 2, 2);
    CHECK(feed.take(kPatience).ok());
    input = feed.take(kPatience);  // the feed goes on behind a step with bad records
    REQUIRE(input.ok());
    auto made = feed.without(input->plan, {1, 2});
    REQUIRE(made.ok());
    rest = std::move(*made);
    CHECK_FALSE(feed.without(input->plan, {1}).ok());  // what nobody reported ends the job
  }
  CHECK(control.reported == std::map<int64_t, std::vector<int64_t>>{{1, {1, 2}}, {2, {1, 2}}});
  CHECK(input->plan.samples == std::vector<int64_t>{0, 1, 2, 3});
  CHECK(rest.plan.samples == std::vector<int64_t>{0, 3});
  CHECK(rest.plan.left_out == 2);
  CHECK(rest.plan.data_epoch == input->plan.data_epoch);
  CHECK(rest.plan.images.size() == 2);
  CHECK(rest.plan.supervised < input->plan.supervised);
  LocalControl alone(small_assignment(0, {{0}, {0}}, 1));
  const auto clean = small_job(alone, small_spec(4), make_random_batch({4, 6, 10, 20}, small_config(), 5));
  const auto expected = make_step_input(*clean, *clean->data, rest.plan, {{0, 0}, {1, 0}}, {});
  REQUIRE(expected.ok());
  REQUIRE(rest.vision[0].size() == expected->vision[0].size());
  for (size_t u = 0; u < rest.vision[0].size(); ++u)
    CHECK(rest.vision[0][u].patches.equal(expected->vision[0][u].patches));
}

TEST_CASE("an error that is no record's own is not noted as a bad record") {
  BadSamples bad;
  CHECK(bad.note(3, data_loss("cut")).ok());
  CHECK(bad.note(4, not_found("gone")).ok());
  CHECK_FALSE(bad.note(5, internal_error("out of memory")).ok());
  CHECK(bad.found().size() == 2);
}

TEST_CASE("a step whose data does not come is given up at the deadline, by its number") {
  LocalControl control(small_assignment(0, {{0}, {0}}, 1));
  auto data = std::make_unique<FaultyDataset>(-1);
  std::promise<void> open;
  data->gate = open.get_future().share();
  const auto job = small_job(control, small_spec(4), std::move(data));
  StepFeed feed(*job, {{0, 0}}, 7, 9, 1);
  const auto late = feed.take(std::chrono::milliseconds(5));
  open.set_value();
  REQUIRE_FALSE(late.ok());
  CHECK(late.error().code == ErrorCode::kDeadlineExceeded);
  CHECK(late.error().message.find("step 7") != std::string::npos);
  CHECK(feed.take(kPatience).ok());
}

TEST_CASE("who waits for a step's data hears that the host is to stop") {
  class StoppedControl final : public LocalControl {
   public:
    using LocalControl::LocalControl;
    bool stop_requested() const override { return true; }
  };
  StoppedControl control(small_assignment(0, {{0}, {0}}, 1));
  auto data = std::make_unique<FaultyDataset>(-1);
  std::promise<void> open;
  data->gate = open.get_future().share();
  const auto job = small_job(control, small_spec(4), std::move(data));
  StepFeed feed(*job, {{0, 0}}, 1, 9, 1);
  const auto stopped = feed.take(kPatience);
  open.set_value();
  REQUIRE_FALSE(stopped.ok());
  CHECK(stopped.error().code == ErrorCode::kCancelled);
}
