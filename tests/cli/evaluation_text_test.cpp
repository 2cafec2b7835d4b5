#include "cli/evaluation_text.h"

#include <catch2/catch.hpp>

using troupe::cli::evaluation_text;

namespace {
constexpr char kResult[] =
    R"({"outcome": "done", "results": {"eval_loss": 3.4213412341, "eval_accuracy": 0.75, "eval_tokens": 1234567,
  "show": [{"id": "r1", "question": "how many?", "expected": "3", "predicted": "2"}]}})";
}

TEST_CASE("Figures come first, then each shown sample with question, expected and predicted answer") {
  const std::string text = evaluation_text(kResult, false);
  const size_t accuracy = text.find("eval_accuracy"), question = text.find("how many?"),
               expected = text.find("expected    3"), predicted = text.find("predicted   2");
  for (size_t at : {accuracy, question, expected, predicted}) REQUIRE(at != std::string::npos);
  CHECK(accuracy < question);
  CHECK(question < expected);
  CHECK(expected < predicted);
}

TEST_CASE("Figures are rounded for people, numbers of things are whole") {
  const std::string text = evaluation_text(kResult, false);
  CHECK(text.find("eval_loss               3.4213\n") != std::string::npos);
  CHECK(text.find("eval_accuracy           0.7500\n") != std::string::npos);
  CHECK(text.find("eval_tokens             1234567\n") != std::string::npos);
}

TEST_CASE("As JSON the hosts' result is passed on and nothing else") {
  const std::string text = evaluation_text(kResult, true);
  CHECK(text.find("\"eval_loss\": 3.4213412341") != std::string::npos);
  CHECK(text.find("outcome") == std::string::npos);
}

TEST_CASE("A result that is no JSON prints nothing rather than failing") {
  CHECK(evaluation_text("oops", false).empty());
}
