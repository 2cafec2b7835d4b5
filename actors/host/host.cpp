#include "actors/host/host.h"

#include <ATen/Parallel.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "actors/checkpoint/model_io.h"
#include "actors/host/checkpointing.h"
#include "actors/host/debug_dump.h"
#include "actors/host/device.h"
#include "actors/host/evaluation.h"
#include "actors/host/meeting.h"
#include "actors/host/memory.h"
#include "actors/host/metrics.h"
#include "actors/host/noop_actor.h"
#include "actors/host/profile.h"
#include "base/checkpoint/checkpoint_folder.h"

namespace troupe {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::minutes kGrantTimeout{60}, kInputTimeout{60};
constexpr size_t kStepsAhead = 4096;  // of what is small; see StepFeed

/// Allocation owner numbers: 0 is what belongs to no actor.
int owner_of(size_t actor) { return static_cast<int>(actor) + 1; }

void report_left_out(const JobContext& job, int64_t step, const std::vector<int64_t>& samples) {
  std::vector<std::string> ids;
  std::string list;
  for (int64_t s : samples) {
    ids.emplace_back(job.data->index().samples[static_cast<size_t>(s)].id);
    list += (list.empty() ? "" : ", ") + ids.back();
  }
  job.control->report_event(
      "records_left_out",
      nlohmann::ordered_json{
          {"step", step},
          {"ids", ids},
          {"text", "step " + std::to_string(step) + " goes without what cannot be read (reasons in the logs): " + list}}
          .dump());
}

}  // namespace

Result<std::unique_ptr<Host>> Host::create(HostControl& control) {
  TROUPE_ASSIGN(auto job, make_job_context(control));
  const SlotInfo& slot = job->assignment.slots[static_cast<size_t>(job->assignment.self.value)];
  TROUPE_ASSIGN(job->device, open_device(slot));
  charge_by_meter(memory_meter(job->device));
  at::set_num_threads(std::max(1, slot.threads));
  std::unique_ptr<Host> host(new Host(std::move(job)));
  TROUPE_RETURN_IF_ERROR(host->make_actors());
  if (!host->job_->assignment.resume_from.empty()) TROUPE_RETURN_IF_ERROR(host->load_checkpoint());
  return host;
}

Status Host::make_actors() {
  job_->control->report_phase("connecting boundaries");
  TROUPE_ASSIGN(boundary_, Boundary::create(*job_));
  const auto arguments = nlohmann::json::parse(job_->assignment.command_json, nullptr, false);
  const bool with_rows = arguments.is_object() && arguments.value("rows", false);
  const auto& groups = job_->assignment.group_slots;
  for (size_t g = 0; g < groups.size(); ++g)
    for (size_t r = 0; r < groups[g].size(); ++r) {
      if (SlotId(groups[g][r]) != job_->assignment.self) continue;
      if (is_noop(job_->assignment.mode)) {
        actors_.push_back(
            std::make_unique<NoopActor>(*job_, static_cast<int>(g), static_cast<int>(r), *boundary_, with_rows));
      } else if (static_cast<int>(g) == job_->encoder) {
        actors_.push_back(std::make_unique<VisionActor>(*job_, static_cast<int>(g), static_cast<int>(r), *boundary_));
      } else {
        actors_.push_back(std::make_unique<TextActor>(*job_, static_cast<int>(g), static_cast<int>(r), *boundary_));
      }
    }
  for (size_t a = 0; a < actors_.size(); ++a) {
    const AllocationOwner owner(owner_of(a));
    TROUPE_RETURN_IF_ERROR(actors_[a]->set_up());
  }
  executor_ = std::make_unique<Executor>(*job_, actors_, *boundary_);
  return {};
}

std::vector<FeedMember> Host::members() const {
  std::vector<FeedMember> result;
  if (is_noop(job_->assignment.mode)) return result;  // no-ops look at no input
  for (const auto& actor : actors_) result.push_back({actor->group(), actor->rank()});
  return result;
}

Status Host::run() {
  if (job_->assignment.mode == JobMode::kEval) return run_evaluation();
  return train();
}

