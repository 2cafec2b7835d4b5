#include "actors/data/record_file.h"

#include <catch2/catch.hpp>
#include <vector>

namespace troupe {
namespace {

struct Found {
  std::vector<RecordSpan> records;
  std::optional<RecordFault> fault;
};

Found find_records(const std::string& bytes) {
  Found found;
  RecordScanner scanner(bytes);
  for (RecordSpan span; scanner.next(span);) found.records.push_back(span);
  found.fault = scanner.fault();
  return found;
}

std::vector<std::string> texts(const std::string& bytes) {
  std::vector<std::string> out;
  for (const auto& span : find_records(bytes).records)
    out.push_back(bytes.substr(static_cast<size_t>(span.offset), static_cast<size_t>(span.length)));
  return out;
}

TEST_CASE("D21: a byte-order mark, CRLF ends and empty lines change nothing") {
  const std::vector<std::string> expected{R"({"a": 1})", R"({"b": 2})"};
  CHECK(texts("{\"a\": 1}\n{\"b\": 2}") == expected);
  CHECK(texts("\xEF\xBB\xBF{\"a\": 1}\r\n\r\n{\"b\": 2}\r\n\n") == expected);
  CHECK(texts("\xEF\xBB\xBF [ {\"a\": 1},\r\n {\"b\": 2} ]\n") == expected);
}

TEST_CASE("D23: an array is told from lines by its first character, and line numbers are kept") {
  const auto lines = find_records("\n{\"a\": 1}\n\n{\"b\": \n");
  REQUIRE(lines.records.size() == 2);
  CHECK(lines.records[0].line == 2);
  CHECK(lines.records[1].line == 4);
  CHECK_FALSE(lines.fault);
  const auto array = find_records("[\n{\"a\":\n 1},\n\n{\"b\": \"x]},{\\\"\"}\n]");
  REQUIRE(array.records.size() == 2);
  CHECK(array.records[0].line == 2);
  CHECK(array.records[1].line == 5);
  CHECK(array.records[1].length == 16);
  CHECK_FALSE(array.fault);
}

TEST_CASE("D23: a break in an array's structure is named with its line") {
  const auto fault = [](const std::string& bytes) {
    const auto file = find_records(bytes);
    REQUIRE(file.fault);
    return std::to_string(file.fault->line) + ": " + file.fault->reason;
  };
  CHECK(fault("[{},\n]") == "2: a comma stands before the closing ']'");
  const auto lost = [&](const std::string& text, const std::string& reason, int bytes) {
    CHECK(fault(text) == reason + "; nothing of the file from here on is read (" + std::to_string(bytes) + " B of " +
                             std::to_string(text.size()) + " B)");
  };
  const std::string endless =
      "the record that begins here does not end: a quote, bracket or brace is missing or one too many";
  lost("[{}\n{}]", "2: ',' or ']' is due after a record", 3);
  lost("[{},\n{\"a\": [1,\n2", "2: " + endless, 11);
  lost("[{},\n{\"a\": \"x\n", "2: " + endless, 9);
  lost("[{},\n,{}]", "2: a record is due before ','", 4);
  lost("[}", "1: a record is due before '}'", 1);
  CHECK(fault("[{}\n") == "2: the array is not closed");
  lost("[{}]\nx", "2: more text follows the closing ']'", 1);
  CHECK(fault("") == "1: the file holds no record");
  CHECK(fault(" \n ") == "1: the file holds no record");
  CHECK(find_records("[]").records.empty());
}

TEST_CASE("Elements of an array are counted, lines are not") {
  const auto array = find_records("[{}, {}, 1,\n{}]");
  REQUIRE(array.records.size() == 4);
  for (size_t i = 0; i < 4; ++i) CHECK(array.records[i].element == static_cast<int64_t>(i) + 1);
  CHECK(find_records("{}\n{}").records[1].element == 0);
}

TEST_CASE("A file that begins with an object over several lines has one fault and no record") {
  for (const char* bytes :
       {"\n{\n  \"a\": \"}\\\"\"\n}\n{\n  \"a\": 2\n}\n", "\n{\"a\": [\n1],\n\"b\": 2},\n{\"a\": 2}"}) {
    const auto file = find_records(bytes);
    CHECK(file.records.empty());
    REQUIRE(file.fault);
    CHECK(file.fault->line == 2);
    CHECK(file.fault->reason.find("goes over several lines") != std::string::npos);
    CHECK(file.fault->reason.find("valid: one record a line") != std::string::npos);
  }
  // A first line that is damaged costs no other.
  CHECK(find_records("{\"a\": \"x\ny\"}\n{}").records.size() == 3);
  CHECK(find_records("{\"a\": [1,\n{}\n{}").records.size() == 3);
  CHECK(find_records("{\"a\": \"x\\n\"}\n{}").records.size() == 2);
}

TEST_CASE("Elements of an array that are no objects are still records, so that they are reported one by one") {
  CHECK(texts("[1, \"a,b\", null, [2, 3], {}]") == std::vector<std::string>{"1", "\"a,b\"", "null", "[2, 3]", "{}"});
}

TEST_CASE("D22: a record of 20 MB is a record") {
  const std::string record = "{\"a\": \"" + std::string(20 << 20, 'x') + "\"}";
  CHECK(find_records("{}\n" + record + "\n{}").records[1].length == static_cast<int64_t>(record.size()));
}

}  // namespace
}  // namespace troupe
