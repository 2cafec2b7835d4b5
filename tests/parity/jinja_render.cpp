#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "actors/jinja/template.h"

namespace {

using Json = nlohmann::ordered_json;

Json answer(const Json& given) {
  const auto parsed = troupe::jinja::Template::parse(given.at("template").get<std::string>());
  if (!parsed.ok())
    return {
        {"code", troupe::error_code_name(parsed.error().code)}, {"error", parsed.error().message}, {"parsed", false}};
  const auto rendered = parsed->render(given.at("variables"));
  if (!rendered.ok())
    return {{"code", troupe::error_code_name(rendered.error().code)}, {"error", rendered.error().message}};
  return {{"text", rendered->text}, {"marked", rendered->marked}};
}

}  // namespace

/// jinja_render FILE: a line {"text", "marked"} or {"code", "error"} for each line {"template", "variables"}. For
/// jinja.py.
int main(int argc, char** argv) {
  if (argc != 2) return 2;
  std::ifstream file(argv[1]);
  for (std::string line; std::getline(file, line);) std::cout << answer(Json::parse(line)).dump() << "\n";
  return 0;
}
