#include "actors/data/index_builder.h"

#include <catch2/catch.hpp>
#include <set>

#include "actors/data/block_reader.h"
#include "tests/actors/data/index_data.h"

namespace troupe {
namespace {

using fixture::record;
using Data = fixture::IndexData;

TEST_CASE("The index holds offsets, grids, token and supervised counts of every record") {
  Data data;
  const std::string first = record("a", "rgb.png"), second = record("b");
  const auto index = data.index({data.source(first + "\n" + second + "\n")});
  REQUIRE(index.samples.size() == 2);
  CHECK(index.bad.empty());
  CHECK(index.total_records == 2);
  const auto &a = index.samples[0], &b = index.samples[1];
  CHECK(a.id == "a");
  REQUIRE(a.images.size() == 1);
  CHECK(a.images[0].h == 4);  // 48 x 32 pixels lie below the least area: scaled up to 56 x 84
  CHECK(a.images[0].w == 6);
  CHECK(b.images.empty());
  CHECK(b.byte_offset == static_cast<int64_t>(first.size()) + 1);
  CHECK(b.byte_length == static_cast<int64_t>(second.size()));
  CHECK(a.supervised == b.supervised);
  CHECK(a.supervised > 0);
  CHECK(a.tokens > b.tokens + 6);
}

TEST_CASE("D21, D23: array, lines, byte-order mark and CRLF give the same samples") {
  Data data;
  const std::string a = record("a", "rgb.png"), b = record("b");
  const auto plain = data.index({data.source(a + "\n" + b + "\n")});
  const auto marked = data.index({data.source("\xEF\xBB\xBF" + a + "\r\n" + b + "\r\n\r\n", "marked.json")});
  const auto array = data.index({data.source("[" + a + ",\n" + b + "]", "array.jsonl")});
  for (const auto* other : {&marked, &array}) {
    REQUIRE(other->samples.size() == 2);
    for (size_t i = 0; i < 2; ++i) {
      CHECK(other->samples[i].tokens == plain.samples[i].tokens);
      CHECK(other->samples[i].id == plain.samples[i].id);
    }
  }
}

TEST_CASE("D01, D09, D11: every bad record is listed with file, line, id and reason, and the good ones stay") {
  Data data;
  data.scratch.write("pictures/zero.jpg", "");
  data.scratch.write("pictures/photo.jpg", std::string("\0\0\0\x1C"
                                                       "ftypheic",
                                                       12));
  const std::string file =
      data.source(record("good") + "\n" + record("gone", "nowhere.png") + "\n" + record("zero", "zero.jpg") + "\n" +
                  record("heic", "photo.jpg") + "\n" + R"({"id": "count", "image": "rgb.png", "conversations": [)" +
                  R"({"from": "human", "value": "x"}, {"from": "gpt", "value": "y"}]})" + "\n{\"id\": \"cut\", \n" +
                  record("url", "http://x/a.png") + "\n");
  const auto index = data.index({file});
  CHECK(index.samples.size() == 1);
  REQUIRE(index.bad.size() == 6);
  const std::vector<std::string> ids{"gone", "zero", "heic", "count", "records.jsonl:6", "url"};
  const std::vector<std::string> reasons{"nowhere.png",    "0 bytes",
                                         "a HEIC",         "0 <image> placeholders in the user turns, but 1 image",
                                         "not valid JSON", "URL"};
  for (size_t i = 0; i < 6; ++i) {
    CHECK(index.bad[i].file == file);
    CHECK(index.bad[i].line == static_cast<int64_t>(i) + 2);
    CHECK(index.bad[i].id == ids[i]);
    INFO(index.bad[i].reason);
    CHECK(index.bad[i].reason.find(reasons[i]) != std::string::npos);
  }
}

/// Writes the form, but for what stands in `words` of a turn's text `t`.
std::string template_with(const std::string& words) {
  return "{% for m in messages %}<|im_start|>{{ m.role }}\n{% set t %}{% if m.content is string %}{{ m.content }}{% "
         "else %}{% for p in m.content %}{{ p.text if p.type == 'text' else "
         "'<|vision_start|><|image_pad|><|vision_end|>' }}{% endfor %}{% endif %}{% endset %}" +
         words + "<|im_end|>\n{% endfor %}";
}

std::string long_record(const std::string& id, int questions) {
  std::string turns;
  for (int i = 0; i < questions; ++i)
    turns += std::string(i > 0 ? ", " : "") + R"({"role": "user", "content": "Why?"}, {"role": "assistant", )" +
             R"("content": "So."})";
  return R"({"id": ")" + id + R"(", "messages": [)" + turns + "]}";
}

TEST_CASE("A record that the folder's chat template writes in another way than the form is a bad record") {
  Data data;
  const std::string records = record("plain") + "\n" + record("word", "", "What is a walrus?") + "\n" +
                              record("seen", "rgb.png", "Is it a walrus?") + "\n" + long_record("short", 13) + "\n" +
                              long_record("long", 14) + "\n" + record("case", "", "\xC3\x9C?") + "\n";
  const std::string file = data.source(records);
  CHECK(data.index({file}).bad.empty());
  data.write_template(template_with(
      "{{ t | replace('walrus', 'seal') if loop.index < 27 else t ~ '!' }}{% if t | length == 2 and '?' in t "
      "and t | lower == 'x' %}{% endif %}"));
  const auto index = data.index({file});
  CHECK(index.samples.size() == 2);
  REQUIRE(index.bad.size() == 4);
  const std::vector<std::string> ids{"word", "seen", "long", "case"};
  const std::vector<int64_t> lines{2, 3, 5, 6};
  const std::vector<std::string> reasons{
      "the chat template writes it as '...>user\\nWhat is a seal?", "Is it a seal?", "Why?!<|im_end|>",
      "the chat template has what is not understood, met in it: line 2: upper and lower case"};
  for (size_t i = 0; i < 4; ++i) {
    CHECK(index.bad[i].file == file);
    CHECK(index.bad[i].id == ids[i]);
    CHECK(index.bad[i].line == lines[i]);
    INFO(index.bad[i].reason);
    CHECK(index.bad[i].reason.find(reasons[i]) != std::string::npos);
  }
}

TEST_CASE("Answers that are not learned and long texts are written as the template writes them") {
  Data data;
  data.write_template(template_with("{{ t }}"));
  data.spec.max_sample_tokens = 0;
  const std::string words(400'000, 'w');
  const auto index = data.index(
      {data.source(R"({"messages": [{"role": "user", "content": ")" + words +
                   R"("}, {"role": "assistant", "content": "No", "loss": false}, {"role": "user", "content": "?"}, )" +
                   R"({"role": "assistant", "content": ""}]})" + "\n")});
  INFO((index.bad.empty() ? "" : index.bad[0].reason));
  CHECK(index.samples.size() == 1);
}

