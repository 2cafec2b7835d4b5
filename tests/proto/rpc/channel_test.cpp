#include "proto/rpc/channel.h"

#include <catch2/catch.hpp>

using namespace troupe;

TEST_CASE("A TCP address without secrets is refused: there is no plain connection") {
  const auto connection = open_connection("127.0.0.1:7000", {});
  REQUIRE_FALSE(connection.ok());
  CHECK(connection.error().code == ErrorCode::kInvalidArgument);
  grpc::ServerBuilder builder;
  CHECK_FALSE(listen_at(builder, "127.0.0.1:0", {}, nullptr).ok());
}

TEST_CASE("A Unix socket needs no secrets") { CHECK(open_connection("unix:/tmp/nowhere.sock", {}).ok()); }
