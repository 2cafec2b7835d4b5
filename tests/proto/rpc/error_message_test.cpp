#include "proto/rpc/error_message.h"

#include <catch2/catch.hpp>

using namespace troupe;

TEST_CASE("An error crosses with code, message, origin and all causes") {
  Error inner = data_loss("row counts differ");
  inner.origin = "vision/1";
  Error error = wrap(inner, "step 3 failed");
  error.origin = "text/0";
  const Error back = from_message(to_message(error));
  CHECK(back.code == ErrorCode::kDataLoss);
  CHECK(back.message == "step 3 failed");
  CHECK(back.origin == "text/0");
  REQUIRE(back.cause);
  CHECK(back.cause->message == "row counts differ");
  CHECK(back.cause->origin == "vision/1");
  CHECK_FALSE(back.cause->cause);
}

TEST_CASE("A code that this build does not know is internal") {
  wire::ErrorMessage message;
  message.set_code("from_the_future");
  CHECK(from_message(message).code == ErrorCode::kInternal);
}

TEST_CASE("An endless chain of causes from a peer is cut") {
  wire::ErrorMessage message;
  wire::ErrorMessage* at = &message;
  for (int i = 0; i < 90; ++i) at = at->mutable_cause();
  int depth = 0;
  const Error error = from_message(message);
  for (const Error* e = &error; e; e = e->cause.get()) ++depth;
  CHECK(depth == 16);
}
