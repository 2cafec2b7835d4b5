#include "base/config/variables.h"

#include <catch2/catch.hpp>

using namespace troupe;

namespace {

std::string complaint_of(const std::string& text, const Environment& environment = {}) {
  Diagnostics found;
  YamlNode tree = parse_yaml(text, "j.yaml", found);
  expand_variables(tree, environment, found);
  return found.empty() ? "(accepted)" : found.to_status().error().message;
}

}  // namespace

TEST_CASE("a variable in braces or brackets without quotes is named") {
  CHECK(complaint_of("model:\n  {path: ${HOME}, init: random}\n") ==
        "j.yaml:2: is not valid YAML: inside {...} and [...] a value with ${HOME} needs quotes: \"${HOME}\"");
  CHECK(complaint_of("name: ${A}\ndata: {sources: [{path: \"${B}\",\n image_root: x/${C}/y}]}\n") ==
        "j.yaml:3: is not valid YAML: inside {...} and [...] a value with ${C} needs quotes: \"${C}\"");
  CHECK(complaint_of("name: ${A}\nmodel: {path: [\n").find("needs quotes") == std::string::npos);
  CHECK(complaint_of("name: \"${\"\nmodel: {path: m\n").find("needs quotes") == std::string::npos);
}

TEST_CASE("a variable that is not set is named with its key, and ends what is said of it") {
  Diagnostics found;
  YamlNode tree = parse_yaml("a:\n  - {b: \"${C}\"}\n  - ${D}\n", "j.yaml", found);
  expand_variables(tree, {{"D", "4"}}, found);
  const std::string said = "j.yaml:2: key 'a[0].b': value '${C}': the environment variable C is not set";
  CHECK(found.to_status().error().message == said);
  CHECK(found.mentions("a"));
  found.add_key({"j.yaml", 2}, "a[0].b", "is no folder");
  found.add_key({"j.yaml", 1}, "a[0]", "another");
  CHECK(found.to_status().error().message == "j.yaml:1: key 'a[0]': another\n" + said);
  CHECK(tree.find("a")->items[1].text == "4");
}

TEST_CASE("variables of a text are found in order") {
  const auto found = variables_in("${} ${A} $B ${C-D} ${E_1}");
  REQUIRE(found.size() == 2);
  CHECK(found[0].at == 4);
  CHECK(found[0].length == 4);
  CHECK(found[1].at == 19);
}
