#pragma once

#include <map>

#include "actors/host/actor.h"

/// A rank without a model, for `troupe bench dispatch`: all that is left of a step is what the orchestration costs.
namespace troupe {

/// Owner thread only. Rows [n, H] that cross the boundary hold the step's number, their gradients that plus one; both
/// are checked.
class NoopActor final : public Actor {
 public:
  /// `rows`: rows and gradients cross the boundary; else those instructions do nothing either.
  NoopActor(const JobContext& job, int group, int rank, Boundary& boundary, bool rows)
      : Actor(job, group, rank, boundary), with_rows_(rows) {}
  /// No world, no parameters.
  Status set_up() override { return {}; }
  void begin_step(StepInput& input, size_t member, double scale, bool evaluation) override;
  Status forward(int unit) override;
  Status backward(int unit) override;
  Status post(const Instruction& instruction) override;
  Status wait(const Instruction& instruction) override;
  at::Tensor outgoing(int unit) const override;
  StepSums sums() override { return {}; }

 private:
  Status make_model() override { return {}; }
  bool produces() const { return group_ == job_.encoder; }
  at::Tensor make_rows(int64_t count) const;
  Status check(const at::Tensor& rows, float expected, const char* what) const;

  const bool with_rows_;
  std::map<int, at::Tensor> sent_, received_;  // by unit
};

}  // namespace troupe
