#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <map>
#include <memory>
#include <vector>

#include "actors/host/job_context.h"
#include "base/data/boundary_layout.h"
#include "transport/channel/channel.h"

/// The boundary between the encoder and the decoder group on this slot: packs rows by the step's reshard plans, sends them to the slots
/// that want them, and places what arrives. Also carries the few numbers that groups combine.
namespace troupe {

/// Rows moved in a step by this slot, for the counters of metrics.jsonl and the 1.0x check.
struct BoundaryCounters {
  int64_t wire_rows = 0, in_process_rows = 0;  // sent, forward direction
  int64_t wire_bytes = 0;                      // sent, both directions
};

/// Owner thread only. Payload rows are [n, H] of the compute dtype.
class Boundary {
 public:
  /// Connects to every slot that holds a member of the other group (and to those that numbers are combined with).
  static Result<std::unique_ptr<Boundary>> create(const JobContext& job);
  ~Boundary();

  /// Starts a step: forgets the last one's plans. `plan` and `index` outlive the step.
  void begin_step(const StepPlan& plan, const SampleIndex& index, bool evaluation);
  /// Rows of encoder unit `u` that decoder unit `m` wants, from encoder rank `producer`, whose local rows are `rows` [n, H].
  Status send_rows(int producer, int u, int m, const at::Tensor& rows);
  /// Places them into `into` [n, H], the local rows (stripe) of decoder rank `consumer`.
  Status receive_rows(int consumer, int m, int u, at::Tensor& into);
  /// The same, backward: gradients of the local rows of decoder rank `consumer`.
  Status send_gradient(int consumer, int m, int u, const at::Tensor& gradient);
  Status receive_gradient(int producer, int u, int m, at::Tensor& into);
  /// Rows that a decoder rank holds of unit m.
  int64_t consumer_row_count(int consumer, int m);

  /// Numbers of one group for another: rank r of `to_group` gets them from rank r mod |from_group|, who all hold the same.
  Status send_numbers(int from_group, int from_rank, int to_group, const std::vector<double>& numbers);
  Result<std::vector<double>> receive_numbers(int from_group, int to_group, int to_rank, size_t count);

  /// Waits until everything sent has left.
  Status flush();
  void abort();
  BoundaryCounters take_counters();

 private:
  struct UnitPair;
  explicit Boundary(const JobContext& job);
  Result<const UnitPair*> pair(int u, int m);
  Channel& channel_to(SlotId slot) { return slot == job_.assignment.self ? *local_ : *remote_; }
  MessageTag tag(int u, int m, int from, int to, bool backward) const;
  Status send(SlotId to, const MessageTag& tag, const MessageHeader& header, const at::Tensor& rows, const std::vector<int64_t>& picked);
  Status receive(SlotId from, const MessageTag& tag, const MessageHeader& header, const std::vector<int64_t>& picked,
                 const std::vector<int64_t>& placed, at::Tensor& into);

  const JobContext& job_;
  std::unique_ptr<Channel> local_, remote_;
  const StepPlan* plan_ = nullptr;
  const SampleIndex* index_ = nullptr;
  uint32_t sequence_ = 0;  // of begin_step calls: keeps the tags of evaluation steps apart
  std::map<int, RowLayout> producers_, consumers_;
  std::map<std::pair<int, int>, std::unique_ptr<UnitPair>> pairs_;
  BoundaryCounters counters_;
};

/// How long a boundary waits before it gives the transfer up; what usually ends a wait earlier is the control plane.
inline constexpr std::chrono::milliseconds kBoundaryTimeout{600000};

}  // namespace troupe