TEST_CASE("D09: backslashes are read as slashes when no file has the name as written") {
  Data data;
  data.scratch.write("pictures/sub/a.png", fixture::contents(fixture::path("pictures/rgb.png")));
  CHECK(data.index({data.source(record("a", "sub\\\\a.png"))}).samples.size() == 1);
  CHECK(data.index({data.source(record("a", "sub\\\\b.png"))}).bad.size() == 1);
}

TEST_CASE("D25: a byte that is no UTF-8 is reported with its line") {
  Data data;
  const auto index = data.index({data.source(record("a") + "\n" + record("b", "", "bad \xFF byte") + "\n")});
  REQUIRE(index.bad.size() == 1);
  CHECK(index.bad[0].line == 2);
}

TEST_CASE("D08: samples that are too long are reported, skipped or lose text, but never half an image") {
  Data data;
  std::string words = "word";
  for (int i = 0; i < 200; ++i) words += " word";
  const std::string long_text = record("long", "rgb.png", words), short_text = record("short");
  const std::string file = data.source(short_text + "\n" + long_text + "\n");
  data.spec.max_sample_tokens = 120;
  data.spec.too_long = TooLong::kFail;
  auto index = data.index({file});
  REQUIRE(index.bad.size() == 1);
  CHECK(index.bad[0].reason.find("120") != std::string::npos);
  data.spec.too_long = TooLong::kSkip;
  index = data.index({file});
  CHECK(index.bad.empty());
  CHECK(index.samples.size() == 1);
  CHECK(index.total_records == 2);
  data.spec.too_long = TooLong::kTruncateText;
  index = data.index({file});
  REQUIRE(index.samples.size() == 2);
  CHECK(index.samples[1].tokens == 120);
  CHECK(index.samples[1].images.size() == 1);
  data.spec.max_sample_tokens = index.samples[1].images[0].token_offset + 3;  // ends inside of the image
  index = data.index({file});
  REQUIRE(index.bad.size() >= 1);
  CHECK(index.bad.back().reason.find("cut an image") != std::string::npos);
}

TEST_CASE("take picks the first records by number and spreads a fraction evenly") {
  DataSource source;
  source.take_records = 3;
  CHECK(is_taken(source, 2));
  CHECK_FALSE(is_taken(source, 3));
  source.take_records = -1;
  for (const double fraction : {0.1, 0.25, 0.5, 0.77}) {
    source.take_fraction = fraction;
    int64_t taken = 0, first_half = 0;
    for (int64_t i = 0; i < 1000; ++i) {
      taken += is_taken(source, i);
      if (i < 500) first_half += is_taken(source, i);
    }
    CHECK(taken == std::llround(fraction * 1000));
    CHECK(std::abs(first_half * 2 - taken) <= 2);
  }
}

