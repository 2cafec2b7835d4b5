#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/model/chat_template_files.h"

namespace {

nlohmann::json answer(const std::string& folder) {
  const auto found = troupe::find_chat_templates(folder);
  if (!found.ok()) return {{"text", "refused"}, {"error", found.error().message}};
  if (!found->taken) return {{"text", nullptr}};
  return {{"text", found->taken->text}, {"file", found->taken->file}};
}

}  // namespace

/// chat_template_of FILE: a line {"text"} for each line of the file, a model folder. For chat_templates.py.
int main(int argc, char** argv) {
  if (argc != 2) return 2;
  std::ifstream file(argv[1]);
  for (std::string line; std::getline(file, line);) std::cout << answer(line).dump() << "\n";
  return 0;
}
