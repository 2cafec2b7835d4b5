#include "actors/data/chat_template.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/actors/data/fixture.h"

namespace troupe {
namespace {

constexpr const char* kNone = "no default";

/// The default system turn of a folder with that template, kNone, or why it is refused.
std::string found(const std::string& jinja, const std::string& tokenizer_config = "{}") {
  const fixture::Scratch folder;
  folder.write("chat_template.jinja", jinja);
  folder.write("tokenizer_config.json", tokenizer_config);
  const auto read = read_chat_template(folder.path("."));
  if (!read.ok()) return "refused: " + read.error().message;
  return read->default_system.value_or(kNone);
}

bool refused(const std::string& jinja, const std::string& words, const std::string& tokenizer_config = "{}") {
  const std::string answer = found(jinja, tokenizer_config);
  INFO(answer);
  return answer.starts_with("refused: ") &&
         answer.find("chat_template.jinja: the chat template ") != std::string::npos &&
         answer.find(words) != std::string::npos;
}

const std::string kWords =
    "{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}{% if p.type == 'image' %}"
    "<|vision_start|><|image_pad|><|vision_end|>{% else %}{{ p.text }}{% endif %}{% endfor %}{% endif %}";
const std::string kTurn = "<|im_start|>{{ m['role'] }}\n" + kWords + "<|im_end|>\n";

std::string looped(const std::string& before, const std::string& turn = kTurn, const std::string& over = "messages") {
  return before + "{% for m in " + over + " %}" + turn + "{% endfor %}";
}

std::string with_default(const std::string& condition, const std::string& words) {
  return looped("{% if " + condition + " %}<|im_start|>system\n" + words + "<|im_end|>\n{% endif %}");
}

TEST_CASE("The default system turn is what a chat without one gets, and none when it gets none") {
  CHECK(found(looped("")) == kNone);
  CHECK(found(with_default("messages[0].role != 'system'", "Be kind.")) == "Be kind.");
  CHECK(found(with_default("not messages or messages[0]['role'] not in ('system',)", "")) == "");
  CHECK(found("{% set words = ['You are', 'Qwen.'] | join(' ') %}" +
              with_default("messages[0].role != 'system'", "{{ words }}")) == "You are Qwen.");
  CHECK(found("{% set ns = namespace(own=false) %}{% for m in messages %}{% if m.role == 'system' %}{% set ns.own = "
              "true %}{% endif %}{% endfor %}" +
              with_default("not ns.own", "It's me.")) == "It's me.");
}

TEST_CASE("Each way of writing the form is understood") {
  CHECK(found("{# a note #}" + looped("") +
              "{%- if add_generation_prompt -%}\n{{ '<|im_start|>assistant\\n' }}\n{%- endif %}\n") == kNone);
  CHECK(found(looped("", "{% set content %}" + kWords +
                             "{% endset %}\n{{- '<|im_start|>' + m.role }}{% if content %}{{ '\\n' + content "
                             "}}{% else %}{{ '\\n' }}{% endif %}{{ '<|im_end|>\\n' }}")) == kNone);
  CHECK(found("{% macro words(m) %}" + kWords +
              "{% endmacro %}{% for m in messages %}{{ '<|im_start|>' ~ m.role ~ '\\n' ~ words(m) ~ '<|im_end|>\\n' "
              "}}{% endfor %}") == kNone);
  CHECK(found(looped("{% if tools %}{{ tools | tojson | title }}{{ strftime_now('%Y') }}{% endif %}")) == kNone);
  CHECK(found(looped("", "<|im_start|>{{ m.role }}\n{% if m.role == 'assistant' %}{% generation %}" + kWords +
                             "<|im_end|>{% endgeneration %}{{ '\\n' }}{% else %}" + kWords +
                             "<|im_end|>\n{% endif %}")) == kNone);
}

TEST_CASE("Templates that lay a chat out in another way are refused with the chat and what differs") {
  CHECK(refused(looped("[INST] "), "writes a chat with one question as '[INST] "));
  CHECK(refused("", "a chat with one question"));
  CHECK(refused(looped("", "<|im_start|>{{ m.role }}\n" + kWords + "{{ '\\n' }}<|im_end|>\n"), "this?\\n<|im"));
  CHECK(refused(looped("", "<|im_start|>{{ m.role }}\n" + kWords + "<|im_end|>"), "where the form has"));
  CHECK(refused(looped("", "<|im_start|>{{ m.role }}\n{{ m.content | trim }}<|im_end|>\n"), "a list written as text"));
  CHECK(refused(looped("", kTurn, "messages[1:]"), "one question"));
  CHECK(refused(looped("", kTurn, "messages[-2:]"), "a system turn"));
  CHECK(refused(looped("", kTurn, "messages[:20]"), "many questions"));
  CHECK(refused(looped("", kTurn, "messages if m.role != 'system'"), "a system turn"));
  CHECK(refused(looped("", kTurn) + "bye", "one question"));
  CHECK(refused(looped("{% set messages = messages | rejectattr('content', 'equalto', '') | list %}"), "empty"));
  CHECK(refused(with_default("messages | length == 2", "Be kind."), "a chat with one question that waits"));
  CHECK(refused(with_default("messages[0].role != 'system' or not messages[0].content", "x"), "an empty system turn"));
  CHECK(refused(looped("{% if messages[0].role != 'system' %}<|im_start|>system\n{{ messages[0].content if "
                       "messages[0].content is string }}<|im_end|>\n{% endif %}"),
                "a chat with one question (questions"));
  CHECK(refused(looped("", kTurn + "{% if add_generation_prompt and loop.last %}<think>\n{% endif %}"),
                "opens the answer"));
}

TEST_CASE("A template that adds a system turn is refused with the difference that lies elsewhere") {
  const auto with_turn = [](const std::string& turn) {
    return looped("{% if messages[0].role != 'system' %}<|im_start|>system\nBe kind.<|im_end|>\n{% endif %}", turn);
  };
  CHECK(found(with_turn(kTurn)) == "Be kind.");
  for (const auto& [turn, shown] : std::vector<std::pair<std::string, std::string>>{
           {"<|im_start|>{{ m.role }}\n" + kWords + "<|im_end|>",
            "as '... this?<|im_end|><|im_start|>assistant\\nA cat.<|im_end|>' where the form has"},
           {"<|im_start|>{{ m.role }}\n{{ m.content | upper }}<|im_end|>\n", "user\\nWHAT IS THIS?"},
           {"<|im_start|>{{ m.role }}: " + kWords + "<|im_end|>\n", "<|im_start|>user: What"}}) {
    const std::string answer = found(with_turn(turn));
    INFO(answer);
    CHECK(answer.starts_with("refused: "));
    CHECK(answer.find(shown) != std::string::npos);
    CHECK(answer.find("Be kind") == std::string::npos);
  }
}

TEST_CASE("Texts that a template changes on some chats only are found") {
  const auto changed = [](const std::string& expression) {
    return looped("", "{% set content %}" + kWords + "{% endset %}{% set content = " + expression +
                          " %}<|im_start|>{{ m.role }}\n{{ content }}<|im_end|>\n");
  };
  CHECK(found(changed("content")) == kNone);
  CHECK(refused(changed("content.split('</think>')[-1]"), "thoughts"));
  CHECK(refused(changed("content if '/no_think' not in content else content.replace('/no_think', '')"), "other forms"));
  CHECK(refused(changed("content.strip()"), "blanks"));
  CHECK(refused(changed("content.rstrip('\\n') if m.role == 'user' else content"), "blanks"));
  CHECK(refused(changed("content | replace('&', '&amp;')"), "markup"));
  CHECK(refused(changed("content[:5000]"), "long texts"));
  CHECK(refused(changed("content | default('...', true)"), "empty"));
  CHECK(refused(changed("content if loop.index < 20 else content ~ ' '"), "many questions"));
  CHECK(refused(changed("'Picture 1: ' ~ content if m.content is not string and m.content | selectattr('type', 'eq', "
                        "'image') | list else content"),
                "an image"));
}

TEST_CASE("Marks of answers are held against what is learned") {
  const auto marked = [](const std::string& turn) {
    return looped("", "<|im_start|>{{ m.role }}\n{% if m.role == 'assistant' %}" + turn + "{% else %}" + kWords +
                          "<|im_end|>\n{% endif %}");
  };
  CHECK(refused(marked("{% generation %}" + kWords + "{% endgeneration %}<|im_end|>\n"), "marks other words"));
  CHECK(refused(marked("{% generation %}" + kWords + "<|im_end|>\n{% endgeneration %}"), "'A cat.<|im_end|>\\n'"));
  CHECK(refused(marked("{% if loop.last %}{% generation %}" + kWords + "<|im_end|>{% endgeneration %}{% else %}" +
                       kWords + "<|im_end|>{% endif %}{{ '\\n' }}"),
                "two questions"));
}

TEST_CASE("What is not known is refused with its line, and what Jinja refuses too") {
  CHECK(refused(looped("\n{% include 'x' %}"), "what is not understood: line 2: the statement include"));
  CHECK(refused(looped("{{ strftime_now('%d') }}"), "line 1: the function strftime_now"));
  CHECK(refused(looped("{{ raise_exception('not for you') }}"),
                "fails on a chat with one question: line 1: raises 'not for"));
  for (const char* broken : {"{{", "{%", "{{ 'a", "{% if", "<|im_start|>{{ m['role'", "{#", "{{ '\\", "{{ a['b' + ",
                             "{% for m in messages %}"})
    CHECK(refused(broken, "cannot be read: line 1"));
}

TEST_CASE("Special tokens that a template reads are those of the tokenizer's configuration") {
  const std::string closing = looped("", "<|im_start|>{{ m.role }}\n" + kWords + "{{ eos_token }}\n{{ bos_token }}");
  CHECK(found(closing, R"({"eos_token": {"content": "<|im_end|>"}, "bos_token": null})") == kNone);
  CHECK(refused(closing, "<s>", R"({"eos_token": "<|im_end|>", "bos_token": "<s>"})"));
  CHECK(refused(closing, "reads bos_token, which", R"({"eos_token": "<|im_end|>"})"));
  CHECK(refused(looped("{{ image_token }}"), "reads image_token"));
  CHECK(found(looped("{% set image_token = '' %}{{ image_token }}")) == kNone);
}

TEST_CASE("The template is found in each of the files that hold it, and its absence is no error") {
  const fixture::Scratch none, in_json, named;
  CHECK(read_chat_template(none.path("."))->source.empty());
  CHECK(read_chat_template(none.path("."))->default_system == "You are a helpful assistant.");
  const auto with = [](const std::string& words) {
    return nlohmann::json(with_default("messages[0].role != 'system'", words)).dump();
  };
  in_json.write("chat_template.json", R"({"chat_template": )" + with("One.") + "}");
  CHECK(read_chat_template(in_json.path("."))->default_system == "One.");
  named.write("tokenizer_config.json",
              R"({"chat_template": [{"name": "tool", "template": "x"}, {"name": "default", "template": )" +
                  with("Two.") + "}]}");
  CHECK(read_chat_template(named.path("."))->default_system == "Two.");
  named.write("chat_template.json", R"({"chat_template": {"tool": "x"}})");
  CHECK(read_chat_template(named.path(".")).error().message.find("one named 'default'") != std::string::npos);
  named.write("chat_template.json", R"({"chat_template": "[INST]"})");
  CHECK(read_chat_template(named.path(".")).error().message.find("chat_template.json: key 'chat_template': the chat") !=
        std::string::npos);
  std::filesystem::remove(named.path("chat_template.json"));
  named.write("chat_template.jinja", "[INST] {{ m.content }}");
  const auto other = read_chat_template(named.path("."));
  REQUIRE_FALSE(other.ok());
  CHECK(other.error().message.find("chat_template.jinja") != std::string::npos);
  CHECK(other.error().code == ErrorCode::kInvalidArgument);
  named.write("chat_template.jinja", "\xFF");
  CHECK(read_chat_template(named.path(".")).error().message.find("not UTF-8 at byte 0") != std::string::npos);
}

}  // namespace
}  // namespace troupe
