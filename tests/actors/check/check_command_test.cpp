#include "actors/check/check_command.h"

#include <catch2/catch.hpp>
#include <iostream>

#include "actors/check/preview.h"
#include "base/config/job_spec_parser.h"
#include "tests/actors/data/fixture.h"
#include "tests/captured_stream.h"

namespace troupe {
namespace {

struct Answer {
  int code;
  std::string out, err;
};

constexpr const char* kGood =
    R"({"id": "good", "image": "rgb.png", "conversations": [{"from": "human", "value": "<image>\nWhat is it?"}, {"from": "gpt", "value": "A <square>."}]})";
constexpr const char* kText =
    R"({"id": "text", "conversations": [{"from": "human", "value": "Hello"}, {"from": "gpt", "value": "Hi there!"}]})";
constexpr const char* kTwoForOne =
    R"({"id": "seven", "image": "rgb.png", "conversations": [{"from": "human", "value": "<image><image>"}, {"from": "gpt", "value": "no"}]})";
constexpr const char* kGone =
    R"({"id": "gone", "image": "gone.png", "conversations": [{"from": "human", "value": "<image>"}, {"from": "gpt", "value": "no"}]})";

struct Job {
  fixture::Scratch scratch;
  JobSpec spec;
  explicit Job(const std::vector<const char*>& records) {
    spec.name = "test";
    spec.model.path = fixture::path("model");
    for (const char* component : {"vision", "merger", "text"}) spec.components[component] = {};
    GroupSpec vision, text;
    vision.name = "vision";
    vision.components = {"vision", "merger"};
    text.name = "text";
    text.components = {"text"};
    spec.groups = {vision, text};
    spec.training.steps = 1;
    spec.training.global_batch = 2;
    std::string lines;
    for (const char* record : records) lines += std::string(record) + "\n";
    spec.data.sources = {{scratch.write("records.jsonl", lines), fixture::path("pictures"), 1, -1}};
  }
  Answer check(std::vector<std::string> more = {}) {
    std::vector<std::string> words{"troupe-actor", "check", "--job", scratch.write("job.yaml", job_spec_to_yaml(spec))};
    words.insert(words.end(), more.begin(), more.end());
    std::vector<char*> argv;
    for (auto& word : words) argv.push_back(word.data());
    const Captured out(std::cout), err(std::cerr);
    const int code = check_command(static_cast<int>(argv.size()), argv.data());
    return {code, out.text(), err.text()};
  }
};

TEST_CASE("D01, D09: all bad records come in one report with file, line, id and reason, and the answer is 2") {
  Job job({kGood, kTwoForOne, kText, kGone});
  const Answer answer = job.check();
  CHECK(answer.code == 2);
  CHECK(answer.out.find("records.jsonl:2: record 'seven': 2 <image> placeholders in the user turns, but 1 image") !=
        std::string::npos);
  CHECK(answer.out.find("records.jsonl:4: record 'gone': image 'gone.png'") != std::string::npos);
  CHECK(answer.err.find("2 of 4 records cannot be used") != std::string::npos);
  CHECK(answer.err.find("(data.on_bad_record: skip goes on without them)") != std::string::npos);
  job.spec.data.on_bad_record = OnBadRecord::kSkip;
  CHECK(job.check().code == 0);
}

TEST_CASE("The answer as JSON has every bad record, the statistics and whether training can begin") {
  Job job({kGood, kTwoForOne, kText, kGone});
  const Answer answer = job.check({"--json"});
  CHECK(answer.code == 2);
  const auto json = nlohmann::json::parse(answer.out);
  CHECK(json.at("samples") == 2);
  CHECK(json.at("text_only") == 1);
  CHECK(json.at("usable") == false);
  REQUIRE(json.at("bad_records").size() == 2);
  CHECK(json.at("bad_records")[0].at("line") == 2);
  CHECK(json.at("bad_records")[0].at("id") == "seven");
  CHECK(json.at("training").at("steps") == 1);
}

TEST_CASE("What the job's keys are refused for is said where they were written, as the plan tells") {
  Job job({kGood});
  const std::string plan = job.scratch.write(
      "plan.json",
      R"({"slots": [], "places": {"": "mine.yaml:1", "training": "mine.yaml:6", "data.sources": "mine.yaml:3"}})");
  CHECK(job.check({"--plan", plan})
            .err.find("troupe check: mine.yaml:6: key 'training.global_batch': value 2, but the data have 1") == 0);
  const std::string warned = job.scratch.write("warned.json", R"({"slots": [], "warnings": ["m: has two templates"]})");
  CHECK(job.check({"--plan", warned}).err.find("warning: m: has two templates\n") == 0);
  CHECK(nlohmann::json::parse(job.check({"--plan", warned, "--json"}).out).at("warnings")[0] == "m: has two templates");
  const std::string slots =
      job.scratch.write("slots.json", R"({"slots": [{"node": "local", "index": 0, "bytes": 11836528}]})");
  CHECK(job.check({"--plan", slots}).out.find("  local:0 holds 11.29 MiB of weights, ") != std::string::npos);
  job.spec.data.sources[0].image_root = plan;
  CHECK(job.check({"--plan", plan}).err.find("troupe check: mine.yaml:3: key 'data.sources[0].image_root': ") == 0);
}

TEST_CASE("C11: too few samples, and a split that holds out nothing, are refused as a run refuses them") {
  Job job({kGood, kText});
  job.spec.eval.split = 0.001;
  job.spec.training.global_batch = 3;
  const auto json = nlohmann::json::parse(job.check({"--json"}).out);
  CHECK(json.at("usable") == false);
  REQUIRE(json.at("refused").size() == 2);
  CHECK(json.at("refused")[0].get<std::string>().find(
            "key 'training.global_batch': value 3, but the data have 2 samples") == 0);
  CHECK(json.at("refused")[1] ==
        "key 'eval.split': value 0.001 holds out 0 of 2 samples; valid: a larger fraction, or eval.sources");
}

TEST_CASE("A preview shows exactly the answers as supervised and the grid of each image") {
  Job job({kGood, kText});
  const Answer answer = job.check({"--show", "2"});
  CHECK(answer.code == 0);
  CHECK(answer.out.find("[rgb.png: ") != std::string::npos);
  CHECK(answer.out.find("<|im_start|>assistant\n>>A <square>.<|im_end|><<") != std::string::npos);
  CHECK(answer.out.find(">>Hi there!<|im_end|><<") != std::string::npos);
  CHECK(answer.out.find(">>Hello") == std::string::npos);
}

TEST_CASE("A preview says what an answer counts when that is not 1") {
  Job job(
      {R"({"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "half", "weight": 0.5}, {"role": "user", "content": "q"}, {"role": "assistant", "content": "whole"}]})"});
  job.spec.training.global_batch = 1;
  const Answer answer = job.check({"--show", "1"});
  INFO(answer.out << answer.err);
  CHECK(answer.out.find("assistant\n[counts 0.5] >>half<|im_end|><<") != std::string::npos);
  CHECK(answer.out.find("assistant\n>>whole<|im_end|><<") != std::string::npos);
}

