#include "actors/data/index_command.h"

#include <catch2/catch.hpp>
#include <iostream>

#include "base/config/job_spec_parser.h"
#include "base/data/sample_index.h"
#include "tests/actors/data/fixture.h"
#include "tests/captured_stream.h"

namespace troupe {
namespace {

struct Run {
  int code;
  std::string out, err;
  /// The last line of stdout.
  nlohmann::json summary() const {
    const std::string body = out.substr(0, out.size() - 1);
    return nlohmann::json::parse(body.substr(body.rfind('\n') + 1));
  }
};

Run run(std::vector<std::string> words) {
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  const Captured out(std::cout), err(std::cerr);
  const int code = index_command(static_cast<int>(argv.size()), argv.data());
  return {code, out.text(), err.text()};
}

struct Job {
  fixture::Scratch scratch;
  JobSpec spec;
  Job() {
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
    spec.data.sources = {records(8, "records.jsonl")};
  }
  DataSource records(int count, const std::string& name, int bad = 0) {
    std::string text;
    for (int i = 0; i < count; ++i)
      text += R"({"id": "r)" + std::to_string(i) + R"(", "image": ")" + (i < bad ? "gone.png" : "rgb.png") +
              R"(", "conversations": [{"from": "human", "value": "<image>"}, {"from": "gpt", "value": "Yes."}]})"
              "\n";
    return {scratch.write(name, text), fixture::path("pictures"), 1, -1};
  }
  Run index(std::vector<std::string> more = {}) {
    std::vector<std::string> words{"troupe-actor", "index",
                                   "--job",        scratch.write("job.yaml", job_spec_to_yaml(spec)),
                                   "--out",        scratch.path("index")};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }
};

TEST_CASE("Samples longer than a packed sequence, and data without any answer, are refused") {
  Job job;
  job.spec.data.pack_tokens = 10;
  const auto packed = job.index();
  CHECK(packed.code == 2);
  CHECK(packed.err.find("key 'data.pack_tokens': value 10, but sample 'r0' has") != std::string::npos);
  job.spec.data.pack_tokens = 0;
  const std::string record =
      R"({"id": "a", "conversations": [{"from": "human", "value": "Hi."}, {"from": "gpt", "value": ""}]})"
      "\n";
  job.spec.data.sources = {{job.scratch.write("silent.jsonl", record + record), fixture::path("pictures"), 1, -1}};
  const auto silent = job.index();
  INFO(silent.err);
  CHECK(silent.code == 2);
  CHECK(silent.err.find("none of the 2 samples has a supervised token") != std::string::npos);
}

TEST_CASE("The command writes the index, shows progress and ends with a summary that agrees with it") {
  Job job;
  const auto ran = job.index();
  INFO(ran.err);
  REQUIRE(ran.code == 0);
  CHECK(ran.out.find("progress 8 ") != std::string::npos);
  const auto index = SampleIndex::read(job.scratch.path("index"));
  REQUIRE(index.ok());
  const auto summary = ran.summary();
  CHECK(summary.at("samples") == 8);
  CHECK(summary.at("records") == 8);
  CHECK(summary.at("images") == 8);
  CHECK(summary.at("tokens") == 8 * index->samples[0].tokens);
  CHECK(summary.at("supervised") == 8 * index->samples[0].supervised);
  CHECK(summary.at("digest") == index->digest);
}

TEST_CASE("Bad records end in one report with code 2 and no index, of which the first twenty are spelt out") {
  Job job;
  job.spec.data.sources = {job.records(40, "records.jsonl", 23)};
  const auto ran = job.index();
  CHECK(ran.code == 2);
  CHECK(ran.err.find("records.jsonl:1: record 'r0'") != std::string::npos);
  CHECK(ran.err.find("gone.png") != std::string::npos);
  CHECK(ran.err.find("'r19'") != std::string::npos);
  CHECK(ran.err.find("'r20'") == std::string::npos);
  CHECK(ran.err.find("and 3 more") != std::string::npos);
  CHECK(ran.err.find("23 of 40 records cannot be used (data.on_bad_record: skip goes on without them):") !=
        std::string::npos);
  CHECK_FALSE(std::filesystem::exists(job.scratch.path("index")));
}

TEST_CASE("With on_bad_record: skip the bad records are reported and the others indexed") {
  Job job;
  job.spec.data.sources = {job.records(40, "records.jsonl", 3)};
  job.spec.data.on_bad_record = OnBadRecord::kSkip;
  const auto ran = job.index();
  REQUIRE(ran.code == 0);
  CHECK(ran.err.find("'r2'") != std::string::npos);
  CHECK(ran.err.find("3 of 40 records cannot be used and are left out:") != std::string::npos);
  CHECK(ran.summary().at("samples") == 37);
  CHECK(ran.summary().at("bad") == 3);
}

