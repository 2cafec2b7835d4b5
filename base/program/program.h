#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/config/job_spec.h"
#include "base/data/batch_plan.h"
#include "base/result.h"

/// Programs: the training loop recorded once, expanded for each step into one global order of instructions of which
/// every actor host runs its own subsequence. Pure: the driver prints and checks the same order that the hosts run.
namespace troupe {

/// Buckets of gradients and weights are cut by gradient_buckets.h. kReduce and kGather post a bucket's collective,
/// which then goes on beside what follows; kReduced and kGathered wait for all of a group that were posted.
enum class Op : uint8_t { kForward, kBackward, kPost, kWait, kReduce, kReduced, kCombine, kUpdate, kGather, kGathered };
const char* op_name(Op op);

/// A boundary between two groups: rows go from producer to consumer, gradients back.
struct ProgramEdge {
  int producer = 0, consumer = 0;
  bool gradient = true;  // false when nothing behind the boundary is trained
};

/// What the recorder heard: calls on groups, in loops over a group's units.
struct RecordedCall {
  Op op = Op::kForward;
  int group = 0;
};
struct RecordedLoop {
  int units_of = -1;  // group whose units the loop runs over; -1: once a step
  std::vector<RecordedCall> calls;
};

struct Program {
  std::vector<std::string> groups;
  std::vector<ProgramEdge> edges;
  std::vector<RecordedLoop> loops;
  std::vector<int> buckets;  // of each group; groups left out have one
  int credits = 0;           // units a producer may be ahead of its backward; 0: all of a step
  int64_t budget_bytes = 0;  // most that a producer's units may hold between forward and backward; 0: no bound
  std::vector<int64_t> row_bytes = {};  // [group] kept of a row from forward to backward; groups left out keep nothing
  int bucket_count(int group) const {
    return static_cast<size_t>(group) < buckets.size() ? buckets[static_cast<size_t>(group)] : 1;
  }
  /// A stable text form (JSON); equal texts mean equal programs.
  std::string to_json() const;
  static Result<Program> from_json(const std::string& text);
};

/// Records a loop written as calls on groups.
class Recorder {
 public:
  explicit Recorder(std::vector<std::string> groups);
  void edge(int producer, int consumer, bool gradient);
  void credits(int units);
  void budget(int64_t bytes);
  /// What a rank of `group` keeps of a row from its forward to its backward.
  void holds(int group, int64_t row_bytes);
  void buckets(std::vector<int> of_each_group);
  /// Records `body` once, for all units of `group`: body calls forward/backward of that group.
  void for_units(int group, const std::function<void()>& body);
  void forward(int group);
  void backward(int group);
  void combine();
  void step(int group);  // reduce before combine, update and gather after it
  Program finish();

 private:
  Program program_;
  RecordedLoop* open_ = nullptr;
};

/// The training loop of a job: encoder forward, decoder forward and backward, encoder backward, combine, step. Frozen
/// groups have no backward; no gradient crosses a boundary behind which nothing is trained. `buckets` of each group;
/// `encoder_row_bytes` (unit_memory.h) turns schedule.memory_gib into rows; 0: there is no such bound.
Program record_training_loop(const JobSpec& spec, std::vector<int> buckets = {}, int64_t encoder_row_bytes = 0);
/// The training loop without what a step ends with (norm, update): what dispatching a step costs.
Program record_dispatch_loop(const JobSpec& spec);
/// Forward passes only, for evaluation.
Program record_evaluation_loop(const JobSpec& spec);

/// Whether any step of a program can run: groups may not feed each other in a circle, and what is recorded needs what
/// is recorded before it. The error prints the circle.
Status check_program(const Program& program);

/// Counts of one step, from the index: units of each group and which consumer units each producer unit feeds.
struct StepShape {
  std::vector<int> units;                            // [group]
  std::vector<std::vector<std::vector<int>>> feeds;  // [edge][producer unit] -> consumer units, ascending
  std::vector<std::vector<int64_t>> held_bytes =
      {};  // [group][unit]: kept from forward to backward; groups left out hold nothing
};
StepShape shape_of(const Program& program, const StepPlan& plan);

struct Instruction {
  Op op = Op::kForward;
  int group = 0;
  int unit = -1;          // of `group`; -1 for per-step instructions
  int edge = -1;          // kPost, kWait
  int peer_unit = -1;     // kPost, kWait: the unit at the other end
  bool gradient = false;  // kPost, kWait: backward direction
  int bucket = -1;        // kReduce, kUpdate, kGather
  /// kBackward: the group's last of the step. Its buckets may be posted, in their order, as soon as their gradients are
  /// final, ahead of the kReduce instructions that follow it.
  bool reduces = false;
  bool operator==(const Instruction&) const = default;
  /// "text.wait(0 <- vision 2)"
  std::string to_string(const Program& program) const;
};

/// The global order of a step. Every host's list is the subsequence of its groups. A group that feeds others runs ahead
/// of its own backward by the program's credits, one more for each further group behind it, and within its budget;
/// where a consumer needs more at once it gets it. A group's reductions are posted behind its last backward and waited
/// for ahead of the combined norm; its gathers are waited for by the forward passes of the next step, the last of them
/// behind the first forward there. Backward comes before forward as soon as it can. With all credits
/// that makes phases, with few 1F1B. `program` has passed check_program.
std::vector<Instruction> expand(const Program& program, const StepShape& shape);
/// Checks an order as if no send had a buffer and every group ran alone on its hosts: every post has its wait, every
/// wait comes after its post, nothing waits in a circle, and collectives are posted in one order: buckets in theirs,
/// and nothing that could enter a communicator between a last backward and the posts it may have made. The error prints
/// what is wrong.
Status check_order(const Program& program, const StepShape& shape, const std::vector<Instruction>& order);

}  // namespace troupe
