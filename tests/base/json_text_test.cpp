#include "base/json_text.h"

#include <catch2/catch.hpp>

namespace troupe {
namespace {

std::string complaint(const std::string& text, TextPlace begin = {}) {
  const auto parsed = parse_json(text, begin);
  return parsed.ok() ? "(read)" : parsed.error().message;
}

std::string nested(int levels, const std::string& open, const std::string& inner, const std::string& close) {
  std::string text;
  for (int i = 0; i < levels; ++i) text += open;
  text += inner;
  for (int i = 0; i < levels; ++i) text += close;
  return text;
}

TEST_CASE("Values may be nested 512 levels deep and no deeper, however deep they are") {
  CHECK(complaint(nested(512, "[", "1", "]")) == "(read)");
  CHECK(complaint(nested(512, R"({"a": )", "1", "}")) == "(read)");
  for (const int levels : {513, 200'000}) {
    CHECK(complaint(nested(levels, "[", "1", "]")) == "is nested deeper than 512 levels");
    CHECK(complaint(nested(levels, R"({"a": )", "1", "}")) == "is nested deeper than 512 levels");
    CHECK(complaint(R"({"z": )" + nested(levels, "[", "", "")) == "is nested deeper than 512 levels");
  }
}

TEST_CASE("An object that has a key twice is refused with the key, at any depth") {
  CHECK(complaint(R"({"a": 1, "b": 2, "a": 1})") == "has the key 'a' twice");
  CHECK(complaint(R"([{"x": {"b": {}, "c": [{}], "b": null}}, {"y": 1}])") == "has the key 'b' twice");
  CHECK(complaint(R"([{"a": {"a": {"b": 1}}}, {"a": 1, "b": {"a": 2}}])") == "(read)");
  CHECK(parse_ordered_json(R"({"z": 1, "a": 2})").value().dump() == R"({"z":1,"a":2})");
  CHECK_FALSE(parse_ordered_json(R"({"z": 1, "z": 2})").ok());
}

TEST_CASE("What is no JSON is said with its place in the file that the text is a part of") {
  CHECK(complaint("{\"a\": 1,\n \"b\" 2}").starts_with("is not valid JSON at line 2, column 6: "));
  CHECK(complaint(R"({"a": })", {7, 11}).starts_with("is not valid JSON at line 7, column 17: "));
  CHECK(complaint("").starts_with("is not valid JSON at line 1, column 1: "));
  CHECK(complaint("{\"a\": \"\xFF\"}").starts_with("is not valid JSON"));
  CHECK(parse_json(R"({"a": [1, {"b": "c"}]})").value()["a"][1]["b"] == "c");
}

}  // namespace
}  // namespace troupe
