#include "actors/host/executor.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>

namespace troupe {

Result<StepOutcome> Executor::train(StepInput& input, int64_t updates, const GradientHook& hook) {
  return run(job_.training, input, updates, false, hook);
}

Result<StepOutcome> Executor::evaluate(StepInput& input) { return run(job_.evaluation, input, 0, true, {}); }

Status Executor::run_instruction(const Instruction& i, Actor& actor) {
  switch (i.op) {
    case Op::kForward: return actor.forward(i.unit);
    case Op::kBackward: return actor.backward(i.unit);
    case Op::kPost: return actor.post(i);
    case Op::kWait: return actor.wait(i);
    case Op::kReduce: actor.optimizer()->reduce_gradients(); return {};
    case Op::kGather: actor.optimizer()->gather_weights(); return {};
    case Op::kCombine:
    case Op::kUpdate: break;  // not an actor's alone; run() has done them
  }
  return internal_error(std::string("instruction ") + op_name(i.op) + " cannot be run by one actor");
}

Result<StepSums> Executor::group_sums(Actor& actor, bool evaluation, bool first_on_host) {
  StepSums mine = actor.sums();
  if (!evaluation && actor.trained()) {
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
        TROUPE_RETURN_IF_ERROR(boundary_.send_numbers(actor.group(), actor.rank(), static_cast<int>(other), sums.to_numbers()));
  }
  for (const auto& actor : actors_)
    for (size_t other = 0; other < groups; ++other) {
      if (static_cast<int>(other) == actor->group()) continue;
      TROUPE_ASSIGN(const std::vector<double> numbers, boundary_.receive_numbers(static_cast<int>(other), actor->group(), actor->rank(), StepSums::kCount));
      of_group[other] = StepSums::from_numbers(numbers);
      known[other] = true;
    }
  for (size_t g = 0; g < groups; ++g) {
    TROUPE_CHECK(known[g]);
    outcome.sums.add(of_group[g]);
  }
  outcome.grad_norm = std::sqrt(outcome.sums.norm_squared);
  outcome.skipped = outcome.sums.non_finite > 0 || !std::isfinite(outcome.sums.loss) || !std::isfinite(outcome.grad_norm);
  return {};
}

Result<StepOutcome> Executor::run(const Program& program, StepInput& input, int64_t updates, bool evaluation, const GradientHook& hook) {
  const StepPlan& plan = input.plan;
  const SampleIndex& index = evaluation ? job_.eval_dataset().index() : job_.data->index();
  boundary_.begin_step(plan, index, evaluation);
  const double scale = 1.0 / static_cast<double>(std::max<int64_t>(plan.supervised, 1));
  for (size_t m = 0; m < actors_.size(); ++m) {
    actors_[m]->begin_step(input, m, scale, evaluation);
    if (!evaluation) actors_[m]->zero_gradients();
  }
  StepOutcome outcome;
  const OptimizerSpec& optimizer = job_.spec.training.optimizer;
  for (const auto& [name, component] : job_.spec.components)
    if (component.train && !evaluation)
      outcome.lr[name] = learning_rate(job_.spec.training.schedule, component.lr.value_or(optimizer.lr), plan.step, job_.steps);
  for (const Instruction& i : expand(program, shape_of(program, plan))) {
    if (i.op == Op::kCombine) {
      TROUPE_RETURN_IF_ERROR(combine(outcome, evaluation));
      if (hook) TROUPE_RETURN_IF_ERROR(hook(plan.step));
      continue;
    }
    for (const auto& actor : actors_) {
      if (actor->group() != i.group) continue;
      job_.control->publish_progress(plan.step, op_name(i.op), i.group, actor->rank());
      if (i.op == Op::kUpdate) {
        // As torch.nn.utils.clip_grad_norm_ scales.
        const double clip = optimizer.clip > 0 ? std::min(1.0, optimizer.clip / (outcome.grad_norm + 1e-6)) : 1.0;
        if (!outcome.skipped) actor->optimizer()->update(updates, outcome.lr, clip);
        continue;
      }
      if (i.op == Op::kGather && outcome.skipped) continue;
      if (Status s = run_instruction(i, *actor); !s.ok())
        return wrap(s.error(), "step " + std::to_string(plan.step) + ", " + i.to_string(program));
    }
  }
  return outcome;
}

}  // namespace troupe
