#include "actors/host/evaluation.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace troupe {
namespace {

/// For each (sample, image): the image to look at. Among images of one grid each gets its successor's, so that shapes
/// stay as planned.
std::map<std::pair<int64_t, int>, std::pair<int64_t, int>> shuffled_images(const SampleIndex& index,
                                                                           const std::vector<int64_t>& samples) {
  std::map<std::tuple<int, int, int>, std::vector<std::pair<int64_t, int>>> by_grid;
  for (int64_t s : samples) {
    const auto& images = index.samples[static_cast<size_t>(s)].images;
    for (size_t i = 0; i < images.size(); ++i)
      by_grid[{images[i].t, images[i].h, images[i].w}].push_back({s, static_cast<int>(i)});
  }
  std::map<std::pair<int64_t, int>, std::pair<int64_t, int>> result;
  for (const auto& [grid, images] : by_grid) {
    // Half the list away, so that records that were made one after the other do not swap among themselves.
    const size_t shift = std::max<size_t>(1, images.size() / 2);
    for (size_t i = 0; i < images.size(); ++i) result[images[i]] = images[(i + shift) % images.size()];
  }
  return result;
}

}  // namespace

nlohmann::ordered_json EvaluationResult::to_json() const {
  nlohmann::ordered_json j;
  const double targets = std::max(1.0, sums.targets);
  j["eval_loss"] = sums.loss / targets;
  j["eval_accuracy"] = sums.correct / targets;
  j["eval_exact"] = sums.exact / std::max(1.0, sums.samples);
  j["eval_samples"] = static_cast<int64_t>(sums.samples);
  j["eval_tokens"] = static_cast<int64_t>(sums.targets);
  return j;
}

Result<EvaluationResult> evaluate(const JobContext& job, std::vector<std::unique_ptr<Actor>>& actors,
                                  Executor& executor, int64_t step, const EvaluationOptions& options) {
  EvaluationResult result;
  if (job.eval_samples.empty()) return result;
  const Dataset& data = job.eval_dataset();
  BatchPlanOptions plan_options =
      batch_plan_options(job.spec, job.config.vision, static_cast<int64_t>(job.eval_samples.size()));
  plan_options.source_weights.clear();  // each sample is looked at once
  const BatchPlanner planner(data.index(), job.eval_samples, plan_options);
  std::map<std::pair<int64_t, int>, std::pair<int64_t, int>> replaced;
  if (options.shuffle_images) replaced = shuffled_images(data.index(), job.eval_samples);
  std::vector<FeedMember> members;
  for (const auto& actor : actors) {
    members.push_back({actor->group(), actor->rank()});
    if (auto* text = dynamic_cast<TextActor*>(actor.get())) {
      text->shown().clear();
      text->show_answers(options.show);
    }
  }
  const auto n = static_cast<int64_t>(job.eval_samples.size());
  for (int64_t begin = 0; begin < n; begin += plan_options.global_batch) {
    const int64_t end = std::min(n, begin + plan_options.global_batch);
    StepPlan plan = planner.plan_samples(step, {job.eval_samples.begin() + begin, job.eval_samples.begin() + end});
    std::vector<std::pair<int64_t, int>> image_of;
    for (const StepImage& image : plan.images) {
      ++result.images;
      if (!options.shuffle_images) continue;
      const std::pair<int64_t, int> own = {plan.samples[static_cast<size_t>(image.sample)], image.image};
      image_of.push_back(replaced.at(own));
      result.images_replaced += image_of.back() != own ? 1 : 0;
    }
    TROUPE_ASSIGN(StepInput input, make_step_input(job, data, std::move(plan), members, image_of));
    TROUPE_ASSIGN(const StepOutcome outcome, executor.evaluate(input));
    result.sums.add(outcome.sums);
  }
  for (const auto& actor : actors)
    if (auto* text = dynamic_cast<TextActor*>(actor.get())) {
      for (ShownAnswer& answer : text->shown()) result.shown.push_back(std::move(answer));
      text->show_answers(0);
    }
  return result;
}

}  // namespace troupe
