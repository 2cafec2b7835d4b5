#include <catch2/catch.hpp>
#include <chrono>

#include "base/config/variables.h"
#include "client/job.h"

using namespace troupe;
using namespace troupe::client;
using std::chrono::milliseconds;

namespace {

using Clock = std::chrono::steady_clock;
constexpr milliseconds kLease{10000};

template <typename T>
T must(Result<T> result) {
  if (!result.ok()) FAIL(result.error().to_string());
  return std::move(*result);
}

template <typename R>
void refused(const R& result, ErrorCode code, const std::string& words) {
  REQUIRE_FALSE(result.ok());
  INFO(result.error().to_string());
  CHECK(error_code_name(result.error().code) == std::string(error_code_name(code)));
  CHECK(result.error().to_string().find(words) != std::string::npos);
}

wire::ReadTensorRequest read_of(const wire::TensorHandle& part) {
  wire::ReadTensorRequest request;
  *request.mutable_tensor() = part;
  return request;
}

wire::BeginBatchReply begin(Job& job, int64_t batch) {
  wire::BeginBatchRequest request;
  request.set_batch(batch);
  for (int64_t sample = 0; sample < 8; ++sample) request.add_samples(sample);
  return must(job.execute_hosts(request)).front();
}

wire::ForwardRequest forward_of(int unit, uint64_t object) {
  wire::ForwardRequest request;
  request.set_unit(unit);
  request.set_object(object);
  return request;
}

void check_batches(Job& job) {
  wire::BeginBatchRequest request;
  request.set_batch(1);
  refused(job.execute_hosts(request), ErrorCode::kInvalidArgument, "a batch of 0 samples");
  request.add_samples(1 << 30);
  refused(job.execute_hosts(request), ErrorCode::kInvalidArgument, "sample 1073741824 is not in the data");
  refused(job.encoder().execute_all(forward_of(0, 1)), ErrorCode::kFailedPrecondition, "no batch was begun");
  begin(job, 5);
  refused(job.encoder().execute_all(forward_of(99, 1)), ErrorCode::kInvalidArgument, "valid units: 0 to");
  wire::BackwardRequest backward;
  refused(job.encoder().execute_all(backward), ErrorCode::kFailedPrecondition, "its forward comes first");
  wire::BeginBatchRequest older;
  older.set_batch(5);
  older.add_samples(0);
  refused(job.execute_hosts(older), ErrorCode::kInvalidArgument, "does not follow batch 5");
}

/// Rows can be read, a handle of a dead generation cannot, and what was released is gone.
void check_handles(Job& job) {
  begin(job, 6);
  TensorHandle rows = job.encoder().new_handle(6, 0);
  const auto replies = must(job.encoder().execute_all(forward_of(0, rows.object())));
  REQUIRE(replies.size() == 2);
  int64_t total = 0;
  for (int rank = 0; rank < 2; ++rank) {
    const wire::TensorHandle& told = replies[static_cast<size_t>(rank)].rows();
    const auto tensor = must(job.encoder().execute(Rank(rank), read_of(rows.part(Rank(rank)))));
    CHECK(told.dtype() == "fp32");
    CHECK(tensor.data().size() == static_cast<size_t>(tensor.shape(0) * tensor.shape(1)) * sizeof(float));
    CHECK(told.shape(0) == tensor.shape(0));
    total += tensor.shape(0);
  }
  CHECK(replies[0].rows().global_shape(0) == total);
  wire::TensorHandle dead = rows.part(Rank(0));
  dead.set_generation(dead.generation() + 1);
  refused(job.encoder().execute(Rank(0), read_of(dead)), ErrorCode::kAborted, "which has ended");
  wire::ForwardRequest text;
  *text.add_rows() = dead;
  refused(job.decoder().execute_all(text), ErrorCode::kAborted, "which has ended");
  const wire::TensorHandle part = rows.part(Rank(0));
  rows = TensorHandle();
  refused(job.encoder().execute(Rank(0), read_of(part)), ErrorCode::kNotFound, "it was released");
}

/// A handle goes only where it can, and a call ends at its deadline.
void check_crossings(Job& job) {
  begin(job, 7);
  const TensorHandle rows = job.encoder().new_handle(7, 0), gradients = job.decoder().new_handle(7, 0);
  must(job.encoder().execute_all(forward_of(0, rows.object())));
  wire::ForwardRequest text;
  refused(job.decoder().execute_all(text), ErrorCode::kInvalidArgument, "but the handles are of none");
  gradients.add_to(text.mutable_rows());
  refused(job.decoder().execute_all(text), ErrorCode::kNotFound, "never made here");
  // Named but not sent: a rank that is nobody's keeps the library from sending the rows.
  text.clear_rows();
  *text.add_rows() = rows.part(Rank(0));
  text.mutable_rows(0)->set_rank(99);
  const auto begun = Clock::now();
  refused(job.decoder().execute_all(text, milliseconds(300)), ErrorCode::kDeadlineExceeded, "text/");
  CHECK(Clock::now() - begun < std::chrono::seconds(20));
}

/// An object that nobody renews is let go of; one that is held stays.
void check_leases(Job& job) {
  begin(job, 8);
  const TensorHandle held = job.encoder().new_handle(8, 0);
  must(job.encoder().execute_all(forward_of(0, held.object())));
  wire::TensorHandle forgotten = held.part(Rank(0));
  forgotten.set_unit(1);
  forgotten.set_object(12345);
  must(job.encoder().execute_all(forward_of(1, forgotten.object())));
  const auto deadline = Clock::now() + std::chrono::seconds(120);
  for (int rank : {0, 1}) {
    forgotten.set_rank(rank);
    auto answer = job.encoder().execute(Rank(rank), read_of(forgotten));
    while (answer.ok() && Clock::now() < deadline) answer = job.encoder().execute(Rank(rank), read_of(forgotten));
    refused(answer, ErrorCode::kNotFound, "its lease of 10000 ms ran out");
  }
  CHECK(job.encoder().execute(Rank(0), read_of(held.part(Rank(0)))).ok());
}

}  // namespace

TEST_CASE("a job refuses by name what a loop cannot have, and tells what it left behind") {
  ConnectOptions options = must(options_from(process_environment()));
  options.lease = kLease;
  options.name = "the first loop";
  const auto job = must(Job::connect(options));
  CHECK(job->encoder().name() == "vision");
  CHECK(job->decoder().size() == 2);
  options.name = "the second loop";
  refused(Job::connect(options), ErrorCode::kFailedPrecondition, "driven by another loop (the first loop)");
  refused(job->encoder().execute(Rank(2), wire::EchoRequest()), ErrorCode::kInvalidArgument, "has no rank 2");
  check_batches(*job);
  check_handles(*job);
  check_crossings(*job);
  check_leases(*job);
  begin(*job, 9);
  const TensorHandle left = job->encoder().new_handle(9, 0);
  must(job->encoder().execute_all(forward_of(0, left.object())));
  CHECK(must(job->finish(0)) == 2);  // a part on each of two ranks
}

TEST_CASE("without a job a loop says how it is to be started") {
  refused(options_from({}), ErrorCode::kInvalidArgument, "troupe run JOB --loop");
}