TEST_CASE("A preview reads a record in the spelling that its source has") {
  Job job(
      {R"({"nr": "other", "pic": "rgb.png", "chat": [{"who": "person", "says": "<image>What?"}, {"who": "model", "says": "A square."}]})",
       kText});
  job.spec.data.sources[0].spelling.columns = {
      {"id", "nr"}, {"images", "pic"}, {"turns", "chat"}, {"role", "who"}, {"content", "says"}};
  job.spec.data.sources[0].spelling.roles = {{"person", "user"}, {"model", "assistant"}};
  const Answer answer = job.check({"--show", "1"});
  INFO(answer.out << answer.err);
  CHECK(answer.out.find("record 'other': ") != std::string::npos);
  CHECK(answer.out.find(">>A square.<|im_end|><<") != std::string::npos);
}

TEST_CASE("Samples that are to be shown are in the report for a program too") {
  Job job({kGood, kText});
  const auto shown = nlohmann::json::parse(job.check({"--show", "2", "--json"}).out).at("shown");
  REQUIRE(shown.size() == 2);
  const auto& parts = shown[0].at("parts");
  const auto image = std::find_if(parts.begin(), parts.end(), [](const auto& part) { return part.contains("image"); });
  REQUIRE(image != parts.end());
  CHECK(image->at("tokens").get<int>() * 4 == image->at("h").get<int>() * image->at("w").get<int>());
  const auto answer =
      std::find_if(parts.begin(), parts.end(), [](const auto& p) { return p.value("supervised", false); });
  REQUIRE(answer != parts.end());
  CHECK(answer->at("text") == "A <square>.<|im_end|>");
  CHECK(answer->at("weight") == 1);
  CHECK(nlohmann::json::parse(job.check({"--json"}).out).at("shown").empty());
}

