#include "base/model/chat_template_files.h"

#include <catch2/catch.hpp>
#include <filesystem>

#include "tests/scratch_folder.h"

namespace troupe {
namespace {

// Which file is taken is compared with transformers by tests/parity/chat_templates.py; here are names and messages.

/// "FILE: TEXT; others ...", or why the folder is refused.
std::string found(const ScratchFolder& folder) {
  const auto files = find_chat_templates(folder.path());
  if (!files.ok()) return "refused: " + files.error().message.substr(folder.path().size() + 1);
  if (!files->taken) return "none";
  std::string answer = files->taken->file.substr(folder.path().size() + 1) + ": " + files->taken->text;
  for (const std::string& name : files->others) answer += "; " + name;
  return answer;
}

void write_named(const ScratchFolder& folder, const std::string& name, const std::string& text) {
  std::filesystem::create_directories(folder.path() + "/additional_chat_templates");
  folder.write("additional_chat_templates/" + name + ".jinja", text);
}

TEST_CASE("Of several chat templates the one of transformers' processor is taken and those that differ are named") {
  const ScratchFolder folder;
  CHECK(found(folder) == "none");
  folder.write("tokenizer_config.json", R"({"chat_template": [{"name": "tool", "template": "x"},
                                                              {"name": "default", "template": "T"}]})");
  CHECK(found(folder) == "tokenizer_config.json: T");
  write_named(folder, "default", "N");
  write_named(folder, "tool", "O");
  CHECK(found(folder) == "additional_chat_templates/default.jinja: N; tokenizer_config.json");
  folder.write("chat_template.jinja", "J");
  CHECK(found(folder) == "chat_template.jinja: J; additional_chat_templates/default.jinja; tokenizer_config.json");
  std::filesystem::remove_all(folder.path() + "/additional_chat_templates");
  folder.write("chat_template.json", R"({"chat_template": "L"})");
  CHECK(found(folder) == "chat_template.json: L; chat_template.jinja; tokenizer_config.json");
  folder.write("processor_config.json", R"({"chat_template": {"default": "P", "tool": "x"}})");
  CHECK(found(folder) == "processor_config.json: P; chat_template.json; chat_template.jinja; tokenizer_config.json");
  CHECK(find_chat_templates(folder.path())->warning() ==
        folder.path() +
            "/processor_config.json: its chat template is the one that transformers' processor takes; "
            "chat_template.json, chat_template.jinja and tokenizer_config.json hold other ones, which are not used");
}

TEST_CASE("Chat templates that differ in line ends only are the same") {
  const ScratchFolder folder;
  folder.write("chat_template.json", R"({"chat_template": "a\r\nb\n"})");
  folder.write("chat_template.jinja", "a\nb");
  folder.write("tokenizer_config.json", R"({"chat_template": "a\nb\n\n"})");
  CHECK(found(folder) == "chat_template.json: a\r\nb\n; tokenizer_config.json");
  CHECK(find_chat_templates(folder.path())
            ->warning()
            .find("tokenizer_config.json holds another one, which is not used") != std::string::npos);
  folder.write("tokenizer_config.json", "{}");
  CHECK(find_chat_templates(folder.path())->warning().empty());
}

TEST_CASE("Chat template files that transformers refuses are refused by name") {
  const ScratchFolder folder;
  write_named(folder, "tool", "O");
  CHECK(found(folder) ==
        "refused: additional_chat_templates: holds tool.jinja and no default.jinja, and there is no "
        "chat_template.jinja; valid: one of them");
  folder.write("chat_template.json", R"({"chat_template": "L"})");
  CHECK(found(folder) ==
        "refused: chat_template.json: stands beside additional_chat_templates/tool.jinja, and transformers refuses "
        "both together; valid: chat_template.jinja in its place");
  std::filesystem::remove_all(folder.path() + "/additional_chat_templates");
  folder.write("chat_template.json", "{}");
  CHECK(found(folder) == "refused: chat_template.json: has no key 'chat_template'");
  folder.write("chat_template.json", R"({"chat_template": [{"name": "default", "template": "x"}]})");
  CHECK(found(folder).find("neither a string nor an object of them with one named 'default'") != std::string::npos);
  folder.write("chat_template.json", "{");
  CHECK(found(folder).find("refused: chat_template.json is not valid JSON") == 0);
  std::filesystem::remove(folder.path() + "/chat_template.json");
  folder.write("tokenizer_config.json", R"({"chat_template": [{"name": "tool", "template": "x"}]})");
  CHECK(found(folder) ==
        "refused: tokenizer_config.json: key 'chat_template': neither a string nor a list of named ones with one named "
        "'default'");
}

}  // namespace
}  // namespace troupe
