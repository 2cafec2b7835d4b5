#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "actors/host/boundary.h"
#include "actors/host/job_context.h"
#include "actors/host/step_feed.h"
#include "actors/models/text_decoder.h"
#include "actors/models/vision_encoder.h"
#include "actors/optim/optimizer.h"
#include "transport/world/world.h"

/// One rank of one group: its world, parameters, optimizer and model, driven by the instructions of a program.
namespace troupe {

/// What an actor adds to the numbers of a step; summed over ranks in rank order, then over groups in spec order.
struct StepSums {
  double norm_squared = 0, non_finite = 0;
  double loss = 0, targets = 0, correct = 0;  // counted on tp rank 0 of each text lane
  double samples = 0,
         exact = 0;  // evaluation: samples with targets, and those answered exactly (end of turn not counted)
  double wire_rows = 0, in_process_rows = 0;
  static constexpr size_t kCount = 9;
  std::vector<double> to_numbers() const;
  static StepSums from_numbers(const std::vector<double>& n);
  void add(const StepSums& other);
};

/// One evaluated answer, for a person to read.
struct ShownAnswer {
  int64_t sample = 0;
  std::vector<int64_t> expected, predicted;
};

/// Loss of one sample, kept for debug dumps (tp rank 0 of a text lane).
struct SampleLoss {
  int32_t at = 0;  // position in StepPlan::samples: a batch may hold a record twice
  double loss = 0;
  int64_t supervised = 0;
};

/// Owner thread only. Tensor errors leave as exceptions and are caught by the executor.
class Actor {
 public:
  Actor(const JobContext& job, int group, int rank, Boundary& boundary)
      : job_(job), boundary_(boundary), group_(group), rank_(rank) {}
  virtual ~Actor() = default;
  /// Connects the world, makes parameters, model and (when trained) optimizer, loads weights.
  virtual Status set_up();
  int group() const { return group_; }
  int rank() const { return rank_; }
  World& world() { return *world_; }
  ParameterStore& store() { return *store_; }
  GroupOptimizer* optimizer() { return optimizer_.get(); }
  bool trained() const { return optimizer_ != nullptr; }

  /// A step's input for this member; `scale` = 1 / max(N, 1).
  virtual void begin_step(StepInput& input, size_t member, double scale, bool evaluation) = 0;
  virtual Status forward(int unit) = 0;
  virtual Status backward(int unit) = 0;
  virtual Status post(const Instruction& instruction) = 0;
  virtual Status wait(const Instruction& instruction) = 0;
  /// What post sends of a unit: an encoder's rows behind its forward, a decoder's row gradients behind its backward.
  /// Undefined when there is nothing.
  virtual at::Tensor outgoing(int unit) const = 0;
  /// What this rank adds to the step's sums.
  virtual StepSums sums() = 0;
  void zero_gradients();
  /// Waits for weights that are still being gathered: before anybody but forward passes and updates reads them.
  void settle();

 protected:
  virtual Status make_model() = 0;
  void make_optimizer();
  const GroupSpec& spec() const { return job_.group(group_); }

  const JobContext& job_;
  Boundary& boundary_;
  const int group_, rank_;
  int64_t step_ = 0;  // under way
  std::unique_ptr<World> world_;
  std::unique_ptr<ParameterStore> store_;
  std::unique_ptr<GroupOptimizer> optimizer_;
};

/// The vision encoder's rank: forward makes rows, backward takes their gradients.
class VisionActor final : public Actor {
 public:
  using Actor::Actor;
  void begin_step(StepInput& input, size_t member, double scale, bool evaluation) override;
  Status forward(int unit) override;
  Status backward(int unit) override;
  Status post(const Instruction& instruction) override;
  Status wait(const Instruction& instruction) override;
  at::Tensor outgoing(int unit) const override;
  StepSums sums() override { return {}; }

 private:
  struct UnitState {
    at::Tensor rows, gradient;
    std::unique_ptr<VisionContext> context;
  };
  Status make_model() override;
  std::unique_ptr<VisionEncoder> encoder_;
  std::vector<VisionUnitInput>* inputs_ = nullptr;
  std::map<int, UnitState> units_;
  bool keep_context_ = false;
};

/// The text decoder's rank: forward takes vision rows and makes losses, backward makes the rows' gradients.
class TextActor final : public Actor {
 public:
  using Actor::Actor;
  void begin_step(StepInput& input, size_t member, double scale, bool evaluation) override;
  Status forward(int unit) override;
  Status backward(int unit) override;
  Status post(const Instruction& instruction) override;
  Status wait(const Instruction& instruction) override;
  at::Tensor outgoing(int unit) const override;
  StepSums sums() override { return sums_; }
  /// Evaluation: answers of this lane so far (tp rank 0), at most `limit` are kept.
  void show_answers(size_t limit) { show_limit_ = limit; }
  std::vector<ShownAnswer>& shown() { return shown_; }
  /// Of the last step: losses by sample, and vision rows by position in StepPlan::samples when `keep_vision_rows` was
  /// set before it.
  const std::vector<SampleLoss>& sample_losses() const { return sample_losses_; }
  void keep_vision_rows(bool keep) { keep_rows_ = keep; }
  std::map<int32_t, at::Tensor>& vision_rows() { return vision_rows_; }

 private:
  struct UnitState {
    at::Tensor stripe;    // [n_local, H] rows received here
    at::Tensor gradient;  // [n_local, H]
    std::unique_ptr<TextContext> context;
  };
  Status make_model() override;
  int lane() const;
  int tp_rank() const;
  UnitState& unit_state(int unit);
  std::vector<int64_t> stripe_sizes(int unit);
  at::Tensor gather_rows(int unit, const at::Tensor& stripe);
  void record(const TextUnitBatch& batch, const TextResult& result, int unit);
  void keep_sample_rows(int unit, const at::Tensor& all_rows);

  std::unique_ptr<TextDecoder> decoder_;
  StepInput* input_ = nullptr;
  std::vector<TextUnitBatch>* batches_ = nullptr;
  std::map<int, UnitState> units_;
  StepSums sums_;
  double scale_ = 1;
  bool evaluation_ = false, keep_rows_ = false;
  size_t show_limit_ = 0;
  std::vector<ShownAnswer> shown_;
  std::vector<SampleLoss> sample_losses_;
  std::map<int32_t, at::Tensor> vision_rows_;
};

/// The set of all mesh axes: the communicator over the whole group.
inline constexpr AxisSet kWholeGroup = {Axis::kDp, Axis::kPp, Axis::kCp, Axis::kSp, Axis::kTp};
/// The axes over which ZeRO-1 shards.
inline constexpr AxisSet kZeroAxes = {Axis::kDp, Axis::kCp, Axis::kSp};

}  // namespace troupe
