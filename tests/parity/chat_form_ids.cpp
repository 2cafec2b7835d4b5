#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "actors/data/chat_form.h"
#include "base/model/model_config.h"

namespace {

using nlohmann::json;

troupe::Status print_ids(const std::string& folder, const std::string& records) {
  TROUPE_ASSIGN(const troupe::ModelConfig config, troupe::read_model_config(folder));
  TROUPE_ASSIGN(std::shared_ptr<const troupe::Tokenizer> tokenizer, troupe::Tokenizer::load(folder));
  TROUPE_ASSIGN(const troupe::ChatTemplate chat_template, troupe::read_chat_template(folder));
  TROUPE_ASSIGN(const auto form, troupe::ChatForm::create(tokenizer, chat_template, config, troupe::Supervise::kAll));
  std::ifstream file(records);
  for (std::string line; std::getline(file, line);) {
    const json given = json::parse(line);
    troupe::Record record;
    TROUPE_RETURN_IF_ERROR(troupe::parse_record(given.at("record").dump(), record));
    std::vector<troupe::IndexedImage> images;
    for (const json& grid : given.at("grids")) images.push_back({grid.at(0), grid.at(1), grid.at(2), 0});
    TROUPE_ASSIGN(const troupe::SampleTokens tokens, form->tokenize(record, images));
    std::printf("%s\n", json{{"ids", tokens.ids}, {"supervised", tokens.supervised}}.dump().c_str());
  }
  return {};
}

}  // namespace

/// chat_form_ids FOLDER RECORDS: a line {"ids", "supervised"} for each line {"record", "grids"} of a file. For
/// chat_form.py.
int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const troupe::Status done = print_ids(argv[1], argv[2]);
  if (!done.ok()) std::fprintf(stderr, "%s\n", done.error().to_string().c_str());
  return done.ok() ? 0 : 1;
}
