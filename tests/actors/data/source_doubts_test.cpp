#include "actors/data/source_doubts.h"

#include <catch2/catch.hpp>

namespace troupe {
namespace {

TEST_CASE("A column that several sources name is doubted only where none of them has it, and files of both kinds are") {
  const auto source = [](const std::string& path, std::map<std::string, std::string> columns) {
    DataSource s{path, "", 1, -1};
    s.spelling.columns = std::move(columns);
    return s;
  };
  const std::vector<DataSource> two{source("a", {{"id", "key"}, {"input", "x"}}), source("b", {{"input", "x"}})};
  const std::string key = "no record that is read has anything under 'key', which columns name for 'id'",
                    x = "no record that is read has anything under 'x', which columns name for 'input'";
  CHECK(column_doubts(two, {{{0}, true}, {{0}, true}}) == std::vector{"a: " + key, "a and 1 more: " + x});
  CHECK(column_doubts(two, {{{0}, true}, {{1}, true}}) == std::vector{"a: " + key});
  CHECK(column_doubts(two, {{{1}, true}, {{0}, false}}) == std::vector{"a: " + x});
  CHECK(column_doubts({source("a", {{"answer", ""}})}, {{{0, 1}, true}}) ==
        std::vector<std::string>{"a: records have something under 'output', 'response', which the columns of the "
                                 "source leave out; valid: columns that name the key, or name it under ignored"});
  CHECK(column_doubts({source("a", {{"system", "sys"}})}, {{{1, 1}, true}}) ==
        std::vector<std::string>{
            "a: records without 'sys' have something under 'system', which is not read, as columns name "
            "'sys' for 'system'; valid: columns that name the key, or name it under ignored"});
  CHECK(column_doubts({source("a", {{"id", "key"}})}, {{{1, 1}, true}}).empty());
  CHECK(shared_doubts(two, {source("c", {}), source("b", {})}) ==
        std::vector<std::string>{
            "b is among data.sources and eval.sources: a loss on what is trained on is not that of held-out records"});
}

}  // namespace
}  // namespace troupe
