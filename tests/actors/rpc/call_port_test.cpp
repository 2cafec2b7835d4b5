#include "actors/rpc/call_port.h"

#include <catch2/catch.hpp>
#include <functional>
#include <future>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>

#include "client/rpc/call_link.h"
#include "tests/scratch_folder.h"

using namespace troupe;
using std::chrono::milliseconds;

namespace {

using Clock = EventQueue::Clock;
constexpr std::chrono::seconds kLong{30};

/// A loop of one link: what it is answered, and why its link was lost.
class Loop {
 public:
  Loop(const std::string& address, const std::string& name, uint32_t lease_ms = 1000) {
    wire::LoopGreeting greeting;
    greeting.set_name(name);
    greeting.set_lease_ms(lease_ms);
    client::LinkEvents events;
    events.answered = [this](wire::Answer& answer) {
      std::lock_guard lock(mutex_);
      ids_.push_back(answer.id());
      if (ids_.size() == wanted_) queue_.finish(waiter_);
    };
    events.lost = [this](const Error& error) {
      std::lock_guard lock(mutex_);
      lost_ = error;
      queue_.finish(waiter_);
    };
    auto link = client::CallLink::open(address, {}, greeting, queue_, std::move(events));
    REQUIRE(link.ok());
    link_ = std::move(*link);
  }
  void call(uint64_t id, size_t payload = 0) {
    wire::Call call;
    call.set_id(id);
    call.set_timeout_ms(60000);
    call.mutable_echo()->mutable_payload()->resize(payload);
    link_->call(std::move(call));
  }
  /// Waits for `count` answers in all, or for the loss of the link.
  std::vector<uint64_t> answers(size_t count) {
    wait([&] { return ids_.size() >= count; }, count);
    std::lock_guard lock(mutex_);
    return ids_;
  }
  std::string lost() {
    wait([] { return false; }, SIZE_MAX);
    std::lock_guard lock(mutex_);
    return lost_ ? lost_->to_string() : "";
  }
  client::CallLink& link() { return *link_; }

 private:
  void wait(const std::function<bool()>& done, size_t wanted) {
    {
      std::lock_guard lock(mutex_);
      if (lost_ || done()) return;
      wanted_ = wanted;
      queue_.reset(waiter_);
    }
    queue_.wait(waiter_, Clock::now() + kLong);
  }

  EventQueue queue_{[] {}};
  EventQueue::Waiter waiter_;
  std::mutex mutex_;
  size_t wanted_ = 0;
  std::vector<uint64_t> ids_;
  std::optional<Error> lost_;
  std::unique_ptr<client::CallLink> link_;  // last: its end is an event
};

struct Stage {
  Stage() {
    LeaseEvents events;
    events.greeted = [this](milliseconds lease) { leases.push_back(lease); };
    events.renewed = [this](const auto& objects) {
      for (uint64_t object : objects) renewed.set_value(object);
    };
    auto made = CallPort::listen(address, std::move(events));
    REQUIRE(made.ok());
    port = std::move(*made);
  }
  /// Takes and answers `count` calls: their ids.
  std::vector<uint64_t> serve(size_t count) {
    std::vector<uint64_t> ids;
    const auto deadline = Clock::now() + kLong;
    while (ids.size() < count && Clock::now() < deadline) {
      IncomingCall incoming;
      if (!port->take(incoming, milliseconds(100)) || !incoming.released.empty()) continue;
      ids.push_back(incoming.call.id());
      wire::Answer answer;
      answer.set_id(incoming.call.id());
      answer.mutable_echo()->set_payload(incoming.call.echo().payload());
      port->answer(incoming.session, std::move(answer));
    }
    return ids;
  }
  const ScratchFolder folder;
  const std::string address = "unix:" + folder.path() + "/calls.sock";
  std::vector<milliseconds> leases;
  std::promise<uint64_t> renewed;
  std::unique_ptr<CallPort> port;
};

std::vector<uint64_t> numbers(size_t count) {
  std::vector<uint64_t> ids(count);
  std::iota(ids.begin(), ids.end(), 1);
  return ids;
}

}  // namespace

TEST_CASE("calls arrive in the order of sending and are answered, also more than may wait at the host") {
  constexpr size_t kCalls = 10000;
  Stage stage;
  Loop loop(stage.address, "a loop");
  for (uint64_t id = 1; id <= kCalls; ++id) loop.call(id);
  auto answers = std::async(std::launch::async, [&] { return loop.answers(kCalls); });
  CHECK(stage.serve(kCalls) == numbers(kCalls));
  CHECK(answers.get() == numbers(kCalls));
  CHECK(stage.leases == std::vector<milliseconds>{milliseconds(1000)});
}

