#include "actors/data/template_pieces.h"

#include <catch2/catch.hpp>

namespace troupe {
namespace {

/// Texts as they are, expressions in <>, statements in [].
std::string drawn(const std::string& jinja) {
  std::string out;
  for (const auto& piece : template_pieces(jinja))
    out += piece.kind == TemplatePiece::Kind::kText         ? piece.text
           : piece.kind == TemplatePiece::Kind::kExpression ? "<" + piece.text + ">"
                                                            : "[" + piece.text + "]";
  return out;
}

TEST_CASE("Text, expressions and statements come in order, comments do not") {
  CHECK(drawn("a{{ b.c }}d{% if e %}f{# g #}h") == "a<b.c>d[if e]fh");
  CHECK(drawn("{{ 'a' + b['c'] + \"d\\n\" ~ e }}") == "a<b['c']>d\n<e>");
  CHECK(drawn("{{ f('x + y', z) + 'it\\'s' }}") == "<f('x + y', z)>it's");
  CHECK(drawn("{{ '}}' }}{ {x} }") == "}}{ {x} }");
}

TEST_CASE("Blanks around blocks go as Jinja with trim_blocks and lstrip_blocks takes them") {
  CHECK(drawn("a\n  {% if b %}\nc\n  {% endif %}\nd") == "a\n[if b]c\n[endif]d");
  CHECK(drawn("a  {%- if b -%}  \n c") == "a[if b]c");
  CHECK(drawn("a  {{- b -}}  \n c") == "a<b>c");
  CHECK(drawn("a\n  {{ b }}\nc") == "a\n  <b>\nc");
  CHECK(drawn("a {% if b %} c") == "a [if b] c");
  CHECK(drawn("  {%+ if b +%}\nc") == "  [if b]\nc");
}

TEST_CASE("What does not end reaches to the end") {
  CHECK(drawn("a{{ b") == "a<b>");
  CHECK(drawn("a{% b") == "a[b]");
  CHECK(drawn("a{# b") == "a");
  CHECK(drawn("a{") == "a{");
  CHECK(drawn("{{ 'a") == "a");
  CHECK(drawn("{{ 'a\\") == "a\\");
}

}  // namespace
}  // namespace troupe
