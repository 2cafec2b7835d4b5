#include "base/config/record_spelling.h"

#include <catch2/catch.hpp>

namespace troupe {
namespace {

TEST_CASE("Keys that mean nothing stand in one text, with commas and blanks between") {
  const auto spelling = [](const std::string& ignored) {
    return RecordSpelling{{{"ignored", ignored}, {"id", "c"}}, {}};
  };
  using Keys = std::vector<std::string_view>;
  const RecordSpelling two = spelling(" avatar url ,, logo,");
  CHECK(ignored_keys(two) == Keys{"avatar url", "logo"});
  CHECK(is_ignored("avatar url", two));
  CHECK(is_ignored("logo", two));
  CHECK_FALSE(is_ignored("avatar", two));
  CHECK_FALSE(is_ignored("", two));
  CHECK_FALSE(is_ignored("c", two));
  const RecordSpelling blank = spelling(" , ");
  CHECK(ignored_keys(blank).empty());
  CHECK(ignored_keys({}).empty());
}

}  // namespace
}  // namespace troupe
