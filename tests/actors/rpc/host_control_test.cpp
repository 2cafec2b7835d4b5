#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <mutex>
#include <thread>

#include "actors/host/control.h"
#include "proto/rpc/control.grpc.pb.h"
#include "proto/rpc/error_message.h"

using namespace troupe;
using std::chrono::milliseconds;

namespace {

/// A driver of one host: the test reads what the host says and answers by hand.
class FakeLink final : public wire::HostLink::Service {
 public:
  grpc::Status Attach(grpc::ServerContext*,
                      grpc::ServerReaderWriter<wire::HostCommand, wire::HostMessage>* stream) override {
    {
      std::lock_guard lock(mutex_);
      stream_ = stream;
    }
    wire::HostMessage message;
    while (stream->Read(&message)) {
      std::lock_guard lock(mutex_);
      if (message.has_hello()) {
        wire::HostCommand command;
        command.set_term(3);
        command.set_generation(2);
        wire::Assignment& assignment = *command.mutable_assignment();
        assignment.set_job_id(message.hello().job_id());
        assignment.set_self(message.hello().slot());
        assignment.set_mode("train");
        wire::Slot& slot = *assignment.add_slots();
        slot.set_node("a");
        slot.set_threads(2);
        assignment.add_groups()->add_slot(0);
        stream->Write(command);
      }
      if (message.sequence() > 0) {
        wire::HostCommand command;
        command.set_acknowledged(message.sequence());
        stream->Write(command);
      }
      heard_.push_back(message);
      changed_.notify_all();
    }
    std::lock_guard lock(mutex_);
    stream_ = nullptr;
    return grpc::Status::OK;
  }
  wire::HostMessage take() {
    std::unique_lock lock(mutex_);
    REQUIRE(changed_.wait_for(lock, std::chrono::seconds(20), [this] { return !heard_.empty(); }));
    wire::HostMessage message = heard_.front();
    heard_.pop_front();
    return message;
  }
  void say(const wire::HostCommand& command) {
    std::lock_guard lock(mutex_);
    REQUIRE(stream_);
    stream_->Write(command);
  }
  void grant(uint32_t generation, int64_t through, int64_t stop_after = -1) {
    wire::HostCommand command;
    command.set_generation(generation);
    command.mutable_grant()->set_run_through(through);
    command.mutable_grant()->set_stop_after(stop_after);
    command.mutable_grant()->set_save_at(stop_after);
    say(command);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<wire::HostMessage> heard_;
  grpc::ServerReaderWriter<wire::HostCommand, wire::HostMessage>* stream_ = nullptr;
};

struct Stage {
  Stage() : socket("unix:/tmp/troupe_host_control_" + std::to_string(::getpid()) + ".sock") {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(socket, grpc::InsecureServerCredentials());
    builder.RegisterService(&link);
    server = builder.BuildAndStart();
    REQUIRE(server);
    std::vector<std::string> arguments{"troupe-actor", "host", "--driver",      socket, "--job", "j",
                                       "--slot",       "0",    "--incarnation", "i"};
    std::vector<char*> pointers;
    for (auto& argument : arguments) pointers.push_back(argument.data());
    auto connected = connect_host_control(static_cast<int>(pointers.size()), pointers.data());
    REQUIRE(connected.ok());
    control = std::move(*connected);
    CHECK(link.take().hello().incarnation() == "i");
  }
  ~Stage() {
    control.reset();
    server->Shutdown(std::chrono::system_clock::now());
  }
  std::string socket;
  FakeLink link;
  std::unique_ptr<grpc::Server> server;
  std::unique_ptr<HostControl> control;
};

}  // namespace

TEST_CASE("The assignment arrives as the driver sent it") {
  Stage stage;
  const HostAssignment& assignment = stage.control->assignment();
  CHECK(assignment.job_id == "j");
  CHECK(assignment.term == Term(3));
  CHECK(assignment.generation == Generation(2));
  CHECK(assignment.command_json == "{}");
  REQUIRE(assignment.slots.size() == 1);
  CHECK(assignment.slots[0].threads == 2);
  CHECK(assignment.group_slots == std::vector<std::vector<int>>{{0}});
}

TEST_CASE("Reports reach the driver in order, with the generation") {
  Stage stage;
  stage.control->report_phase("loading");
  stage.control->report_ready();
  stage.control->report_step(4, "{}", "{}");
  CHECK(stage.control->report_finished("{\"a\": 1}").ok());
  CHECK(stage.link.take().phase() == "loading");
  CHECK(stage.link.take().ready());
  const wire::HostMessage step = stage.link.take();
  REQUIRE(step.progress().steps_size() == 1);
  CHECK(step.progress().steps(0).step() == 4);
  CHECK(step.generation() == 2);
  CHECK(stage.link.take().finished() == "{\"a\": 1}");
}

TEST_CASE("A grant covers its steps, never shrinks, and one of another generation is not heard") {
  Stage stage;
  CHECK(stage.control->wait_grant(1, milliseconds(1)).error().code == ErrorCode::kDeadlineExceeded);
  stage.link.grant(1, 9);
  stage.link.grant(2, 3);
  stage.link.grant(2, 2);
  const auto grant = stage.control->wait_grant(3, milliseconds(20000));
  REQUIRE(grant.ok());
  CHECK(grant->run_through == 3);
  CHECK(stage.control->wait_grant(4, milliseconds(1)).error().code == ErrorCode::kDeadlineExceeded);
  stage.link.grant(2, 3, 3);
  const auto stop = stage.control->wait_grant(4, milliseconds(20000));
  REQUIRE(stop.ok());
  CHECK(stop->stop_after == 3);
  CHECK(stop->save_at == 3);
}

TEST_CASE("What a host cannot read goes out with its steps, and a grant says what all leave out") {
  Stage stage;
  stage.control->report_prepared(2, {4, 9});
  stage.control->report_prepared(3, {});
  stage.control->report_prepared(4, {1});
  stage.control->report_phase("behind it");
  std::map<int64_t, std::vector<int64_t>> said;
  for (wire::HostMessage message = stage.link.take(); message.has_progress(); message = stage.link.take())
    for (const auto& bad : message.progress().bad()) said[bad.step()] = {bad.samples().begin(), bad.samples().end()};
  CHECK(said == std::map<int64_t, std::vector<int64_t>>{{2, {4, 9}}, {4, {1}}});
  wire::HostCommand command;
  command.set_generation(2);
  command.mutable_grant()->set_run_through(3);
  command.mutable_grant()->set_stop_after(-1);
  auto& left_out = *command.mutable_grant()->add_left_out();
  left_out.set_step(2);
  for (int64_t sample : {4, 7, 9}) left_out.add_samples(sample);
  stage.link.say(command);
  const auto grant = stage.control->wait_grant(3, milliseconds(20000));
  REQUIRE(grant.ok());
  CHECK(grant->left_out == std::map<int64_t, std::vector<int64_t>>{{2, {4, 7, 9}}});
}

TEST_CASE("A stop ends waits and shows") {
  Stage stage;
  CHECK_FALSE(stage.control->stop_requested());
  wire::HostCommand command;
  command.set_stop("enough");
  stage.link.say(command);
  const auto grant = stage.control->wait_grant(1, milliseconds(20000));
  REQUIRE_FALSE(grant.ok());
  CHECK(grant.error().code == ErrorCode::kCancelled);
  CHECK(stage.control->stop_requested());
}

TEST_CASE("An error reaches the driver before the report returns") {
  Stage stage;
  Error error = data_loss("rows differ");
  error.origin = "text/0";
  stage.control->report_error(error);
  const Error heard = from_message(stage.link.take().error());
  CHECK(heard.code == ErrorCode::kDataLoss);
  CHECK(heard.origin == "text/0");
}

TEST_CASE("A lost driver ends waits with Unavailable") {
  Stage stage;
  stage.server->Shutdown(std::chrono::system_clock::now());
  const auto grant = stage.control->wait_grant(1, milliseconds(20000));
  REQUIRE_FALSE(grant.ok());
  CHECK(grant.error().code == ErrorCode::kUnavailable);
  CHECK_FALSE(stage.control->report_finished("{}").ok());
}

TEST_CASE("While grants last steps are gathered into few messages, local figures are said once, and nothing is lost") {
  Stage stage;
  stage.link.grant(2, int64_t{1} << 40);
  REQUIRE(stage.control->wait_grant(1, milliseconds(20000)).ok());
  constexpr int64_t kSteps = 2000;
  for (int64_t step = 1; step <= kSteps; ++step) {
    stage.control->report_prepared(step + 8, {});
    stage.control->report_step(step, step == 7 ? "{\"step\": 7}" : "",
                               step <= 1000 ? "{\"peak\": 1}" : "{\"peak\": 2}");
  }
  CHECK(stage.control->report_finished("{}").ok());
  int messages = 0, locals = 0;
  int64_t next = 1, prepared = 0;
  for (;; ++messages) {
    const wire::HostMessage message = stage.link.take();
    if (message.body_case() == wire::HostMessage::kFinished) break;
    REQUIRE(message.has_progress());
    prepared = std::max(prepared, message.progress().prepared());
    for (const auto& step : message.progress().steps()) {
      REQUIRE(step.step() == next++);
      CHECK(step.metrics_json().empty() == (step.step() != 7));
      locals += step.local_json().empty() ? 0 : 1;
    }
  }
  CHECK(next == kSteps + 1);
  CHECK(prepared == kSteps + 8);
  CHECK(locals == 2);
  CHECK(messages < 100);  // 2,000 steps and as many prepared ones
}

TEST_CASE("A host that is about to wait for a grant says first what it has done") {
  Stage stage;
  stage.link.grant(2, 100000);
  REQUIRE(stage.control->wait_grant(1, milliseconds(20000)).ok());
  for (int64_t step = 1; step <= 50; ++step) stage.control->report_step(step, "", "{}");
  CHECK_FALSE(stage.control->wait_grant(200000, milliseconds(1)).ok());
  int64_t heard = 0;
  while (heard < 50) {
    const wire::HostMessage message = stage.link.take();
    for (const auto& step : message.progress().steps()) heard = step.step();
  }
  CHECK(heard == 50);
}