TEST_CASE("Where no record is left, on_bad_record: skip is not advised") {
  Job job;
  job.spec.data.sources = {{job.scratch.write("empty.jsonl", "\n\n"), fixture::path("pictures"), 1, -1}};
  const auto ran = job.index();
  CHECK(ran.code == 2);
  CHECK(ran.err.find("1 of 1 records cannot be used:") != std::string::npos);
  CHECK(ran.err.find("skip") == std::string::npos);
}

TEST_CASE("Pictures in a file that is no archive are refused under their key") {
  Job job;
  const std::string file = job.scratch.write("notes.txt", "no archive");
  job.spec.data.sources[0].image_root = file;
  const auto ran = job.index();
  CHECK(ran.code == 2);
  CHECK(ran.err.find("key 'data.sources[0].image_root': " + file +
                     " is not a tar archive; valid: a folder, or a tar archive of pictures") != std::string::npos);
}

TEST_CASE("C11: fewer samples than a global batch are refused with both numbers") {
  Job job;
  job.spec.training.global_batch = 9;
  const auto ran = job.index();
  CHECK(ran.code == 2);
  CHECK(ran.err.find(
            "key 'training.global_batch': value 9, but the data have 8 samples to train on; valid: at most 8, or "
            "more samples") != std::string::npos);
}

TEST_CASE("C11: epochs that come to no step are refused") {
  Job job;
  job.spec.training.steps.reset();
  job.spec.training.epochs = 0.06;  // of 8 samples: 0.48
  const auto ran = job.index();
  CHECK(ran.code == 2);
  CHECK(
      ran.err.find("key 'training.epochs': value 0.06 of 8 samples is no sample, so no step; valid: at least 0.125") !=
      std::string::npos);
  job.spec.training.epochs = 0.07;
  CHECK(job.index().code == 0);
  job.spec.debug.steps = {2};
  const auto late = job.index();
  CHECK(late.code == 2);
  CHECK(late.err.find("key 'debug.dump.steps': value 2 is behind the last step, 1; valid: 1 to 1") !=
        std::string::npos);
}

TEST_CASE("An evaluation of nothing is refused, be it no sample or no supervised token") {
  Job job;
  job.spec.eval.split = 0.001;
  auto ran = job.index();
  CHECK(ran.code == 2);
  CHECK(ran.err.find(
            "key 'eval.split': value 0.001 holds out 0 of 8 samples; valid: a larger fraction, or eval.sources") !=
        std::string::npos);
  job.spec.eval.split = 0;
  job.spec.eval.sources = {job.records(5, "eval.jsonl", 5)};
  job.spec.data.on_bad_record = OnBadRecord::kSkip;
  ran = job.index({"--eval-out", job.scratch.path("eval-index")});
  CHECK(ran.code == 2);
  CHECK(ran.err.find("key 'eval.sources': 0 samples are left to evaluate") != std::string::npos);
  const std::string silent = R"({"conversations": [{"from": "human", "value": "x"}, {"from": "gpt", "value": ""}]})";
  job.spec.eval.sources = {{job.scratch.write("silent.jsonl", silent + "\n"), fixture::path("pictures"), 1, -1}};
  ran = job.index({"--eval-out", job.scratch.path("eval-index")});
  CHECK(ran.code == 2);
  CHECK(ran.err.find("1 samples with no supervised token are left to evaluate") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(job.scratch.path("eval-index")));
}

TEST_CASE("Evaluation sources get an index of their own") {
  Job job;
  job.spec.eval.sources = {job.records(5, "eval.jsonl")};
  const auto ran = job.index({"--eval-out", job.scratch.path("eval-index")});
  INFO(ran.err);
  REQUIRE(ran.code == 0);
  CHECK(SampleIndex::read(job.scratch.path("eval-index"))->samples.size() == 5);
  CHECK(ran.summary().at("eval_samples") == 5);
  const size_t data = ran.out.find("sources data.sources\nprogress "),
               eval = ran.out.find("sources eval.sources\nprogress ");
  CHECK(data == 0);
  CHECK(eval != std::string::npos);
}

TEST_CASE("Synthetic data have an index too") {
  Job job;
  job.spec.data.sources.clear();
  job.spec.data.synthetic = SyntheticData{1, 56, 56, 10, 12};
  const auto ran = job.index();
  INFO(ran.err);
  REQUIRE(ran.code == 0);
  CHECK(ran.summary().at("samples") == 12);
}

TEST_CASE("Missing and unknown options are refused with code 2 and their names") {
  CHECK(run({"index"}).code == 2);
  CHECK(run({"index", "--job", "x"}).err.find("--out") != std::string::npos);
  CHECK(run({"index", "--speed", "9"}).err.find("'--speed'") != std::string::npos);
  CHECK(run({"index", "--job"}).err.find("needs a path") != std::string::npos);
  CHECK(run({"index", "--job", "/nowhere/job.yaml", "--out", "x"}).err.find("/nowhere/job.yaml") != std::string::npos);
}

}  // namespace
}  // namespace troupe
