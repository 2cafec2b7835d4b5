#include "actors/jinja/template.h"

#include "actors/jinja/evaluator.h"
#include "actors/jinja/lexer.h"
#include "actors/jinja/parser.h"

namespace troupe::jinja {

Result<Template> Template::parse(std::string_view source) {
  TROUPE_ASSIGN(std::vector<Token> tokens, tokenize(source));
  TROUPE_ASSIGN(Program program, jinja::parse(std::move(tokens)));
  return Template(std::make_shared<const Program>(std::move(program)));
}

Result<Rendering> Template::render(const nlohmann::ordered_json& variables) const {
  return Evaluator(*program_, variables).run();
}

const std::set<std::string>& Template::names() const { return program_->names; }

const std::set<std::string>& Template::assigned() const { return program_->assigned; }

bool Template::marks_answers() const { return program_->marks; }

}  // namespace troupe::jinja
