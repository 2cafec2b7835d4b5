#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/config/job_spec.h"
#include "base/data/sample_index.h"
#include "base/model/model_config.h"
#include "base/result.h"

/// Step -> samples -> lanes -> units: pure functions of the index and the spec, the same on every rank, so that data
/// order survives restarts and no rank asks another what it works on.
namespace troupe {

/// What a group's lanes and units are cut by.
struct BatchPlanOptions {
  uint64_t seed = 1;
  bool shuffle = true;
  int64_t global_batch = 1;
  int64_t microbatch_samples = 1, microbatch_tokens = 0, pack_tokens = 0;
  int text_lanes = 1, vision_lanes = 1;
  int unit_images = 0;      // 0: a vision unit holds the images of one text microbatch over all lanes
  bool balance = true;      // samples and images go to lanes by cost; false: in reading order
  int64_t sort_window = 0;  // global batches within which samples are sorted by tokens; 0: not sorted
  int64_t merge = 2;        // patches a merged token along each side
  /// What a patch costs more for each patch of its frame (full attention), as a part of what it costs alone.
  double frame_cost = 0;
  int64_t total_samples = -1;  // the stream ends here (training.epochs); -1: never
  /// How often each sample of a source comes in a data epoch, by source; empty: once.
  std::vector<double> source_weights;
};

/// The options that a job spec asks for. `samples`: of a data epoch of the training set (epoch_size).
BatchPlanOptions batch_plan_options(const JobSpec& spec, const VisionConfig& vision, int64_t samples);
/// BatchPlanOptions::frame_cost of an encoder, by floating-point operations.
double frame_cost(const VisionConfig& vision);
/// What an image costs the encoder, in patches without full attention.
double image_cost(const IndexedImage& grid, double frame_cost);
/// Steps of the whole training: training.steps, or every sample of training.epochs once (the last batch may be
/// smaller). `samples`: of a data epoch.
int64_t training_steps(const JobSpec& spec, int64_t samples);

/// An image of a step. Rows are merged tokens, numbered over the whole step in reading order.
struct StepImage {
  int32_t sample = 0;  // position in StepPlan::samples
  int32_t image = 0;   // of the sample
  int64_t first_row = 0;
  IndexedImage grid;
};

struct TextUnit {
  std::vector<int32_t> samples;  // positions in StepPlan::samples, in sequence order
  int sequences = 0;             // samples, or packs with pack_tokens
};
struct VisionUnit {
  std::vector<int32_t> images;  // positions in StepPlan::images, ascending
};

/// One step's work. Every lane of a group has the same number of units; a lane's unit may be empty. Which lane works on
/// what changes neither the batch nor its loss, which is a sum.
struct StepPlan {
  int64_t step = 0;
  double data_epoch = 0;          // passes over the data done after this step
  std::vector<int64_t> samples;   // dataset sample numbers, reading order
  std::vector<StepImage> images;  // reading order
  int64_t rows = 0, supervised = 0, tokens = 0;
  int64_t left_out = 0;                         // samples of the batch that are not in `samples`
  std::vector<std::vector<TextUnit>> text;      // [lane][unit]
  std::vector<std::vector<VisionUnit>> vision;  // [lane][unit]
  int text_units() const { return text.empty() ? 0 : static_cast<int>(text[0].size()); }
  int vision_units() const { return vision.empty() ? 0 : static_cast<int>(vision[0].size()); }
  /// feeds()[v]: the text units with a row of vision unit v, over all lanes, ascending.
  std::vector<std::vector<int>> feeds() const;
};

/// Plans steps of the sample stream: data epoch after data epoch, each a permutation by (seed, data epoch) of what
/// epoch_samples gives. Owner
/// thread only (it keeps the permutations in use).
class BatchPlanner {
 public:
  /// `usable`: dataset sample numbers that training may use (held-out ones left out). `index` outlives the planner.
  BatchPlanner(const SampleIndex& index, std::vector<int64_t> usable, const BatchPlanOptions& options);
  /// Step numbers start at 1.
  StepPlan plan(int64_t step);
  /// Units for an explicit list of samples in this order (evaluation, benches); `step` is only a label.
  /// Thread-safe.
  StepPlan plan_samples(int64_t step, std::vector<int64_t> samples) const;
  /// `plan` without some of its dataset samples (ascending), wherever they stand in it: what every rank derives when
  /// those cannot be read. May leave none. Thread-safe.
  StepPlan without(const StepPlan& plan, const std::vector<int64_t>& samples) const;

 private:
  const std::vector<int64_t>& epoch_order(int64_t epoch);
  void sort_windows(std::vector<int64_t>& order, uint64_t stream) const;
  int64_t tokens_of(const StepPlan& plan, int32_t sample) const;
  /// Samples of each text lane, ascending.
  std::vector<std::vector<int32_t>> text_lanes(const StepPlan& plan) const;
  /// Samples of one lane as sequences: a sample each, or packs of at most pack_tokens.
  std::vector<std::vector<int32_t>> sequences(const StepPlan& plan, const std::vector<int32_t>& samples) const;
  void form_text_units(StepPlan& plan) const;
  void form_vision_units(StepPlan& plan) const;

  const SampleIndex& index_;
  std::vector<int64_t> usable_;
  BatchPlanOptions options_;
  int64_t epoch_size_;
  int64_t cached_epoch_[2] = {-1, -1};
  std::vector<int64_t> cached_[2];
};

}  // namespace troupe