Status Host::train() {
  if (is_leader(*job_)) TROUPE_RETURN_IF_ERROR(discard_unfinished(job_->assignment.run_folder));
  // Steps wait for a grant, which comes when all are ready; a run that has none left goes on to its export at once.
  if (last_step_ >= job_->steps) TROUPE_RETURN_IF_ERROR(meet(*job_, "cleared", kGrantTimeout));
  StepFeed feed(*job_, members(), last_step_ + 1, job_->steps, kStepsAhead);
  if (is_leader(*job_))
    job_->control->report_event("training_plan", "{\"steps\": " + std::to_string(job_->steps) + "}");
  job_->control->report_ready();
  bool complete = true;
  Profile profile(*job_, actors_);
  StepClock clock(Clock::now());
  for (int64_t step = last_step_ + 1; step <= job_->steps; ++step) {
    // The input first: a step is granted when every host has prepared it, so a host whose data fails would wait for a
    // grant in vain.
    TROUPE_ASSIGN(StepInput input, feed.take(kInputTimeout));
    TROUPE_ASSIGN(const Grant grant, job_->control->wait_grant(step, kGrantTimeout));
    if (grant.stop_after >= 0 && step > grant.stop_after) {
      complete = false;
      break;
    }
    if (const auto bad = grant.left_out.find(step); bad != grant.left_out.end()) {
      TROUPE_ASSIGN(input, feed.without(input.plan, bad->second));
      if (is_leader(*job_)) report_left_out(*job_, step, bad->second);
    }
    clock.input_came(Clock::now());
    profile.before(step);
    TROUPE_RETURN_IF_ERROR(train_step(input, clock));
    profile.after(step);
    const EvalSpec& eval = job_->spec.eval;
    if (eval.every > 0 && (step % eval.every == 0 || step == job_->steps)) {
      TROUPE_RETURN_IF_ERROR(evaluate_and_report(step));
      clock.begin(Clock::now());
    }
    const int64_t every = job_->spec.checkpoint.every;
    if ((every > 0 && step % every == 0) || grant.save_at == step) {
      TROUPE_RETURN_IF_ERROR(save(step));
      clock.begin(Clock::now());
    }
  }
  if (complete && job_->spec.checkpoint.export_at_end) TROUPE_RETURN_IF_ERROR(export_model());
  for (const auto& actor : actors_) actor->settle();  // a world that ends earlier would abort what peers still gather
  TROUPE_RETURN_IF_ERROR(boundary_->close());
  nlohmann::ordered_json result;
  result["steps"] = last_step_;
  result["complete"] = complete;
  result["loss"] = last_loss_ ? nlohmann::ordered_json(*last_loss_) : nlohmann::ordered_json();
  return job_->control->report_finished(result.dump());
}

Status Host::train_step(StepInput& input, StepClock& clock) {
  const int64_t step = input.plan.step;
  std::vector<int64_t> standing(actors_.size());
  for (size_t a = 0; a < actors_.size(); ++a) {
    reset_peak(owner_of(a));
    standing[a] = live_bytes(owner_of(a));
  }
  const auto& dumps = job_->spec.debug.steps;
  const bool dump = std::find(dumps.begin(), dumps.end(), step) != dumps.end();
  for (const auto& actor : actors_)
    if (auto* text = dynamic_cast<TextActor*>(actor.get()))
      text->keep_vision_rows(dump && job_->spec.debug.vision_rows);
  GradientHook hook;
  if (dump) hook = [&](int64_t) { return dump_step(*job_, actors_, input.plan); };
  TROUPE_ASSIGN(const StepOutcome outcome, executor_->train(input, step - skipped_total_, hook));
  last_step_ = step;
  skipped_in_row_ = outcome.skipped ? skipped_in_row_ + 1 : 0;
  skipped_total_ += outcome.skipped ? 1 : 0;
  last_loss_ = outcome.sums.loss / static_cast<double>(std::max<int64_t>(input.plan.supervised, 1));
  std::vector<int64_t> peaks(actors_.size());
  for (size_t a = 0; a < actors_.size(); ++a) peaks[a] = peak_bytes(owner_of(a)) - standing[a];
  const StepTime time = clock.end(Clock::now());
  std::string line;
  for (const auto& actor : actors_)
    if (actor->group() == job_->decoder && actor->rank() == 0)
      line = step_line(*job_, input.plan, outcome, time, skipped_total_, attempt_);
  job_->control->report_step(step, line, local_line(*job_, actors_, peaks));
  if (outcome.skipped && is_leader(*job_))
    spdlog::warn("step {} is skipped: its loss or a gradient was not finite", step);
  if (outcome.skipped && skipped_in_row_ >= job_->spec.training.max_skipped)
    return make_error(ErrorCode::kFailedPrecondition,
                      "the loss or a gradient was not finite in " + std::to_string(skipped_in_row_) +
                          " steps in a row, up to step " + std::to_string(step) +
                          " (training.max_skipped); lower training.optimizer.lr or look at the data of these steps");
  return {};
}

