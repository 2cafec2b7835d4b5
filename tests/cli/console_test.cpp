#include "cli/console.h"

#include <catch2/catch.hpp>

using troupe::cli::summary_text;

TEST_CASE("The summary names outcome, steps and the first cause with its kind") {
  const std::string text = summary_text(
      R"({"outcome": "failed", "steps_done": 12, "run_folder": "/nonexistent", "cause": {"kind": "host_killed", "message": "rank 1 of group vision was killed"}})");
  CHECK(text.find("job failed after 12 steps") != std::string::npos);
  CHECK(text.find("cause (host_killed): rank 1 of group vision was killed") != std::string::npos);
  CHECK(text.find("/nonexistent") == std::string::npos);
}