TEST_CASE("Of a picture in a data URI only the kind is printed") {
  CHECK(picture_name("data:image/png;base64,iVBORw0KGgo=") == "data:image/png;base64,...");
  CHECK(picture_name("a,b.png") == "a,b.png");
}

TEST_CASE("The page holds thumbnails, marks supervised text and spells out what HTML would read as its own") {
  Job job({kGood, kText});
  const std::string page = job.scratch.path("check.html");
  CHECK(job.check({"--html", page}).code == 0);
  const std::string text = fixture::contents(page);
  CHECK(text.find("src=\"data:image/png;base64,iVBOR") != std::string::npos);
  CHECK(text.find("<b>A &lt;square&gt;.&lt;|im_end|&gt;</b>") != std::string::npos);
  CHECK(text.find("<square>") == std::string::npos);
  CHECK(text.find("<pre>can be trained\n") != std::string::npos);
  CHECK(job.check({"--html", job.scratch.path("missing/check.html")}).code == 2);
}

TEST_CASE("Control characters of a record are spelt out in the page as in the terminal's report") {
  Job job(
      {kGood,
       R"({"id": "odd", "image": "a\u0000\u001bb.png", "conversations": [{"from": "human", "value": "<image>"}, {"from": "gpt", "value": "no"}]})"});
  const std::string page = job.scratch.path("check.html");
  CHECK(job.check({"--html", page}).code == 2);
  const std::string text = fixture::contents(page);
  CHECK(text.find("record 'odd'") != std::string::npos);
  CHECK(text.find("<pre>cannot be trained as it is\n  1 of 2 records cannot be used") != std::string::npos);
  CHECK(text.find("a\\x00\\x1bb.png") != std::string::npos);
  CHECK(text.find('\0') == std::string::npos);
  CHECK(text.find('\x1b') == std::string::npos);
}

TEST_CASE("Control characters of a record are spelt out in a preview, its lines are kept") {
  Job job(
      {R"({"id": "o\u001bdd", "conversations": [{"from": "human", "value": "a\u001b[2J\nb"}, {"from": "gpt", "value": "c\u0007"}]})",
       kText});
  const Answer answer = job.check({"--show", "1"});
  INFO(answer.out << answer.err);
  CHECK(answer.out.find("record 'o\\x1bdd': ") != std::string::npos);
  CHECK(answer.out.find("a\\x1b[2J\nb<|im_end|>") != std::string::npos);
  CHECK(answer.out.find(">>c\\x07<|im_end|><<") != std::string::npos);
  CHECK(answer.out.find('\x1b') == std::string::npos);
}

TEST_CASE("Options that are not known and values that do not fit are refused by name") {
  Job job({kGood, kText});
  CHECK(job.check({"--frob", "1"}).err.find("'--frob'") != std::string::npos);
  const auto json = nlohmann::json::parse(job.check({"--show", "0", "--json", "--frob", "1"}).out);
  CHECK(json.at("error").at("code") == "invalid_argument");
  CHECK(json.at("error").at("exit_code") == 2);
  const Answer answer = job.check({"--show", "many"});
  CHECK(answer.code == 2);
  CHECK(answer.err.find("'many'") != std::string::npos);
}

}  // namespace
}  // namespace troupe
