#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "actors/host/job_context.h"
#include "actors/models/text_decoder.h"
#include "base/data/boundary_layout.h"

/// Prepares the input of steps ahead of their execution: plans, tokens and decoded image patches of the actors on this
/// host.
namespace troupe {

/// An actor on this host, as far as its input is concerned.
struct FeedMember {
  int group = 0, rank = 0;
};

struct VisionUnitInput {
  VisionUnitLayout layout;
  at::Tensor patches;  // [P_local, patch_dim] fp32, local window order
};

/// Input of one step for the members of a host; vectors run parallel to the members, units in order.
struct StepInput {
  StepPlan plan;
  std::vector<std::vector<VisionUnitInput>> vision;  // [member][unit]; empty for text members
  std::vector<std::vector<TextUnitBatch>> text;      // [member][unit]; empty for vision members
};

/// The samples of a step that cannot be read or decoded. Thread-safe.
class BadSamples {
 public:
  /// Ok when the error is the record's own fault (its bytes, its files) and is noted; else the error.
  Status note(int64_t sample, const Error& error);
  /// Dataset sample -> its first error. REQUIRES: nobody notes any more.
  const std::map<int64_t, Error>& found() const { return found_; }

 private:
  std::mutex mutex_;
  std::map<int64_t, Error> found_;
};

/// Makes the input of a planned step. `image_of` (may be empty) replaces which image is looked at: [position in
/// plan.images] -> (dataset sample, image). Without `bad` the first error is returned. With it every bad record is
/// noted there and passed over; the input is of use only if none was.
Result<StepInput> make_step_input(const JobContext& job, const Dataset& data, StepPlan plan,
                                  const std::vector<FeedMember>& members,
                                  const std::vector<std::pair<int64_t, int>>& image_of, BadSamples* bad = nullptr);

/// Runs make_step_input for training steps on a thread of its own, two steps before they are taken and, as long as they
/// take less than 16 MiB, up to `ahead`: short steps then need no grant each. With
/// `data.on_bad_record: skip` bad records end nothing: they are reported with the step, and its grant says what all
/// leave out. Thread-safe.
class StepFeed {
 public:
  StepFeed(const JobContext& job, std::vector<FeedMember> members, int64_t first_step, int64_t last_step, size_t ahead);
  ~StepFeed();
  StepFeed(const StepFeed&) = delete;
  StepFeed& operator=(const StepFeed&) = delete;
  /// The next step's input, in order, or why it cannot be made. DeadlineExceeded after `timeout`, Cancelled when the
  /// host is asked to stop.
  Result<StepInput> take(std::chrono::milliseconds timeout);
  /// The input of a step that was taken, made anew without the dataset samples (ascending) that its grant leaves out.
  Result<StepInput> without(const StepPlan& plan, const std::vector<int64_t>& samples) const;

 private:
  void run(int64_t first_step, int64_t last_step);
  Result<StepInput> prepare(int64_t step, BadSamples& bad);
  bool wants_more() const;

  const JobContext& job_;
  std::vector<FeedMember> members_;
  const size_t ahead_;
  BatchPlanner planner_;  // plan() on the feed's thread only
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Result<StepInput>> ready_;
  std::deque<size_t> ready_bytes_;  // [as ready_]
  size_t bytes_ = 0;
  bool full_ = false;                     // until half of it is taken: a thread need not wake for every step
  bool stopped_ = false, ended_ = false;  // ended: nothing comes behind what is ready
  int64_t next_;                          // the step that take() gives next
  std::thread thread_;
};

}  // namespace troupe
