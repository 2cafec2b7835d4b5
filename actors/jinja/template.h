#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace troupe::jinja {

struct Program;

struct Rendering {
  std::string text;
  std::vector<std::pair<size_t, size_t>> marked;  // [begin, end) in bytes of `text`, of each generation block
  /// Whether a text at a key `content` or `text` of the variables was looked at. If not, each was only passed on, and
  /// others in their places are written in the same places.
  bool looked_at = false;
};

/// A chat template, parsed. It is rendered as transformers' apply_chat_template does, or not at all: what is not known
/// here is an error and never a guess. Steps, bytes and nesting are bounded, so that every rendering ends soon.
/// Immutable; thread-safe.
class Template {
 public:
  /// `source` is well-formed UTF-8. Errors name the line: InvalidArgument for what Jinja refuses too, Unimplemented for
  /// a construct that is not known here.
  static Result<Template> parse(std::string_view source);

  /// `variables`: an object with the names that the template sees. InvalidArgument where the template fails on them,
  /// raise_exception included, Unimplemented where it reaches something that is not known here; both name the line.
  Result<Rendering> render(const nlohmann::ordered_json& variables) const;

  /// Every name that is read somewhere in the template.
  const std::set<std::string>& names() const;
  /// Every name that is set somewhere in it.
  const std::set<std::string>& assigned() const;
  /// Whether it marks answers with generation blocks.
  bool marks_answers() const;

 private:
  explicit Template(std::shared_ptr<const Program> program) : program_(std::move(program)) {}
  std::shared_ptr<const Program> program_;
};

}  // namespace troupe::jinja
