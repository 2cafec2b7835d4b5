#include "driver/supervision/rendezvous_store.h"

#include <catch2/catch.hpp>

using namespace troupe;
using namespace troupe::driver;
using std::chrono::milliseconds;

namespace {

RendezvousStore::Time at(int64_t ms) { return RendezvousStore::Time(milliseconds(ms)); }

StoreCall make(StoreKind kind, std::string key, std::string value = "", std::string expected = "") {
  StoreCall call;
  call.kind = kind;
  call.keys = {std::move(key)};
  call.value = std::move(value);
  call.expected = std::move(expected);
  call.timeout = milliseconds(100);
  return call;
}

}  // namespace

TEST_CASE("A get waits for its key and all waiters are answered by the set") {
  RendezvousStore store;
  CHECK(store.call(1, make(StoreKind::kGet, "a"), at(0)).empty());
  CHECK(store.call(2, make(StoreKind::kGet, "a"), at(0)).empty());
  CHECK(store.call(3, make(StoreKind::kGet, "b"), at(0)).empty());
  const auto answers = store.call(4, make(StoreKind::kSet, "a", "v"), at(1));
  REQUIRE(answers.size() == 3);
  CHECK(answers[0].call == 1);
  CHECK(answers[0].value == "v");
  CHECK(answers[1].call == 2);
  CHECK(answers[2].call == 4);
  const auto later = store.call(5, make(StoreKind::kGet, "a"), at(2));
  REQUIRE(later.size() == 1);
  CHECK(later[0].value == "v");
}

TEST_CASE("A wait that runs out names its key and is answered once") {
  RendezvousStore store;
  store.call(1, make(StoreKind::kGet, "world/text"), at(0));
  CHECK(store.next_deadline() == at(100));
  CHECK(store.expire(at(99)).empty());
  const auto answers = store.expire(at(100));
  REQUIRE(answers.size() == 1);
  REQUIRE(answers[0].error);
  CHECK(answers[0].error->code == ErrorCode::kDeadlineExceeded);
  CHECK(answers[0].error->message.find("world/text") != std::string::npos);
  CHECK(store.expire(at(200)).empty());
  CHECK(store.call(2, make(StoreKind::kSet, "world/text", "v"), at(201)).size() == 1);
}

TEST_CASE("Counters add from zero and wake waiters") {
  RendezvousStore store;
  StoreCall add = make(StoreKind::kAdd, "n");
  add.amount = 5;
  CHECK(store.call(1, add, at(0))[0].number == 5);
  add.amount = -2;
  CHECK(store.call(2, add, at(0))[0].number == 3);
  CHECK(store.call(3, make(StoreKind::kGet, "n"), at(0))[0].value == "3");
  store.call(4, make(StoreKind::kSet, "n", "three"), at(0));
  CHECK(store.call(5, add, at(0))[0].error->code == ErrorCode::kFailedPrecondition);
}

TEST_CASE("Compare-and-set stores when the value is the expected one and tells the value either way") {
  RendezvousStore store;
  CHECK(store.call(1, make(StoreKind::kCompareSet, "k", "first", ""), at(0))[0].value == "first");
  CHECK(store.call(2, make(StoreKind::kCompareSet, "k", "second", ""), at(0))[0].value == "first");
  CHECK(store.call(3, make(StoreKind::kCompareSet, "k", "second", "first"), at(0))[0].value == "second");
  CHECK(store.call(4, make(StoreKind::kCompareSet, "none", "x", "y"), at(0))[0].value.empty());
  CHECK_FALSE(store.call(5, make(StoreKind::kCheck, "none"), at(0))[0].flag);
}

TEST_CASE("Check asks for all keys and erase tells whether there was one") {
  RendezvousStore store;
  store.call(1, make(StoreKind::kSet, "a", "1"), at(0));
  StoreCall check = make(StoreKind::kCheck, "a");
  check.keys.push_back("b");
  CHECK_FALSE(store.call(2, check, at(0))[0].flag);
  store.call(3, make(StoreKind::kSet, "b", "1"), at(0));
  CHECK(store.call(4, check, at(0))[0].flag);
  CHECK(store.call(5, make(StoreKind::kErase, "a"), at(0))[0].flag);
  CHECK_FALSE(store.call(6, make(StoreKind::kErase, "a"), at(0))[0].flag);
}

TEST_CASE("Closing ends waits under way and to come") {
  RendezvousStore store;
  store.call(1, make(StoreKind::kGet, "a"), at(0));
  const auto answers = store.close("the job is stopping");
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].error->code == ErrorCode::kCancelled);
  CHECK(store.call(2, make(StoreKind::kGet, "a"), at(1))[0].error->code == ErrorCode::kCancelled);
}

TEST_CASE("A value beyond the bound is refused and changes nothing") {
  RendezvousStore store;
  const auto answers =
      store.call(1, make(StoreKind::kSet, "big", std::string(RendezvousStore::kLargestValueBytes + 1, 'x')), at(0));
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].error->code == ErrorCode::kResourceExhausted);
  CHECK_FALSE(store.call(2, make(StoreKind::kCheck, "big"), at(0))[0].flag);
}
