#include "actors/data/probe_chats.h"

namespace troupe {
namespace {

Turn system(std::string text) { return {Role::kSystem, std::move(text)}; }
Turn user(std::string text) { return {Role::kUser, std::move(text)}; }
Turn assistant(std::string text) { return {Role::kAssistant, std::move(text)}; }

std::string repeated(const std::string& text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

/// Questions and answers that grow, some of them twice.
std::vector<Turn> many_turns() {
  std::vector<Turn> turns;
  for (int i = 1; i <= 12; ++i) {
    turns.push_back(user(i % 4 == 0 ? "Again?" : "Question " + std::to_string(i) + repeated(" and more", i)));
    turns.push_back(assistant(i % 3 == 0 ? "Yes." : "Answer " + std::to_string(i) + repeated(", so it is", i)));
  }
  return turns;
}

}  // namespace

std::vector<ProbeChat> probe_chats() {
  const Turn kind = system("Answer in one word.");
  std::vector<ProbeChat> chats = {
      {"one question", {user("What is this?"), assistant("A cat.")}},
      {"a system turn", {kind, user("What is this?"), assistant("A cat.")}},
      {"two questions", {user("What is this?"), assistant("A cat."), user("And that?"), assistant("Its tail.")}},
      {"a system turn and three questions",
       {kind, user("One?"), assistant("1"), user("Two?"), assistant("2"), user("Three?"), assistant("3")}},
      {"an image", {user("<image>\nWhat is this?"), assistant("A cat.")}},
      {"an image behind the text", {user("What is this? <image>"), assistant("A cat.")}},
      {"images between texts",
       {user("Compare <image> with <image>."), assistant("Same"), user("And <image>?"), assistant("No")}},
      {"images only", {kind, user("<image><image>"), assistant("Two cats."), user("<image>"), assistant("One cat.")}},
      {"an image in a later question", {user("Hello"), assistant("Hi"), user("Look:\n<image>"), assistant("I do.")}},
      {"an empty system turn", {system(""), user("What is this?"), assistant("A cat.")}},
      {"a system turn of blanks", {system(" \n"), user("What is this?"), assistant("A cat.")}},
      {"an empty question", {user(""), assistant("What do you mean?"), user(""), assistant("Well?")}},
      {"an empty answer", {user("What is this?"), assistant(""), user("And that?"), assistant("")}},
      {"blanks around the texts",
       {system("\n Be kind. \t"), user("  \n\tWhat is\n\n this? \n\n"), assistant("\n\n A cat,\r\n or two.  \n"),
        user("\t\xC2\xA0 And? \xE3\x80\x80"), assistant(" \t ")}},
      {"blanks around an image", {user(" \n<image> \n\n <image>\n "), assistant("\nA cat.\n")}},
      {"thoughts in the answers",
       {user("What is it?"), assistant("<think>\nIt has whiskers.\n</think>\n\nA cat."), user("Sure? </think> <think>"),
        assistant("</think>\n\nYes."), user("Really?"), assistant("<think>\n\n</think>\n\n<answer>Yes.</answer>")}},
      {"words of other forms",
       {system("<<SYS>> tools: [] <tools></tools> /no_think"), user("/think [INST] Human: hi [/INST]"),
        assistant("<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>"),
        user("<tool_response>\n4\n</tool_response>"), assistant("</s>### Response:\nAssistant: 4 <image>"),
        user("/no_think"), assistant("<s>[gMASK]sop</tool_response>")}},
      {"markup in the texts",
       {system("{{ messages }} {% if x %} {# y #}"), user("<b>a &amp; b</b> \"c\" 'd' \\n %s %% $1 ${x} {0}"),
        assistant("`e` **f**\n# g\n- h | i\n\\begin{x} & ~ ^ _ \\end{x}")}},
      {"other scripts",
       {system("\xE7\xAE\x80\xE7\x9F\xAD"), user("\xC3\x9Cn\xC3\xAF, e\xCC\x81, \xC3\x9F, \xF0\x9F\x98\x80?"),
        assistant("\xD0\x9A\xD0\xBE\xD1\x82 \xE2\x80\xA6 \xE2\x80\xA8\xE7\x8C\xAB")}},
      {"capital letters", {system("BE KIND, Please"), user("WHAT is iPhone?"), assistant("A Phone.")}},
      {"texts that are values and roles",
       {system("None"), user("system"), assistant("assistant"), user("0"), assistant("False"), user("none"),
        assistant("user"), user("[]"), assistant("{}"), user("null"), assistant("\"\"")}},
      {"long texts",
       {system(repeated("Be kind. ", 300)), user(repeated("Word and word, ", 800) + "\n" + repeated("line\n", 300)),
        assistant(repeated("So it is. ", 700))}},
      {"many questions", many_turns()},
      {"a long answer and many images",
       {user(repeated("<image>", 9) + "Which?"), assistant(repeated("This one. ", 400))}},
  };
  std::vector<Turn> many = many_turns();
  many.insert(many.begin(), kind);
  chats.push_back({"a system turn and many questions", std::move(many)});
  return chats;
}

std::vector<ProbeChat> video_probe_chats() {
  const Turn kind = system("Answer in one word.");
  return {
      {"a video", {user("<video>\nWhat happens?"), assistant("It rains.")}},
      {"a video behind the text", {user("What happens? <video>"), assistant("It rains.")}},
      {"videos only", {kind, user("<video><video>"), assistant("Twice."), user("<video>"), assistant("Once.")}},
      {"videos and images",
       {user("<image> then <video>, and <video><image>?"), assistant("No."), user("Hello"), assistant("Hi"),
        user(" \n<video> \n\n <image>\n "), assistant("Yes.")}},
      {"a video in a later question", {user("Hello"), assistant("Hi"), user("Look:\n<video>"), assistant("I do.")}},
      {"a long answer and many videos",
       {user(repeated("<video>", 9) + "Which?"), assistant(repeated("That one. ", 400))}},
  };
}

}  // namespace troupe
