#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "actors/calls/handle_table.h"
#include "actors/host/host.h"
#include "actors/host/step_feed.h"

/// The calls that work on a batch: begin, forward, backward, rows on their way. They run the same actors, boundary and
/// plans as the recorded loop; what a program's order would guarantee is checked here, call by call.
namespace troupe {

/// Owner thread only.
class BatchCalls {
 public:
  BatchCalls(Host& host, HandleTable& handles);
  /// Reads and cuts the batch for every actor of this host.
  Result<wire::BeginBatchReply> begin(const wire::BeginBatchRequest& request);
  /// Encoder: makes the unit's rows. Decoder: places the rows that the handles name, which must be those of all encoder
  /// units that feed this one, and computes the loss. Collective over the group. A wait for rows ends at `deadline`.
  Result<wire::ForwardReply> forward(Actor& actor, const wire::ForwardRequest& request,
                                     HandleTable::Clock::time_point deadline);
  /// The same in reverse: decoder without arguments, encoder with the gradients of every unit that it fed.
  Result<wire::BackwardReply> backward(Actor& actor, const wire::BackwardRequest& request,
                                       HandleTable::Clock::time_point deadline);
  /// Sends what the handle holds to the group at the other end. Does not wait for the receiver.
  Result<wire::SendRowsReply> send_rows(Actor& actor, const wire::SendRowsRequest& request);
  int64_t batch() const { return batch_; }

 private:
  enum class Stage { kFresh, kForwarded, kDone };
  struct UnitKey {
    int group, rank, unit;
    auto operator<=>(const UnitKey&) const = default;
  };
  bool is_encoder(const Actor& actor) const { return actor.group() == job_.encoder; }
  std::string name(const Actor& actor, int unit) const;
  Status check_samples(const wire::BeginBatchRequest& request) const;
  Status check_batch(const wire::TensorHandle& handle) const;
  Status check_unit(const Actor& actor, int unit, Stage expected, const char* verb);
  /// The units at the other end of the boundary that belong to `unit` of the actor's group.
  std::set<int> peers_of(const Actor& actor, int unit) const;
  /// Waits for the rows of every handle; they must cover exactly the unit's peers.
  Status place(Actor& actor, int unit, const google::protobuf::RepeatedPtrField<wire::TensorHandle>& handles,
               bool gradient, HandleTable::Clock::time_point deadline);
  Result<wire::TensorHandle> keep(const Actor& actor, int unit, uint64_t object, at::Tensor tensor);

  Host& host_;
  JobContext& job_;
  HandleTable& handles_;
  BatchPlanner planner_;
  std::set<int64_t> held_out_;
  StepInput input_;  // of the batch under way; actors refer to it
  std::vector<std::vector<int>> feeds_;
  int64_t batch_ = 0;
  std::map<UnitKey, Stage> stages_;
};

}  // namespace troupe
