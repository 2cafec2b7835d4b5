#include "driver/supervision/worker_leases.h"

#include <catch2/catch.hpp>

using namespace troupe::driver;
using std::chrono::milliseconds;

namespace {
WorkerLeases::Time at(int64_t ms) { return WorkerLeases::Time(milliseconds(ms)); }
WorkerLeases two() {
  return WorkerLeases({{"a", "10.0.0.1"}, {"b", "10.0.0.2"}}, milliseconds(1000), milliseconds(15000), at(0));
}
}  // namespace

TEST_CASE("Missing workers are named by node and address") {
  WorkerLeases leases = two();
  CHECK(leases.registered("a", "i1", at(0)).empty());
  CHECK_FALSE(leases.all_present({"a", "b"}));
  CHECK(leases.all_present({"a"}));
  CHECK(leases.missing({}) == "node b at 10.0.0.2");
  CHECK_FALSE(leases.register_time_over(at(14999)));
  CHECK(leases.register_time_over(at(15000)));
}

TEST_CASE("A silent worker is lost after its lease and named once") {
  WorkerLeases leases = two();
  leases.registered("a", "i1", at(0));
  leases.heartbeat("a", "i1", at(900));
  CHECK(leases.expire(at(1800)).empty());
  CHECK(leases.expire(at(1900)) == std::vector<std::string>{"a"});
  CHECK(leases.expire(at(5000)).empty());
}

TEST_CASE("A lost incarnation is never believed again but a fresh one is welcome") {
  WorkerLeases leases = two();
  leases.registered("a", "i1", at(0));
  leases.expire(at(2000));
  CHECK_FALSE(leases.registered("a", "i1", at(2100)).empty());
  leases.heartbeat("a", "i1", at(2200));
  CHECK_FALSE(leases.present("a"));
  CHECK(leases.registered("a", "i2", at(2300)).empty());
  CHECK(leases.present("a"));
}

TEST_CASE("Two workers of one name are refused while the first lives") {
  WorkerLeases leases = two();
  leases.registered("a", "i1", at(0));
  CHECK_FALSE(leases.registered("a", "i2", at(10)).empty());
  CHECK_FALSE(leases.stream_closed("a", "i2"));
  CHECK(leases.present("a"));
  CHECK(leases.stream_closed("a", "i1"));
  CHECK_FALSE(leases.stream_closed("a", "i1"));
  CHECK(leases.registered("a", "i2", at(20)).empty());
}

TEST_CASE("A node that the manifest does not know is refused by name") {
  WorkerLeases leases = two();
  CHECK(leases.registered("c", "i1", at(0)).find("'c'") != std::string::npos);
}
