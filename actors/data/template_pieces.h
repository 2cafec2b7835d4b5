#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// A part of what a Jinja template puts out: what it says word for word, an expression that it inserts, or a statement,
/// which puts out nothing itself.
struct TemplatePiece {
  enum class Kind { kText, kExpression, kStatement } kind = Kind::kText;
  std::string text;  // unescaped; an expression or a statement without its braces and outer blanks
};

/// The pieces in reading order, as if every branch were taken once: neighbouring texts are one, 'a' + name + 'b' is
/// three pieces. Blanks and newlines around blocks follow Jinja's marks and the options trim_blocks and lstrip_blocks,
/// which transformers sets. A block that does not end reaches to the end of the text.
std::vector<TemplatePiece> template_pieces(std::string_view jinja);

}  // namespace troupe
