#include "actors/jinja/template.h"

#include <catch2/catch.hpp>

namespace troupe::jinja {
namespace {

// What templates give is compared with jinja2 by tests/parity/jinja.py; here are errors, marks and bounds.

const nlohmann::ordered_json kVariables = {
    {"messages", {{{"role", "user"}, {"content", "Hello"}}, {{"role", "assistant"}, {"content", "Hi"}}}},
    {"add_generation_prompt", false}};

std::string rendered(const std::string& source) {
  const auto parsed = Template::parse(source);
  if (!parsed.ok()) return "not parsed: " + parsed.error().message;
  const auto done = parsed->render(kVariables);
  return done.ok() ? done->text : std::string(error_code_name(done.error().code)) + ": " + done.error().message;
}

TEST_CASE("A template of the usual kind is rendered") {
  CHECK(
      rendered("{% for m in messages %}\n  {%- if loop.first %}[{% endif %}\n{{ m.role ~ ': ' ~ m['content'] }};\n{%- "
               "endfor -%}\n  ]\n") == "[user: Hello;assistant: Hi;]");
}

TEST_CASE("Errors name the line on which a construct stands") {
  CHECK(rendered("a\n\n{{ messages |\n  title }}") == "unimplemented: line 4: the filter title");
  CHECK(rendered("a\n{# b\n #}\n{% include 'c' %}") == "not parsed: line 4: the statement include");
  CHECK(rendered("a\n{%- if true -%}\n\n\n{{ messages.x.y }}{% endif %}") ==
        "invalid_argument: line 5: uses 'x', which is undefined");
  CHECK(rendered("\n{{ raise_exception('no\\nthanks') }}") == "invalid_argument: line 2: raises 'no\\nthanks'");
  CHECK(rendered("{% if true %}\n{% endfor %}") == "not parsed: line 2: the statement endfor");
  CHECK(rendered("{% macro f() %}\n{{ g() }}{% endmacro %}\n{{ f() }}") ==
        "invalid_argument: line 2: calls 'g', which is undefined");
}

TEST_CASE("Generation blocks are marked in bytes of the text") {
  const auto parsed =
      Template::parse("{% for m in messages %}\xC3\xA9{% generation %}{{ m.content }}{% endgeneration %}{% endfor %}");
  REQUIRE(parsed.ok());
  CHECK(parsed->marks_answers());
  const auto done = parsed->render(kVariables);
  REQUIRE(done.ok());
  CHECK(done->marked == std::vector<std::pair<size_t, size_t>>{{2, 7}, {9, 11}});
}

TEST_CASE("Names that are read and names that are set are told apart") {
  const auto parsed = Template::parse(
      "{% set a = b %}{% for c in d.e %}{{ 'f' | join(g) }}{% endfor %}{% macro h(i) %}{{ j }}{% endmacro %}");
  REQUIRE(parsed.ok());
  CHECK(parsed->names() == std::set<std::string>{"b", "d", "g", "j"});
  CHECK(parsed->assigned() == std::set<std::string>{"a", "c", "i"});
}

TEST_CASE("A hostile template ends soon with an error") {
  for (const std::string& hostile :
       {std::string("{% for a in range(9999) %}{% for b in range(9999) %}x{% endfor %}{% endfor %}"),
        std::string(
            "{% set ns = namespace(x='aaaaaaaa') %}{% for i in range(99) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}"),
        std::string("{% set ns = namespace(x=[1]) %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}"),
        std::string("{% set ns = namespace(x=[]) %}{% for i in range(9999) %}{% set ns.x = [ns.x] %}{% endfor %}"),
        std::string("{% set ns = namespace() %}{% set ns.ns = ns %}"),
        std::string("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"), std::string("{{ 'a' * 999999999 }}"),
        std::string("{{ range(999999999) }}"), std::string("{% for a in range(9999) %}{{ 'a' * 200000 }}{% endfor %}")})
    CHECK(rendered(hostile).starts_with("unimplemented: line 1: "));
  for (const std::string_view part :
       {"(", "[", "not ", "-", "{% if 1 %}", "{{ {'a': ", "a.", "a|first|", "1+", "1~", "a if a else "}) {
    std::string deep = part.starts_with("{%") ? "" : "{{ ";
    for (int i = 0; i < 100'000; ++i) deep += part;
    CHECK(rendered(deep).starts_with("not parsed: line 1: "));
  }
}

}  // namespace
}  // namespace troupe::jinja