TEST_CASE("Sources follow each other in the spec's order and records keep their numbers when some are not taken") {
  Data data;
  const std::string one = data.source(record("a") + "\n" + record("b"), "one.jsonl"),
                    two = data.source(record("c"), "two.jsonl");
  data.take_records = 1;
  const auto index = data.index({two, one});
  REQUIRE(index.samples.size() == 2);
  CHECK(index.samples[0].id == "c");
  CHECK(index.samples[1].id == "a");
  CHECK(index.samples[1].source == 1);
}

TEST_CASE("The order of samples and the digest do not depend on the number of threads") {
  Data data;
  std::string text;
  for (int i = 0; i < 500; ++i) text += record("r" + std::to_string(i), i % 3 == 0 ? "rgb.png" : "") + "\n";
  const std::string file = data.source(text);
  data.spec.workers = 1;
  const auto one = data.index({file});
  data.spec.workers = 4;
  const auto four = data.index({file});
  REQUIRE(one.samples.size() == 500);
  REQUIRE(four.samples.size() == 500);
  for (size_t i = 0; i < 500; ++i) CHECK(one.samples[i].id == four.samples[i].id);
  CHECK(one.digest == four.digest);
}

TEST_CASE("The digest changes with content, limits, supervision and the size of an image") {
  Data data;
  const std::string file = data.source(record("a", "rgb.png") + "\n" + record("b"));
  std::set<std::string> digests{data.index({file}).digest};
  CHECK(digests.count(data.index({file}).digest) == 1);
  data.spec.min_pixels = 28 * 28 * 16;
  digests.insert(data.index({file}).digest);
  data.spec.supervise = Supervise::kLast;
  digests.insert(data.index({file}).digest);
  data.scratch.write("pictures/rgb.png", fixture::contents(fixture::path("pictures/orientation6.png")));
  digests.insert(data.index({file}).digest);
  data.source(record("a", "rgb.png") + "\n" + record("c"));
  digests.insert(data.index({file}).digest);
  CHECK(digests.size() == 5);
}

TEST_CASE("Progress ends with all records done") {
  Data data;
  IndexProgress last;
  IndexRun run;
  run.progress = [&](const IndexProgress& progress) { last = progress; };
  const std::string file = data.source(record("a"));
  REQUIRE(
      build_sample_index(data.spec, {{file, "", 1, -1}}, fixture::path("model"), fixture::model_config(), run).ok());
  CHECK(last.records == 1);
  CHECK(last.total_bytes == static_cast<int64_t>(record("a").size()));
  CHECK(last.done_bytes == last.total_bytes);
  CHECK(last.blocks == 1);
  CHECK(last.cached_blocks == 0);
  CHECK(last.seconds_left == 0);
}

TEST_CASE("A record without an id in an array is named by its line and its number, wherever blocks are cut") {
  Data data;
  std::string nameless = record("x");
  nameless.erase(1, nameless.find(',') + 1);
  std::string array = "[" + nameless;
  for (int i = 2; i <= 1200; ++i) array += ", " + (i == 17 || i == 1100 ? "{\"a\": 1}" : nameless);
  const auto index = data.index({data.source(array + "]", "a.json")});
  CHECK(index.samples.size() == 1198);
  CHECK(index.samples[15].id == "a.json:1 (record 16)");
  REQUIRE(index.bad.size() == 2);
  CHECK(index.bad[0].id == "a.json:1 (record 17)");
  CHECK(index.bad[1].id == "a.json:1 (record 1100)");
}

TEST_CASE("A line that ends in a comma or opens an object is refused with how records are laid out") {
  Data data;
  const auto index = data.index({data.source(record("a") + ",\n" + record("b") + "\n{\n")});
  CHECK(index.samples.size() == 1);
  REQUIRE(index.bad.size() == 2);
  CHECK(index.bad[0].reason.find("ends in a comma; valid: one record a line") != std::string::npos);
  CHECK(index.bad[1].reason.find("begins an object over several lines; valid: one record a line") != std::string::npos);
}

TEST_CASE("A source that does not exist and pixel limits that cross are refused by name") {
  Data data;
  const auto missing =
      build_sample_index(data.spec, {{"/nowhere/a.json", "", 1, -1}}, fixture::path("model"), fixture::model_config());
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.error().message.find("/nowhere/a.json") != std::string::npos);
  data.spec.min_pixels = 1000000;
  const auto crossed = build_sample_index(data.spec, {{data.source(record("a")), "", 1, -1}}, fixture::path("model"),
                                          fixture::model_config());
  REQUIRE_FALSE(crossed.ok());
  CHECK(crossed.error().message.find("1000000") != std::string::npos);
}

}  // namespace
}  // namespace troupe
