#include "actors/calls/handle_table.h"

#include <ATen/ops/zeros.h>

#include <catch2/catch.hpp>

using namespace troupe;
using std::chrono::milliseconds;

namespace {

const auto kStart = HandleTable::Clock::time_point(std::chrono::hours(1));

wire::TensorHandle handle(uint64_t object, int rank = 0) {
  wire::TensorHandle h;
  h.set_group(0);
  h.set_rank(rank);
  h.set_object(object);
  h.set_batch(2);
  h.set_unit(1);
  return h;
}

google::protobuf::RepeatedField<uint64_t> objects(std::initializer_list<uint64_t> list) {
  google::protobuf::RepeatedField<uint64_t> field;
  for (uint64_t object : list) field.Add(object);
  return field;
}

}  // namespace

TEST_CASE("a kept tensor is found by its handle, which says dtype and shape") {
  HandleTable table{Generation(3)};
  wire::TensorHandle h = handle(7);
  REQUIRE(table.add(h, at::zeros({4, 2}), kStart).ok());
  CHECK(h.generation() == 3);
  CHECK(h.dtype() == "fp32");
  CHECK(h.shape(0) == 4);
  const auto found = table.find(h);
  REQUIRE(found.ok());
  CHECK(found->numel() == 8);
  CHECK_FALSE(table.add(h, at::zeros({1, 1}), kStart).ok());  // in use
  wire::TensorHandle none = handle(0);
  CHECK_FALSE(table.add(none, at::zeros({1, 1}), kStart).ok());
}

TEST_CASE("a handle of another generation, unit or rank is refused by name") {
  HandleTable table{Generation(3)};
  wire::TensorHandle h = handle(7);
  REQUIRE(table.add(h, at::zeros({4, 2}), kStart).ok());
  wire::TensorHandle dead = h;
  dead.set_generation(2);
  CHECK(table.find(dead).error().code == ErrorCode::kAborted);
  CHECK(table.find(dead).error().message ==
        "tensor handle group 0 rank 0 #7 (batch 2, unit 1, rows) is of generation 2, which has ended; the job runs "
        "generation 3");
  wire::TensorHandle other = h;
  other.set_unit(0);
  CHECK(table.find(other).error().code == ErrorCode::kInvalidArgument);
  other = h;
  other.set_rank(1);
  CHECK(table.find(other).error().code == ErrorCode::kNotFound);
}

TEST_CASE("what is not renewed in time is let go of, and said to have expired") {
  HandleTable table{Generation(1)};
  table.set_lease(milliseconds(100));
  wire::TensorHandle kept = handle(1), left = handle(2);
  REQUIRE(table.add(kept, at::zeros({1, 1}), kStart).ok());
  REQUIRE(table.add(left, at::zeros({1, 1}), kStart).ok());
  table.renew(objects({1, 9}), kStart + milliseconds(80));
  table.expire(kStart + milliseconds(99));
  CHECK(table.find(left).ok());
  table.expire(kStart + milliseconds(100));
  CHECK(table.find(kept).ok());
  REQUIRE_FALSE(table.find(left).ok());
  CHECK(table.find(left).error().message.find("its lease of 100 ms ran out") != std::string::npos);
  CHECK(table.expired_count() == 1);
  table.expire(kStart + milliseconds(180));
  CHECK_FALSE(table.find(kept).ok());
}

TEST_CASE("releasing an object lets go of its part of every rank; what is left is told in order") {
  HandleTable table{Generation(1)};
  for (uint64_t object : {1, 2})
    for (int rank : {0, 1}) {
      wire::TensorHandle h = handle(object, rank);
      REQUIRE(table.add(h, at::zeros({1, 1}), kStart).ok());
    }
  table.release(objects({1, 5}));
  CHECK(table.held() == std::vector<std::string>{"group 0 rank 0 #2 (batch 2, unit 1, rows)",
                                                 "group 0 rank 1 #2 (batch 2, unit 1, rows)"});
}

TEST_CASE("all leases begin anew at once while renewals cannot be heard") {
  HandleTable table{Generation(3)};
  table.set_lease(milliseconds(100));
  wire::TensorHandle first = handle(7), second = handle(8);
  REQUIRE(table.add(first, at::zeros({1, 1}), kStart).ok());
  REQUIRE(table.add(second, at::zeros({1, 1}), kStart).ok());
  table.renew_all(kStart + milliseconds(90));
  table.expire(kStart + milliseconds(150));
  CHECK(table.held().size() == 2);
  table.expire(kStart + milliseconds(190));
  CHECK(table.held().empty());
}
