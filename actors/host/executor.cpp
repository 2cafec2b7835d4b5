#include "actors/host/executor.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>

#include "actors/host/device.h"
#include "actors/host/memory.h"

namespace troupe {

namespace {
std::vector<std::pair<int, int>> places(const std::vector<std::unique_ptr<Actor>>& actors) {
  std::vector<std::pair<int, int>> out;
  for (const auto& actor : actors) out.emplace_back(actor->group(), actor->rank());
  return out;
}

/// What the progress page says of an instruction that is no wait for rows: its name and, where it waits too, for whom.
const char* progress_name(Op op) {
  if (op == Op::kReduced) return "reduce <- ranks of its group";
  if (op == Op::kGathered) return "gather <- ranks of its group";
  if (op == Op::kCombine) return "combine <- all groups";
  return op_name(op);
}
}  // namespace

Executor::Executor(const JobContext& job, std::vector<std::unique_ptr<Actor>>& actors, Boundary& boundary)
    : job_(job), actors_(actors), boundary_(boundary), loop_(places(actors), job.trace.get()) {}

Result<StepOutcome> Executor::train(StepInput& input, int64_t updates, const GradientHook& hook) {
  return run(job_.training, input, updates, false, hook);
}

Result<StepOutcome> Executor::evaluate(StepInput& input) { return run(job_.evaluation, input, 0, true, {}); }

Status Executor::run_instruction(const Instruction& i, Actor& actor, int64_t updates, const StepOutcome& outcome) {
  const double clip = job_.spec.training.optimizer.clip;
  switch (i.op) {
    case Op::kForward:
      return actor.forward(i.unit);
    case Op::kBackward: {
      if (!i.reduces) return actor.backward(i.unit);
      actor.optimizer()->reduce_when_final(true);
      const Status done = actor.backward(i.unit);
      actor.optimizer()->reduce_when_final(false);
      return done;
    }
    case Op::kPost:
      return actor.post(i);
    case Op::kWait:
      return actor.wait(i);
    case Op::kReduce:
      actor.optimizer()->post_reduce(i.bucket);
      return {};
    case Op::kReduced:
      actor.optimizer()->wait_reduced();
      return {};
    case Op::kUpdate: {
      const SpanScope scope(job_.trace.get(),
                            job_.span(SpanKind::kKernel, "update", step_, actor.group(), actor.rank(), i.bucket));
      // As torch.nn.utils.clip_grad_norm_ scales. A step that is skipped is skipped on all groups alike.
      const double scale = clip > 0 ? std::min(1.0, clip / (outcome.grad_norm + 1e-6)) : 1.0;
      if (!outcome.skipped) actor.optimizer()->update_bucket(i.bucket, {updates, outcome.lr, scale});
      return {};
    }
    case Op::kGather:
      if (!outcome.skipped) actor.optimizer()->post_gather(i.bucket);
      return {};
    case Op::kGathered:
      actor.optimizer()->wait_gathered();
      return {};
    case Op::kCombine:
      break;  // not one actor's: run() does it
  }
  return internal_error(std::string("instruction ") + op_name(i.op) + " cannot be run by one actor");
}

std::map<std::string, double> Executor::learning_rates(int64_t step) const {
  std::map<std::string, double> rates;
  for (const auto& [name, component] : job_.spec.components)
    if (component.train)
      rates[name] = learning_rate(job_.spec.training.schedule, component.lr.value_or(job_.spec.training.optimizer.lr),
                                  step, job_.steps);
  return rates;
}

Result<StepSums> Executor::group_sums(Actor& actor, bool evaluation, bool first_on_host) {
  StepSums mine = actor.sums();
  if (!evaluation && actor.trained()) {
    const SpanScope scope(job_.trace.get(), job_.span(SpanKind::kKernel, "norm", step_, actor.group(), actor.rank()));
    const NormPart part = actor.optimizer()->norm_part();
    mine.norm_squared = part.squared;
    mine.non_finite = part.non_finite;
  }
  if (first_on_host) {
    const BoundaryCounters moved = boundary_.take_counters();
    mine.wire_rows = static_cast<double>(moved.wire_rows);
    mine.in_process_rows = static_cast<double>(moved.in_process_rows);
  }
  Communicator& whole = actor.world().over(kWholeGroup);
  if (whole.size() == 1) return mine;
  const SpanScope scope(job_.trace.get(), job_.span(SpanKind::kPeer, "sums", step_, actor.group(), actor.rank()));
  const auto count = static_cast<int64_t>(StepSums::kCount);
  const at::TensorOptions options = at::TensorOptions().dtype(at::kDouble).device(actor.store().options().device);
  at::Tensor in = at::empty({count}, at::kDouble);
  const std::vector<double> numbers = mine.to_numbers();
  std::copy(numbers.begin(), numbers.end(), in.data_ptr<double>());
  at::Tensor out = at::empty({whole.size() * count}, options);
  whole.all_gather(out, in.to(options.device()));
  out = out.cpu();
  StepSums total;
  for (int r = 0; r < whole.size(); ++r) {
    const double* part = out.const_data_ptr<double>() + r * count;
    total.add(StepSums::from_numbers({part, part + count}));
  }
  return total;
}

Status Executor::combine(StepOutcome& outcome, bool evaluation) {
  const size_t groups = job_.spec.groups.size();
  std::vector<StepSums> of_group(groups);
  std::vector<bool> known(groups, false);
  for (size_t a = 0; a < actors_.size(); ++a) {
    Actor& actor = *actors_[a];
    TROUPE_ASSIGN(const StepSums sums, group_sums(actor, evaluation, a == 0));
    of_group[static_cast<size_t>(actor.group())] = sums;
    known[static_cast<size_t>(actor.group())] = true;
    for (size_t other = 0; other < groups; ++other)
      if (static_cast<int>(other) != actor.group())
        TROUPE_RETURN_IF_ERROR(
            boundary_.send_numbers(actor.group(), actor.rank(), static_cast<int>(other), sums.to_numbers()));
  }
  for (const auto& actor : actors_)
    for (size_t other = 0; other < groups; ++other) {
      if (static_cast<int>(other) == actor->group()) continue;
      TROUPE_ASSIGN(
          const std::vector<double> numbers,
          boundary_.receive_numbers(static_cast<int>(other), actor->group(), actor->rank(), StepSums::kCount));
      of_group[other] = StepSums::from_numbers(numbers);
      known[other] = true;
    }
  for (size_t g = 0; g < groups; ++g) {
    TROUPE_CHECK(known[g]);
    outcome.sums.add(of_group[g]);
  }
  outcome.grad_norm = std::sqrt(outcome.sums.norm_squared);
  outcome.skipped =
      outcome.sums.non_finite > 0 || !std::isfinite(outcome.sums.loss) || !std::isfinite(outcome.grad_norm);
  return {};
}

Result<StepOutcome> Executor::run(const Program& program, StepInput& input, int64_t updates, bool evaluation,
                                  const GradientHook& hook) {
  const StepPlan& plan = input.plan;
  step_ = plan.step;
  const SpanScope whole(evaluation ? nullptr : job_.trace.get(), job_.span(SpanKind::kStep, "step", plan.step, -1, -1));
  const SampleIndex& index = evaluation ? job_.eval_dataset().index() : job_.data->index();
  boundary_.begin_step(plan, index, evaluation);
  const double scale = 1.0 / static_cast<double>(std::max<int64_t>(plan.supervised, 1));
  for (size_t m = 0; m < actors_.size(); ++m) {
    actors_[m]->begin_step(input, m, scale, evaluation);
    const SpanScope scope(job_.trace.get(),
                          job_.span(SpanKind::kKernel, "zero", plan.step, actors_[m]->group(), actors_[m]->rank()));
    if (!evaluation) actors_[m]->zero_gradients();
  }
  StepOutcome outcome;
  if (!evaluation) outcome.lr = learning_rates(plan.step);
  InstructionWork work;
  work.progress = [&](const Instruction& i, int group, int rank) {
    if (i.op == Op::kWait) return job_.control->publish_progress(plan.step, i.to_string(program).c_str(), group, rank);
    job_.control->publish_progress(plan.step, progress_name(i.op), group, rank);
  };
  work.account = [&](const Instruction& i, double seconds) { outcome.seconds[{i.group, i.op}] += seconds; };
  work.perform = [&](const Instruction& i, size_t a) {
    const Status done = [&] {
      const AllocationOwner owner(static_cast<int>(a) + 1);
      return run_instruction(i, *actors_[a], updates, outcome);
    }();
    if (fence_ && done.ok()) synchronise(job_.device);
    return done;
  };
  work.combine = [&](const Instruction&) -> Status {
    TROUPE_RETURN_IF_ERROR(combine(outcome, evaluation));
    return hook ? hook(plan.step) : Status();
  };
  TROUPE_RETURN_IF_ERROR(loop_.run(program, plan.step, expand(program, shape_of(program, plan)), work));
  return outcome;
}

}  // namespace troupe
