#include "actors/data/record.h"

#include <catch2/catch.hpp>
#include <limits>
#include <nlohmann/json.hpp>

#include "actors/data/placeholders.h"
#include "tests/actors/data/parsed_record.h"

namespace troupe {
namespace {

using namespace testing;

std::string with_turns(const std::string& turns) { return R"({"id": "r", "conversations": [)" + turns + "]}"; }
std::string with_key(const std::string& key) {
  return "{" + key + R"("conversations": [{"from": "human", "value": "x"}, {"from": "gpt", "value": "y"}]})";
}
std::string with_image(const std::string& key) {
  return "{" + key + R"(, "conversations": [{"from": "human", "value": "<image>\nx"}, {"from": "gpt", "value": "y"}]})";
}

TEST_CASE("D19: both spellings of turns give the same record") {
  const auto llava = good(
      R"({"id": 7, "conversations": [{"from": "system", "value": "s"}, {"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}]})");
  const auto messages = good(
      R"({"id": "7", "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]})");
  const auto column = good(
      R"({"id": "7", "system": "s", "messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]})");
  for (const auto* record : {&llava, &messages, &column}) {
    CHECK(record->id == "7");
    REQUIRE(record->turns.size() == 3);
    CHECK(record->turns[0].role == Role::kSystem);
    CHECK(record->turns[1].role == Role::kUser);
    CHECK(record->turns[2].role == Role::kAssistant);
    CHECK(record->turns[2].text == "a");
  }
}

TEST_CASE("An answer's mark says what it counts in the loss, in each spelling; other marks are refused") {
  const auto weight = [](const std::string& mark) {
    return good(with_turns(R"({"from": "human", "value": "q"}, {"from": "gpt", "value": "a", )" + mark + "}"))
        .turns[1]
        .weight;
  };
  for (const char* mark : {R"("loss": false)", R"("loss_scale": 0.0)", R"("weight": 0)", R"("loss": 0, "weight": 0)"})
    CHECK(weight(mark) == 0);
  for (const char* mark : {R"("loss": true)", R"("loss_scale": 1.0)", R"("weight": 1)", R"("loss": null)", R"("x": 0)"})
    CHECK(weight(mark) == 1);
  CHECK(weight(R"("loss_scale": 0.5)") == 0.5F);
  CHECK(weight(R"("loss_scale": 0.5, "weight": 0.5)") == 0.5F);
  CHECK(weight(R"("weight": 1000)") == 1000);
  CHECK(weight(R"("weight": 1e-300)") > 0);
  const auto marked = [](const std::string& question, const std::string& answer) {
    return with_turns(R"({"from": "human", "value": "q")" + question + R"(}, {"from": "gpt", "value": "a")" + answer +
                      "}");
  };
  CHECK(says(marked("", R"(, "loss_scale": -0.5)"), "turn 2: 'loss_scale' is '-0.5'"));
  CHECK(says(marked("", R"(, "loss_scale": 1001)"), "numbers up to 1000"));
  CHECK(says(marked("", R"(, "loss_scale": 1e999)"), "1e999"));
  CHECK(says(marked("", R"(, "loss": "false")"), "'loss'"));
  CHECK(says(marked("", R"(, "loss": true, "weight": 0)"), "'loss' and 'weight' differ"));
  CHECK(says(marked(R"(, "loss": true)", ""), "only answers are learned"));
  CHECK(says(marked(R"(, "loss": 0.25)", ""), "only answers are learned"));
  CHECK(good(marked(R"(, "loss": false)", "")).turns.size() == 2);
}

TEST_CASE("A record's own weight, under the key that the spec names, multiplies those of its answers") {
  const std::string json =
      R"({"importance": 0.5, "messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a", "weight": 3},
          {"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]})";
  RecordSpelling spelling;
  Record plain, weighted;
  REQUIRE(parse_record(json, plain, spelling).ok());
  CHECK(plain.turns[3].weight == 1);
  spelling.columns["record_weight"] = "importance";
  REQUIRE(parse_record(json, weighted, spelling).ok());
  CHECK(weighted.turns[1].weight == 1.5F);
  CHECK(weighted.turns[3].weight == 0.5F);
  const Status refused = parse_record(R"({"importance": "high", "query": "q", "response": "a"})", plain, spelling);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().message.find("key 'importance' is '\"high\"'") != std::string::npos);
}

TEST_CASE("A weight that is not 0 does not become 0 by a record's weight, nor more than may be written") {
  RecordSpelling spelling;
  spelling.columns["record_weight"] = "importance";
  const auto parse = [&](const std::string& turn, const std::string& all, Record& record) {
    return parse_record(
        R"({"importance": )" + all +
            R"(, "messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a", "weight": )" +
            turn + "}]}",
        record, spelling);
  };
  const auto weight = [&](const std::string& turn, const std::string& all) {
    Record record;
    REQUIRE(parse(turn, all, record).ok());
    return record.turns[1].weight;
  };
  CHECK(weight("1e-30", "1e-30") == std::numeric_limits<float>::min());
  CHECK(weight("0", "1e-30") == 0);
  CHECK(weight("1e-30", "0") == 0);
  CHECK(weight("100", "10") == 1000);
  Record record;
  const Status refused = parse("100", "11", record);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().message.starts_with("key 'importance' is '11'"));
  CHECK(refused.error().message.find("1100") != std::string::npos);
}

