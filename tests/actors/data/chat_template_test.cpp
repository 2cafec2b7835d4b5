#include "actors/data/chat_template.h"

#include <catch2/catch.hpp>

#include "tests/actors/data/fixture.h"

namespace troupe {
namespace {

constexpr const char* kNone = "no default";

/// The default system turn, kNone, or why the template is refused.
std::string found(const std::string& jinja) {
  const auto system = default_system_of(jinja);
  if (!system.ok()) return "refused: " + system.error().message;
  return system->value_or(kNone);
}

bool refused(const std::string& jinja, const std::string& words) {
  const std::string answer = found(jinja);
  INFO(answer);
  return answer.starts_with("refused: ") && answer.find(words) != std::string::npos;
}

const std::string kTurn = "{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>\\n' }}";

std::string looped(const std::string& before, const std::string& turn = kTurn) {
  return before + "{% for m in messages %}" + turn + "{% endfor %}";
}

TEST_CASE("The default system turn is what the template states, and none when it states none") {
  CHECK(found(looped("")) == kNone);
  CHECK(found(looped("{% if messages[0].role != 'system' %}<|im_start|>system\nBe kind.<|im_end|>\n{% endif %}")) ==
        "Be kind.");
  CHECK(found(looped("{%- if messages[0]['role'] == 'system' %}\n    {{- '<|im_start|>system\\n' + "
                     "messages[0]['content'] + '<|im_end|>\\n' }}\n{%- else %}\n    {{- '<|im_start|>system\\nYou are "
                     "Qwen.<|im_end|>\\n' }}\n{%- endif %}\n")) == "You are Qwen.");
  CHECK(found(looped("{{ \"<|im_start|>system\\nIt's me.<|im_end|>\\n\" }}")) == "It's me.");
  CHECK(found(looped("<|im_start|>system\n<|im_end|>\n")) == "");
}

TEST_CASE("Each way of writing a turn of the form is understood") {
  CHECK(found("{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}") == kNone);
  CHECK(found("{# a note #}{% for m in messages %}\n  {% if m.role == 'user' %}\n<|im_start|>user\n{{ m.content "
              "}}<|im_end|>\n  {% else %}\n<|im_start|>assistant\n{{ m.content }}<|im_end|>\n  {% endif %}\n{% endfor "
              "%}") == kNone);
  CHECK(found(looped("",
                     "{{ '<|im_start|>' + m.role }}{% if m.content %}{{ '\\n' + m.content }}{% endif %}{{ "
                     "'<|im_end|>\\n' }}")) == kNone);
  CHECK(found(looped("",
                     "<|im_start|>{{ m.role }}\n{% if m.image %}<|vision_start|><|image_pad|><|vision_end|>{% "
                     "endif %}{{ m.content }}<|im_end|>\n")) == kNone);
}

TEST_CASE("Templates that lay turns out in another way are refused with what differs") {
  CHECK(refused("[INST] {{ m.content }} [/INST]", "'[INST] ' before the first"));
  CHECK(refused("", "no turn"));
  CHECK(refused(looped("<s>"), "'<s>' before the first"));
  CHECK(refused(looped("{{ bos_token }}"), "'bos_token'"));
  CHECK(refused(looped("", "<|im_start|>{{ m.role }}\n{{ m.content }}\n<|im_end|>\n"), "newline between"));
  CHECK(refused(looped("", "<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>"), "closes a turn"));
  CHECK(refused(looped("", "<|im_start|>{{ m.role }}\n{{ m.content }}"), "closes no turn"));
  CHECK(
      refused(looped("", "<|im_start|>{{ m.role }}: {{ m.content }}<|im_end|>\n"), "not with its role and a newline"));
  CHECK(refused(looped("", "<|im_start|>{{ m.name }}\n{{ m.content }}<|im_end|>\n"), "'m.name'"));
  CHECK(refused(looped("", "<|im_start|>human\n{{ m.content }}<|im_end|>\n"), "human"));
  CHECK(refused(looped("", "<|im_start|>{{ m.role }}\n{{ m.content | trim }}<|im_end|>\n"), "changes what turns say"));
  CHECK(refused(looped("", "<|im_start|>{{ m.role }}\n{{ m.content.strip() }}<|im_end|>\n"), "changes what turns say"));
  CHECK(refused(looped("",
                       "<|im_start|>{{ m.role }}\n{% if loop.last %}<think>\n\n</think>{% endif %}{{ m.content "
                       "}}<|im_end|>\n"),
                "'<think>'"));
  CHECK(refused(looped("{{ '<|im_start|>system\\n' + words + '<|im_end|>\\n' }}"), "'words', which is computed"));
  CHECK(refused(looped("<|im_start|>system\nA<|im_end|>\n<|im_start|>system\nB<|im_end|>\n"), "two default"));
  CHECK(refused(looped("", "<|im_start|>{{ m.role }}\n<image><|image_pad|>{{ m.content }}<|im_end|>\n"), "an image"));
}

TEST_CASE("A template that ends inside a block is read to its end") {
  for (const char* broken :
       {"{", "{{", "{%", "{{ 'a", "{% if", "<|im_start|>{{ m['role'", "{#", "{{ '\\", "{{ a['b' + "})
    CHECK(refused(broken, ""));
}

TEST_CASE("The template is found in each of the files that hold it, and its absence is no error") {
  const fixture::Scratch none, in_json, named;
  CHECK(read_chat_template(none.path("."))->source.empty());
  CHECK(read_chat_template(none.path("."))->default_system == "You are a helpful assistant.");
  in_json.write("chat_template.json", R"({"chat_template": "<|im_start|>system\nOne.<|im_end|>\n"})");
  CHECK(read_chat_template(in_json.path("."))->default_system == "One.");
  named.write(
      "tokenizer_config.json",
      R"({"chat_template": [{"name": "tool", "template": "x"}, {"name": "default", "template": "<|im_start|>system\nTwo.<|im_end|>\n"}]})");
  CHECK(read_chat_template(named.path("."))->default_system == "Two.");
  named.write("chat_template.jinja", "[INST] {{ m.content }}");
  const auto other = read_chat_template(named.path("."));
  REQUIRE_FALSE(other.ok());
  CHECK(other.error().message.find("chat_template.jinja") != std::string::npos);
}

}  // namespace
}  // namespace troupe
