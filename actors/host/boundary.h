#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <compare>
#include <map>
#include <memory>
#include <vector>

#include "actors/host/job_context.h"
#include "base/data/boundary_layout.h"
#include "transport/channel/channel.h"

/// The boundary between the encoder and the decoder group on this slot: packs rows by the step's reshard plans, sends
/// them to the slots that want them, and places what arrives. Also carries the few numbers that groups combine.
namespace troupe {

/// Rows moved in a step by this slot, for the counters of metrics.jsonl and the 1.0x check.
struct BoundaryCounters {
  int64_t wire_rows = 0, in_process_rows = 0;  // sent, forward direction
  int64_t wire_bytes = 0;                      // sent, both directions
};

/// A crossing of rows between encoder unit `u` and decoder unit `m`: forward from encoder to decoder, backward
/// (gradients) from decoder to encoder.
struct Crossing {
  int u = 0, m = 0;
  bool backward = false;
  auto operator<=>(const Crossing&) const = default;
};

/// Owner thread only. Payload rows are [n, H] of the compute dtype.
class Boundary {
 public:
  /// Connects to every slot that holds a member of the other group (and to those that numbers are combined with).
  static Result<std::unique_ptr<Boundary>> create(const JobContext& job);
  ~Boundary();

  /// Starts a step: forgets the last one's plans. `plan` and `index` outlive the step.
  void begin_step(const StepPlan& plan, const SampleIndex& index, bool evaluation);
  /// Sends what every receiving rank wants of `rows` [n, H], the local rows of rank `from`: of the encoder's unit
  /// forward, of the decoder's (its stripe) backward. A row that stays on this slot is handed over without a copy.
  Status send(const Crossing& crossing, int from, const at::Tensor& rows);
  /// Places what arrives for rank `to` of the receiving group into `into` [n, H], its local rows.
  Status receive(const Crossing& crossing, int to, at::Tensor& into);
  /// How long receive() waits from now on (at most kBoundaryTimeout).
  void wait_at_most(std::chrono::milliseconds timeout);
  /// Rows that an encoder rank makes of unit u.
  int64_t producer_row_count(int producer, int u);
  /// Rows that a decoder rank holds of unit m.
  int64_t consumer_row_count(int consumer, int m);

  /// Numbers of one group for another: rank r of `to_group` gets them from rank r mod |from_group|, who all hold the
  /// same.
  Status send_numbers(int from_group, int from_rank, int to_group, const std::vector<double>& numbers);
  Result<std::vector<double>> receive_numbers(int from_group, int to_group, int to_rank, size_t count);

  /// The orderly end: waits until everything sent has left and every host of the job has come here, so that nobody lets
  /// go of its channels while another may still be connecting to them or reading from them. DeadlineExceeded after
  /// `timeout` for each of the two.
  Status close(std::chrono::milliseconds timeout = std::chrono::minutes(10));
  void abort();
  BoundaryCounters take_counters();
  /// What the channel to other slots has copied of rows on their way out, behind their packing.
  uint64_t copied_bytes() const;

 private:
  struct Route;
  explicit Boundary(const JobContext& job);
  const RowLayout& encoder_rows(int u);
  const RowLayout& decoder_rows(int m);
  Result<const Route*> route(const Crossing& crossing);
  Channel& channel_to(SlotId slot) { return slot == job_.assignment.self ? *local_ : *remote_; }
  MessageTag tag(int producer_unit, int consumer_unit, int from, int to, bool backward) const;
  /// A span of the actor at this end of a message.
  Span span(SpanKind kind, const char* name, const MessageTag& tag, bool sends) const;
  Payload pack_rows(SlotId to, const at::Tensor& rows, const std::vector<int64_t>& picked);
  Status send_piece(SlotId to, const MessageTag& tag, const MessageHeader& header, const at::Tensor& rows,
                    const std::vector<int64_t>& picked);
  Status receive_piece(SlotId from, const MessageTag& tag, const MessageHeader& header, const ReshardPiece& piece,
                       at::Tensor& into);

  const JobContext& job_;
  std::unique_ptr<Channel> local_, remote_;
  const StepPlan* plan_ = nullptr;
  const SampleIndex* index_ = nullptr;
  std::chrono::milliseconds timeout_;
  uint32_t sequence_ = 0;  // of begin_step calls: keeps the tags of evaluation steps apart
  std::map<int, RowLayout> encoder_rows_, decoder_rows_;
  std::map<Crossing, std::unique_ptr<Route>> routes_;
  BoundaryCounters counters_;
};

/// How long a boundary waits before it gives the transfer up; what usually ends a wait earlier is the control plane.
inline constexpr std::chrono::milliseconds kBoundaryTimeout{600000};

}  // namespace troupe