TEST_CASE("A row whose text or key is not UTF-8 is refused by the record's own id") {
  const auto refusal = [](nlohmann::json row, const std::string& id) {
    Record record;
    const Status refused = parse_row(row, record);
    REQUIRE_FALSE(refused.ok());
    CHECK(record.id == id);
    return refused.error().message;
  };
  CHECK(refusal({{"id", "r7"}, {"query", "Gr\xFC\xDF"}, {"response", "a"}}, "r7") ==
        "key 'query' holds text that is not UTF-8");
  CHECK(refusal({{"id", "\xFC"}, {"query", "q"}, {"response", "a"}}, "") == "key 'id' holds text that is not UTF-8");
  CHECK(refusal({{"id", "r7"}, {"query", "q"}, {"response", "a"}, {"", "\xFC"}}, "r7") ==
        "key '' holds text that is not UTF-8");
  CHECK(refusal({{"id", "r7"}, {"query", "q"}, {"response", "a"}, {"x", {{"a\xFC", 1}}}}, "r7") ==
        "key 'x.a\xEF\xBF\xBD' is not UTF-8");
}

TEST_CASE("An id in bytes is text where it is UTF-8, else there is none") {
  const auto id = [](std::vector<uint8_t> bytes) {
    Record record;
    REQUIRE(
        parse_row({{"id", nlohmann::json::binary(std::move(bytes))}, {"query", "q"}, {"response", "a"}}, record).ok());
    return record.id;
  };
  CHECK(id({'r', '7'}) == "r7");
  CHECK(id({0xFC, 'x'}).empty());
}

TEST_CASE("D19: tools' turns stand between answers, any number of them") {
  const std::string q = R"({"role": "user", "content": "q"})", a = R"({"role": "assistant", "content": "a"})",
                    t = R"({"role": "tool", "content": "t"})";
  const auto of = [](const std::string& turns) { return "{\"messages\": [" + turns + "]}"; };
  const auto record = good(of(q + "," + a + "," + t + "," + t + "," + a + "," + q + "," + a));
  REQUIRE(record.turns.size() == 7);
  CHECK(record.turns[3].role == Role::kTool);
  CHECK(says(of(t + "," + a), "starts with a tool's turn"));
  CHECK(says(of(q + "," + t + "," + a), "tool's turn behind a question"));
  CHECK(says(of(q + "," + a + "," + t + "," + q + "," + a), "question behind a tool's turn"));
  CHECK(says(of(q + "," + a + "," + t), "ends with a tool's turn"));
}

TEST_CASE("D02, D03: one image as a string, as a list and under the alias are the same") {
  for (const char* key :
       {R"("image": "a.png")", R"("image": ["a.png"])", R"("images": ["a.png"])", R"("images": "a.png")",
        R"("image": "a.png", "images": "a.png")", R"("image": "a.png", "images": ["a.png"])"}) {
    const auto images = good(with_image(key)).images;
    REQUIRE(images.size() == 1);
    CHECK(images[0].path == "a.png");
  }
  CHECK(says(with_image(R"("image": "a.png", "images": ["b.png"])"), "differ"));
  CHECK(says(with_image(R"("image": [["a.png"]])"), "'image'"));
  CHECK(says(with_image(R"("image": 3)"), "'image'"));
  CHECK(says(with_image(R"("image": [""])"), "empty path"));
}

TEST_CASE("D03: pictures under a key that is not read are refused by the key's name") {
  CHECK(says(with_key(R"("image_list": ["a.jpg"], )"), "'image_list'"));
  CHECK(says(with_key(R"("img": "x/a.PNG", )"), "'img'"));
  CHECK(says(with_key(R"("clip": "x/a.MP4", )"), "'clip' names videos"));
  CHECK(good(with_key(R"("source": "vqa", "video": null, "width": 3, )")).images.empty());
}

TEST_CASE("D04: the four ways of writing a record without pictures are one") {
  for (const char* key : {"", R"("image": "", )", R"("image": null, )", R"("image": [], )", R"("images": [], )"})
    CHECK(good(with_key(key)).images.empty());
}

TEST_CASE("D01: a wrong number of placeholders is refused with both counts") {
  CHECK(says(
      R"({"image": "a.png", "conversations": [{"from": "human", "value": "<image><image>"}, {"from": "gpt", "value": "y"}]})",
      "2 <image> placeholders in the user turns, but 1 image"));
  CHECK(says(R"({"image": "a.png", "conversations": [{"from": "human", "value": "x"}, {"from": "gpt", "value": "y"}]})",
             "0 <image> placeholders in the user turns, but 1 image"));
  CHECK(says(R"({"conversations": [{"from": "human", "value": "<image>"}, {"from": "gpt", "value": "y"}]})",
             "1 <image> placeholder in the user turns, but 0 images"));
}

