#include "base/rendezvous/memory_kv_store.h"

#include <catch2/catch.hpp>
#include <thread>

using namespace troupe;
using namespace std::chrono_literals;

TEST_CASE("a value that was set is read back byte for byte") {
  MemoryKvStore store;
  const std::string binary("a\0b\xff", 4);
  REQUIRE(store.set("g1/key", binary).ok());
  REQUIRE(store.get("g1/key", 0ms).value() == binary);
}

TEST_CASE("a waiting get is woken by the set of its key") {
  MemoryKvStore store;
  std::string seen;
  std::thread reader([&] { seen = store.get("later", 20s).value(); });
  REQUIRE(store.set("other", "x").ok());
  REQUIRE(store.set("later", "y").ok());
  reader.join();
  REQUIRE(seen == "y");
}

TEST_CASE("a get that runs out names the key") {
  MemoryKvStore store;
  const auto result = store.get("g1/address/7", 5ms);
  REQUIRE_FALSE(result.ok());
  CHECK(result.error().code == ErrorCode::kDeadlineExceeded);
  CHECK(result.error().message.find("g1/address/7") != std::string::npos);
}

TEST_CASE("add counts from zero and refuses what is no number") {
  MemoryKvStore store;
  CHECK(store.add("n", 2).value() == 2);
  CHECK(store.add("n", -5).value() == -3);
  CHECK(store.get("n", 0ms).value() == "-3");
  REQUIRE(store.set("text", "12x").ok());
  CHECK(store.add("text", 1).error().code == ErrorCode::kInvalidArgument);
}

TEST_CASE("concurrent adds are all counted") {
  MemoryKvStore store;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 250; ++i) (void)store.add("n", 1);
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(store.add("n", 0).value() == 1000);
}

TEST_CASE("compare_set stores only over the expected value and returns what is there afterwards") {
  MemoryKvStore store;
  CHECK(store.compare_set("leader", "", "a").value() == "a");
  CHECK(store.compare_set("leader", "", "b").value() == "a");
  CHECK(store.compare_set("leader", "a", "b").value() == "b");
  CHECK(store.compare_set("nobody", "a", "b").value().empty());
  CHECK_FALSE(store.check({"nobody"}).value());
}

TEST_CASE("check wants every key and erase says whether there was one") {
  MemoryKvStore store;
  REQUIRE(store.set("a", "").ok());
  CHECK_FALSE(store.check({"a", "b"}).value());
  REQUIRE(store.set("b", "").ok());
  CHECK(store.check({"a", "b"}).value());
  CHECK(store.erase("a").value());
  CHECK_FALSE(store.erase("a").value());
}
