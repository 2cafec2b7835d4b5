#include "cli/console.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "base/error_json.h"

using troupe::cli::summary_text;

TEST_CASE("An error is a JSON object for programs, whatever bytes its message holds") {
  const std::string text = troupe::error_json(troupe::not_found("runs/x\xff is no \"run\" folder"), 2);
  const auto j = nlohmann::json::parse(text);
  CHECK(j["error"]["code"] == "not_found");
  CHECK(j["error"]["exit_code"] == 2);
  CHECK(j["error"]["message"].get<std::string>().find("is no \"run\" folder") != std::string::npos);
}

TEST_CASE("A refused job is said with the place of the key that it is refused for") {
  const troupe::KeyPlaces places(
      std::map<std::string, std::string>{{"", "job.yaml:1"}, {"training.global_batch", "job.yaml:7"}});
  const auto refusal = troupe::cli::refusal_in(
      R"({"outcome": "refused", "cause": {"kind": "refused", "message": "key 'training.global_batch': value 4 is too large"}})");
  REQUIRE(refusal.has_value());
  CHECK(places.located(*refusal).message == "job.yaml:7: key 'training.global_batch': value 4 is too large");
  CHECK_FALSE(troupe::cli::refusal_in(R"({"outcome": "done"})").has_value());
}

TEST_CASE("The summary names outcome, steps and the first cause with its kind") {
  const std::string text = summary_text(
      R"({"outcome": "failed", "steps_done": 12, "run_folder": "/nonexistent", "cause": {"kind": "host_killed", "message": "rank 1 of group vision was killed"}})");
  CHECK(text.find("job failed after 12 steps") != std::string::npos);
  CHECK(text.find("cause (host_killed): rank 1 of group vision was killed") != std::string::npos);
  CHECK(text.find("/nonexistent") == std::string::npos);
}

TEST_CASE("The summary rounds the loss, and says no steps where none were counted") {
  CHECK(summary_text(R"({"outcome": "done", "steps_done": 20, "last_loss": 3.4213412341})") ==
        "job done after 20 steps, loss 3.4213");
  CHECK(summary_text(R"({"outcome": "failed"})") == "job failed");
}
