#include <catch2/catch.hpp>

#include "tests/actors/data/parsed_record.h"

// What a record says in other places than those that are read: it is refused by name, never lost.

namespace troupe {
namespace {

using namespace testing;

TEST_CASE("Calls and thoughts beside a turn's words are refused when they hold something") {
  for (const std::string key : {"tool_calls", "function_call", "reasoning_content", "reasoning", "thinking", "thought",
                                "tools", "functions", "train_detail"}) {
    CHECK(says(marked("", ", \"" + key + "\": \"x\""), "turn 2: key '" + key + "' is not read"));
    CHECK(says(marked("", ", \"" + key + R"(": [{"name": "f"}])"), "turn 2: key '" + key + "'"));
    for (const std::string none : {"null", "\"\"", "[]", "{}", "[null]", "\"[]\"", R"({"a": [], "b": ""})"})
      CHECK(good(marked("", ", \"" + key + "\": " + none)).turns.size() == 2);
  }
  for (const std::string key : {"tool_calls", "function_call", "reasoning_content", "functions"})
    CHECK(says(marked("", "", "\"" + key + "\": [1], "), "key '" + key + "' is not read"));
  CHECK(good(marked("", "", R"("reasoning": "a label", )")).turns.size() == 2);
  for (const std::string none : {"false", "0", "\"None\"", "\"[ ]\""})
    CHECK(good(marked("", ", \"thinking\": " + none)).turns.size() == 2);
}

TEST_CASE("What holds nothing under a key that is refused is no reason to refuse it") {
  for (const std::string none : {R"("objects": {"ref": [], "bbox": []}, )", R"("tools": "[]", )", R"("tools": "{}", )",
                                 R"("objects": {"ref": [""], "bbox": [[]]}, )"})
    CHECK(good(marked("", "", none)).turns.size() == 2);
  CHECK(says(marked("", "", R"("objects": {"ref": ["a"], "bbox": []}, )"), "key 'objects'"));
  CHECK(says(marked("", "", R"("kto_tag": false, )"), "key 'kto_tag'"));
}

TEST_CASE("Two spellings of one thing may not differ") {
  CHECK(says(R"({"instruction": "q", "output": "A", "response": "B"})", "has both 'output' and 'response'"));
  CHECK(says(R"({"instruction": "p", "query": "q", "output": "A"})", "has both 'instruction' and 'query'"));
  CHECK(says(R"({"conversations": [1], "messages": [2]})", "has both 'conversations' and 'messages'"));
  CHECK(good(R"({"instruction": "q", "query": "q", "output": "A", "response": ""})").turns[1].text == "A");
  CHECK(good(R"({"instruction": "q", "output": "A", "messages": []})").turns[1].text == "A");
  CHECK(good(marked("", "", R"("conversations": null, )")).turns[1].text == "a");
}

TEST_CASE("Questions and answers in columns beside a list of turns are refused, unless the spec says where turns are") {
  for (const std::string key : {"instruction", "query", "input", "output", "response"}) {
    const std::string keys = "\"" + key + "\": \"x\", ";
    CHECK(says(marked("", "", keys), "has both 'messages' and '" + key + "'"));
    CHECK(good(marked("", "", keys), {{{"turns", "messages"}}, {}}).turns.size() == 2);
    CHECK(good(marked("", "", "\"" + key + "\": \"\", ")).turns.size() == 2);
  }
  CHECK(says(marked("", "", R"("history": [["x", "y"]], )"), "has both 'messages' and 'history'"));
  CHECK(good(marked("", "", R"("history": [], )")).turns.size() == 2);
  CHECK(says(marked("", "", R"("system": "s", )")
                 .replace(marked("", "", R"("system": "s", )").find("\"user\""), 6, "\"system\""),
             "has the key 'system' and turn 1 is the system's too"));
}

TEST_CASE("Columns beside a list of turns that say what a turn says, or no words, lose nothing") {
  CHECK(good(marked("", "", R"("instruction": "q", "response": "a", )")).turns.size() == 2);
  CHECK(good(marked("", "", R"("input": 0, "response": true, )")).turns.size() == 2);
  CHECK(
      good(
          R"({"system": "s", "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]})")
          .turns.size() == 3);
}

TEST_CASE("Words of a record in columns that no column reads are refused, unless the spec says what they are") {
  const std::string dolly = R"({"instruction": "q", "context": "c", "response": "a"})";
  CHECK(says(dolly, "key 'context' is not read: the spec's columns say what it is"));
  CHECK(good(dolly, {{{"input", "context"}}, {}}).turns[0].text == "q\nc");
  CHECK(good(dolly, {{{"ignored", "context"}}, {}}).turns[0].text == "q");
  CHECK(good(R"({"instruction": "q", "context": "", "response": "a"})").turns[0].text == "q");
  CHECK(good(marked("", "", R"("context": "c", )")).turns.size() == 2);
  CHECK(says(marked("", "", R"("system_prompt": "c", )"), "key 'system_prompt' is not read"));
}

TEST_CASE("Pictures as other programs write them into a question are refused in a record without any") {
  const auto asked = [](const std::string& words) { return R"({"instruction": ")" + words + R"(", "output": "a"})"; };
  CHECK(says(asked("Picture 1: <img>red.png</img> Colour?"), "has <img>...</img> in a question"));
  CHECK(says(asked("<ImageHere> Colour?"), "has <ImageHere> in a question"));
  CHECK(good(asked("What does <img src='a.png'> do?")).images.empty());
  CHECK(good(R"({"instruction": "q", "output": "<img>red.png</img>"})").images.empty());
}

TEST_CASE("An answer that preference data mark as not to be learned is refused") {
  CHECK(says(marked("", "", R"("label": false, )"), "key 'label' is false"));
  CHECK(good(marked("", "", R"("label": true, )")).turns.size() == 2);
  CHECK(good(marked("", "", R"("label": 0, )")).turns.size() == 2);
  CHECK(good(marked("", "", R"("label": false, )"), {{{"ignored", "label"}}, {}}).turns.size() == 2);
}

TEST_CASE("What counts for an answer is refused where it stands in the record") {
  CHECK(says(R"({"instruction": "q", "output": "a", "loss": 0})", "key 'loss' is '0' in the record"));
  for (const std::string value : {"false", "0", "0.5"})
    CHECK(says(marked("", "", "\"loss\": " + value + ", "),
               "key 'loss' is '" + value + "' in the record and is not read there"));
  for (const std::string value : {"null", "1", "true"})
    CHECK(good(marked("", "", "\"weight\": " + value + ", ")).turns[1].weight == 1);
  CHECK(good(marked("", "", R"("weight": 0.5, )"), {{{"record_weight", "weight"}}, {}}).turns[1].weight == 0.5F);
  CHECK(good(marked("", "", R"("weight": 0.5, )"), {{{"ignored", "weight"}}, {}}).turns[1].weight == 1);
}

TEST_CASE("Any column of a record may be left out but those of turns' words") {
  for (const char* column : {"turns", "images", "videos", "fps", "system", "id", "question", "input", "answer",
                             "history", "weight", "record_weight"}) {
    INFO(column);
    Record record;
    const RecordSpelling spelling{{{column, ""}}, {}};
    CHECK_FALSE(parse_record(marked("", R"(, "train": false)"), record, spelling).ok());
    CHECK_FALSE(parse_record(R"({"instruction": "", "output": ""})", record, spelling).ok());
    CHECK_FALSE(parse_record("{}", record, spelling).ok());
  }
}

TEST_CASE("A turn in both spellings must say the same in them") {
  CHECK(says(marked("", R"(, "from": "gpt", "value": "other")"), "turn 2: 'content' differs"));
  CHECK(says(marked("", R"(, "value": "other")"), "turn 2: 'value' differs"));
  CHECK(says(marked("", R"(, "from": "human", "value": "a")"), "turn 2 is by a user and by 'role': 'assistant'"));
  CHECK(good(marked("", R"(, "from": "gpt", "value": "a")")).turns[1].text == "a");
  CHECK(good(marked("", R"(, "from": null, "value": "")")).turns[1].text == "a");
  CHECK(good(marked("", R"(, "value": 0.7)")).turns[1].text == "a");
}

TEST_CASE("Keys that the spec ignores mean nothing, whatever they mean without it") {
  const auto ignoring = [](const std::string& keys) { return RecordSpelling{{{"ignored", keys}}, {}}; };
  const Record plain =
      good(R"({"image": "a.png", "system": "S", "query": "q", "response": "a"})", ignoring("image, system"));
  CHECK(plain.images.empty());
  CHECK(plain.turns.size() == 2);
  CHECK(good(R"({"content": "pic.jpg", "query": "q", "response": "a"})", ignoring("content, from")).turns.size() == 2);
  CHECK(good(marked("", "", R"("content": "pic.jpg", )"), ignoring("content")).turns[1].text == "a");
  CHECK(good(R"({"loss": 2.31, "query": "q", "response": "a"})", ignoring("loss")).turns[1].weight == 1);
  CHECK(good(marked("", R"(, "loss": false)"), ignoring("loss")).turns[1].weight == 0);  // what turns say is read
  CHECK(good(R"({"messages": [], "conversations": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}]})",
             ignoring("messages"))
            .turns.size() == 2);
}

TEST_CASE("What a record has of the spec's columns, and of usual keys that a column puts out of use") {
  const auto named = [](const std::string& json, std::map<std::string, std::string> columns) {
    const Record record = good(json, {std::move(columns), {}});
    return std::pair(record.named.held, record.named.usual);
  };
  const std::string pair = R"("query": "q", "response": "a"})";
  CHECK(named(R"({"sys": "S", "system": "T", )" + pair, {{"system", "sys"}}) == std::pair(1u, 0u));
  CHECK(named(R"({"system": "T", )" + pair, {{"system", "sys"}}) == std::pair(0u, 1u));
  CHECK(named(R"({"system": "T", "sys": null, )" + pair, {{"ignored", "other"}, {"system", "sys"}}) ==
        std::pair(0u, 2u));
  CHECK(named(R"({"system": "T", )" + pair, {{"ignored", "system"}, {"system", "sys"}}) == std::pair(0u, 0u));
  CHECK(named(R"({"system": "T", )" + pair, {{"system", ""}}) == std::pair(0u, 1u));
  CHECK(named(marked("", R"(, "loss": false)"), {{"weight", "w"}}) == std::pair(0u, 1u));
  CHECK(named(marked("", R"(, "w": 0)"), {{"weight", "w"}}) == std::pair(1u, 0u));
  CHECK(named(marked("", "", R"("from": "x", )"), {{"role", "role"}, {"content", "content"}}) == std::pair(3u, 0u));
  CHECK(says(marked("", "", R"("rejected_answer": "b", )"), "of preference data"));
  CHECK(says(marked("", R"(, "step_loss_mask": 0)"), "'step_loss_mask' is '0'"));
  const Record picture = good(R"({"images": [{"bytes": "", "path": "a.png"}], "query": "<image>", "response": "a"})");
  CHECK(picture.images[0].path == "a.png");
}

}  // namespace
}  // namespace troupe