Status Host::evaluate_and_report(int64_t step) {
  if (job_->eval_samples.empty()) return {};
  TROUPE_ASSIGN(const EvaluationResult result, evaluate(*job_, actors_, *executor_, step, {}));
  if (!is_leader(*job_)) return {};
  nlohmann::ordered_json line = {{"step", step}};
  line.update(result.to_json());
  job_->control->report_evaluation(step, line.dump());
  return {};
}

Status Host::save(int64_t step) {
  job_->control->report_phase("saving step " + std::to_string(step));
  return save_checkpoint(*job_, actors_, {step, skipped_total_});
}

Status Host::load_checkpoint() {
  job_->control->report_phase("loading the checkpoint");
  TROUPE_ASSIGN(const TrainingPosition position, restore_checkpoint(*job_, actors_));
  last_step_ = position.step;
  // RUN/checkpoints/step-N: the run that saved it may be another one.
  last_loss_ = loss_of_step(std::filesystem::path(job_->assignment.resume_from).parent_path().parent_path().string(),
                            last_step_);
  attempt_ = next_attempt(job_->assignment.run_folder, last_step_);
  skipped_total_ = position.skipped_steps;
  return {};
}

Status Host::export_model() {
  job_->control->report_phase("exporting");
  return export_checkpoint(*job_, actors_, job_->assignment.run_folder + "/export");
}

Status Host::run_evaluation() {
  const auto arguments = nlohmann::json::parse(job_->assignment.command_json, nullptr, false);
  EvaluationOptions options;
  if (arguments.is_object()) {
    options.show = arguments.value("show", size_t{0});
    options.shuffle_images = arguments.value("shuffle_images", false);
  }
  job_->control->report_ready();
  job_->control->report_prepared(1, {});
  TROUPE_ASSIGN(const Grant grant, job_->control->wait_grant(1, kGrantTimeout));
  if (grant.stop_after == 0) return job_->control->report_finished("{}");
  TROUPE_ASSIGN(const EvaluationResult result, evaluate(*job_, actors_, *executor_, 0, options));
  if (!std::isfinite(result.sums.loss))
    return make_error(ErrorCode::kFailedPrecondition,
                      "the loss of these records is not finite: the model's weights are, but not the logits that it "
                      "computes from them");
  nlohmann::ordered_json line = result.to_json();
  line["images"] = result.images;
  if (options.shuffle_images) line["images_replaced"] = result.images_replaced;
  const Dataset& data = job_->eval_dataset();
  line["show"] = nlohmann::ordered_json::array();
  for (const ShownAnswer& answer : result.shown) {
    TROUPE_ASSIGN(const SampleText text, data.text(answer.sample));
    TROUPE_ASSIGN(const std::string predicted, data.decode(answer.predicted));
    line["show"].push_back({{"id", data.index().samples[static_cast<size_t>(answer.sample)].id},
                            {"question", text.question},
                            {"expected", text.answer},
                            {"predicted", predicted}});
  }
  bool speaker = false;  // the host that has collected the answers
  for (const auto& actor : actors_) speaker = speaker || (actor->group() == job_->decoder && actor->rank() == 0);
  // A model may predict any bytes; what is not UTF-8 is shown as U+FFFD.
  const std::string text = line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (speaker) job_->control->report_evaluation(0, text);
  TROUPE_RETURN_IF_ERROR(boundary_->close());
  return job_->control->report_finished(speaker ? text : "{}");
}

}  // namespace troupe
