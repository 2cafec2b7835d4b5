#include "cli/log_lines.h"

#include <catch2/catch.hpp>

using troupe::cli::log_text;

TEST_CASE("Log lines as JSON are an object each, with group and rank where the line has a tag") {
  const std::string text = "[text/1] phase \"x\"\nplain\nlast \xff";
  CHECK(log_text(text, "f", false) == text);
  CHECK(log_text(text, "a.log", true) ==
        "{\"file\":\"a.log\",\"group\":\"text\",\"rank\":1,\"line\":\"[text/1] phase \\\"x\\\"\"}\n"
        "{\"file\":\"a.log\",\"line\":\"plain\"}\n{\"file\":\"a.log\",\"line\":\"last \xef\xbf\xbd\"}\n");
  CHECK(log_text("x\n", "", true) == "{\"line\":\"x\"}\n");
  CHECK(log_text("", "a.log", true).empty());
}