TEST_CASE("calls and answers that together are more than a message may hold travel in several") {
  constexpr size_t kCalls = 24, kPayload = 3 << 20;
  Stage stage;
  Loop loop(stage.address, "a loop");
  for (uint64_t id = 1; id <= kCalls; ++id) loop.call(id, kPayload);
  auto answers = std::async(std::launch::async, [&] { return loop.answers(kCalls); });
  CHECK(stage.serve(kCalls) == numbers(kCalls));
  CHECK(answers.get() == numbers(kCalls));
}

TEST_CASE("a port at which too many calls wait says so until they are taken") {
  constexpr size_t kCalls = 20000;
  Stage stage;
  Loop loop(stage.address, "a loop");
  CHECK_FALSE(stage.port->full());
  for (uint64_t id = 1; id <= kCalls; ++id) loop.call(id);
  for (const auto deadline = Clock::now() + kLong; !stage.port->full() && Clock::now() < deadline;)
    std::this_thread::yield();
  CHECK(stage.port->full());
  CHECK(stage.serve(kCalls) == numbers(kCalls));
  CHECK_FALSE(stage.port->full());
}

TEST_CASE("a second loop is refused with the name of the first, and taken when that one has left") {
  Stage stage;
  auto first = std::make_unique<Loop>(stage.address, "the first");
  first->call(1);
  CHECK(stage.serve(1) == numbers(1));
  {
    Loop second(stage.address, "the second");
    CHECK(second.lost().find("driven by another loop (the first)") != std::string::npos);
  }
  first.reset();
  // The host learns of it in its own time.
  std::vector<uint64_t> served;
  for (const auto deadline = Clock::now() + kLong; served.empty() && Clock::now() < deadline;) {
    Loop third(stage.address, "the third");
    third.call(3);
    IncomingCall incoming;
    while (served.empty() && third.answers(0).empty() && stage.port->take(incoming, milliseconds(200)))
      served.push_back(incoming.call.id());
  }
  CHECK(served == std::vector<uint64_t>{3});
}

TEST_CASE("a lease out of bounds is refused by name") {
  Stage stage;
  Loop loop(stage.address, "a loop", 99);
  CHECK(loop.lost().find("a lease of 99 ms is not valid; valid: 100 to 3600000") != std::string::npos);
}

TEST_CASE("a lease is renewed while the host carries out a call") {
  Stage stage;
  Loop loop(stage.address, "a loop");
  loop.call(1);
  IncomingCall busy;
  REQUIRE(stage.port->take(busy, kLong));  // nobody takes calls from here on
  loop.link().renew({7});
  auto renewed = stage.renewed.get_future();
  REQUIRE(renewed.wait_for(kLong) == std::future_status::ready);
  CHECK(renewed.get() == 7);
}

TEST_CASE("objects are let go of behind the calls before") {
  Stage stage;
  Loop loop(stage.address, "a loop");
  loop.call(1);
  loop.link().release(5);
  IncomingCall first, second;
  REQUIRE(stage.port->take(first, kLong));
  REQUIRE(stage.port->take(second, kLong));
  CHECK(first.call.id() == 1);
  REQUIRE(second.released.size() == 1);
  CHECK(second.released[0] == 5);
}

TEST_CASE("a port that ends sends its last answer first, and its loop learns of the end") {
  Stage stage;
  Loop loop(stage.address, "a loop");
  loop.call(1);
  CHECK(stage.serve(1) == numbers(1));
  auto answers = std::async(std::launch::async, [&] { return loop.answers(1); });
  stage.port.reset();
  CHECK(answers.get() == numbers(1));
  CHECK(loop.lost().find("has ended the stream") != std::string::npos);
}

TEST_CASE("a port that cannot listen says where") {
  const auto port = CallPort::listen("unix:/nowhere/at/all.sock", {});
  REQUIRE_FALSE(port.ok());
  CHECK(port.error().message == "cannot listen for calls on unix:/nowhere/at/all.sock");
}

TEST_CASE("without anybody calling, a wait for calls ends in time and so does the port") {
  Stage stage;
  IncomingCall incoming;
  CHECK_FALSE(stage.port->take(incoming, milliseconds(30)));
  stage.port.reset();
}