TEST_CASE("D24: the placeholder's word in an answer or a system turn is not counted") {
  const auto record = good(
      R"({"conversations": [{"from": "system", "value": "<image>"}, {"from": "human", "value": "x"}, {"from": "gpt", "value": "<image>"}]})");
  CHECK(media_in_order(record.turns).empty());
}

TEST_CASE("D19: odd speakers and orders are refused by name") {
  const std::string q = R"({"from": "human", "value": "q"})", a = R"({"from": "gpt", "value": "a"})",
                    s = R"({"from": "system", "value": "s"})";
  CHECK(says(with_turns(a + "," + q), "starts with an answer"));
  CHECK(says(with_turns(q + "," + q + "," + a), "two user turns in a row"));
  CHECK(says(with_turns(q + "," + a + "," + a), "two assistant turns in a row"));
  CHECK(says(with_turns(q + "," + s + "," + a), "system turn that is not the first"));
  CHECK(says(R"({"system": "other", "conversations": [)" + s + "," + q + "," + a + "]}",
             "has the key 'system' and turn 1 is the system's too"));
  CHECK(says(with_turns(q), "no answer"));
  CHECK(says(with_turns(s), "no turn besides"));
  CHECK(says(with_turns(q + R"(, {"from": "bot", "value": "a"})"), "'bot'"));
  CHECK(says(with_turns(q + R"(, {"value": "a"})"), "turn 2 has no 'from'"));
  CHECK(says(with_turns(q + R"(, {"from": "gpt"})"), "turn 2 has no 'value'"));
  CHECK(says(with_turns(q + R"(, {"from": "gpt", "value": null})"), "'value' is null; a string"));
}

TEST_CASE("D19: who speaks or where the words are in another word is refused with the key of the spec that names it") {
  const std::string turn = R"({"from": "human", "value": "q"}, )";
  CHECK(says(with_turns(turn + R"({"from": "bot", "value": "a"})"), "the spec's roles, which say who others are"));
  CHECK(says(with_turns(turn + R"({"from": "gpt", "text": "a"})"),
             "has no 'value'; its keys: 'from, text'; valid: columns: {content: KEY} in the spec"));
  CHECK(says(with_turns(turn + R"({"speaker": "gpt", "value": "a"})"),
             "has no 'from'; its keys: 'speaker, value'; valid: columns: {role: KEY} in the spec"));
  CHECK(says(with_turns(turn + R"({"from": "gpt", "value": []})"), "'value' is an empty list; a string"));
  CHECK(says(R"({"prompt": "q", "completion": "a"})",
             "its keys: 'completion, prompt'; valid: the spec's columns, which say what others hold: {turns: KEY}"));
  CHECK(says(R"({"a": {"file_name": "a.json"}, "b": {"hf_hub_url": "x/y"}})", "valid: datasets: [NAMES] beside"));
  CHECK(says(R"({"output": "a"})", "has no question; its keys: 'output'; valid: columns: {question: KEY}"));
  CHECK(says(R"({"instruction": "", "output": "a"})", "has no question; key 'instruction' is empty"));
  CHECK(says(R"({"messages": [{"role": "user", "content": "q"}], "chosen": "a", "rejected": "b"})",
             "'chosen' is of preference data"));
}

TEST_CASE("D20: conversations that are empty, null or missing are refused by name") {
  CHECK(says(R"({"conversations": []})", "'conversations' is empty"));
  CHECK(says(R"({"messages": null})", "'messages' is empty"));
  CHECK(says(R"({"id": "x"})", "neither"));
  CHECK(says(R"({"conversations": "text"})", "not a list"));
  CHECK(good(with_turns(R"({"from": "human", "value": "q"}, {"from": "gpt", "value": ""})")).turns[1].text.empty());
}

TEST_CASE("A record that is nested too deep, or has a key twice, is refused") {
  const std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
  CHECK(says(R"({"z": )" + deep + R"(, "conversations": []})", "is nested deeper than 512 levels"));
  CHECK(says(R"({"id": "a", "conversations": [], "id": "b"})", "has the key 'id' twice"));
}

TEST_CASE(
    "What is no JSON object is refused, a lone surrogate and a broken UTF-8 byte included, and the id is kept when "
    "there is one") {
  CHECK(says("[1]", "not an object"));
  CHECK(says(R"({"id": )", "not valid JSON"));
  CHECK(says(R"({"id": "\ud800"})", "not valid JSON"));
  CHECK(says("{\"id\": \"\xFF\"}", "not valid JSON"));
  Record record;
  CHECK_FALSE(parse_record(R"({"id": "kept", "conversations": []})", record).ok());
  CHECK(record.id == "kept");
}

}  // namespace
}  // namespace troupe
