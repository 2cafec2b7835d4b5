#pragma once

#include "actors/calls/batch_calls.h"

/// Carries out the calls of a custom loop on the actors of a host.
namespace troupe {

/// Owner thread only.
class CallTarget {
 public:
  CallTarget(Host& host, HandleTable& handles);
  /// The answer to one call; what goes wrong is an error in it, with the rank as its origin. A call that concerns this
  /// host alone is not carried out once its deadline has passed.
  wire::Answer carry_out(const wire::Call& call, HandleTable::Clock::time_point deadline);
  /// A loop has said that it is done.
  bool finished() const { return finished_; }
  int64_t steps() const { return steps_; }
  int64_t calls() const { return calls_; }

 private:
  Status dispatch(const wire::Call& call, HandleTable::Clock::time_point deadline, wire::Answer& answer);
  Status dispatch_to(Actor& actor, const wire::Call& call, HandleTable::Clock::time_point deadline,
                     wire::Answer& answer);
  /// Of the actor that the call names, among this host's.
  Result<size_t> position_of(const wire::Call& call) const;
  wire::DescribeReply describe_actor(Actor& actor) const;
  Result<wire::ReduceReply> reduce(Actor& actor);
  Result<wire::UpdateReply> update(Actor& actor, const wire::UpdateRequest& request);
  Result<wire::ReadTensorReply> read(const wire::ReadTensorRequest& request) const;
  Result<wire::SaveReply> save(const wire::SaveRequest& request);
  Result<wire::ExportReply> export_model();
  wire::FinishReply finish(const wire::FinishRequest& request);

  Host& host_;
  JobContext& job_;
  HandleTable& handles_;
  BatchCalls batch_;
  bool finished_ = false;
  int64_t steps_ = 0, calls_ = 0;
};

}  // namespace troupe
