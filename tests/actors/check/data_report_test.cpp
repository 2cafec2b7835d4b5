#include "actors/check/data_report.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

namespace troupe {
namespace {

SampleIndex index_of(const std::vector<int32_t>& lengths) {
  SampleIndex index;
  for (size_t i = 0; i < lengths.size(); ++i) {
    IndexedSample s;
    s.record = static_cast<int64_t>(i);
    s.tokens = lengths[i];
    s.supervised = i == 0 ? 0 : 2;
    s.id = std::to_string(i);
    if (i % 2 == 1) s.images.push_back({1, 4, 6, 1});
    index.samples.push_back(s);
  }
  index.total_records = static_cast<int64_t>(lengths.size());
  return index;
}

JobSpec spec_of(int64_t batch) {
  JobSpec spec;
  GroupSpec vision, text;
  vision.name = "vision";
  vision.components = {"vision", "merger"};
  text.name = "text";
  text.components = {"text"};
  spec.groups = {vision, text};
  spec.training.epochs = 2;
  spec.training.global_batch = batch;
  return spec;
}

TEST_CASE("lengths, images and steps are counted") {
  const SampleIndex index = index_of({1, 3, 4, 7, 8, 20});
  const DataReport report = make_data_report(spec_of(4), {}, {}, index);
  CHECK(report.samples == 6);
  CHECK(report.text_only == 3);
  CHECK(report.without_target == 1);
  CHECK(report.supervised == 10);
  CHECK(report.tokens.least == 1);
  CHECK(report.tokens.median == 4);
  CHECK(report.tokens.most == 20);
  CHECK(report.tokens.high == 20);  // 95 of 100 of six are all six
  CHECK(report.tokens.total == 43);
  CHECK(report.images.total == 3);
  CHECK(report.patches.most == 24);
  CHECK(report.steps == 3);
  CHECK(report.batch_tokens == 29);  // 86 tokens in three steps
  std::vector<std::pair<int64_t, int64_t>> bins;
  for (const LengthBin& bin : report.lengths) bins.emplace_back(bin.from, bin.samples);
  CHECK(bins == std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {2, 1}, {4, 2}, {8, 1}, {16, 1}});
  CHECK(report_text(report).find("3 steps of 4 samples, 2.00 passes") != std::string::npos);
}

TEST_CASE(
    "C02: trading lanes for tensor parallelism changes neither the batch nor the number of steps, and both are said") {
  const SampleIndex index = index_of({5, 6, 7, 8, 9, 10, 11, 12});
  JobSpec lanes = spec_of(4), tensors = spec_of(4);
  lanes.groups[1].mesh.set(Axis::kDp, 2);
  tensors.groups[1].mesh.set(Axis::kTp, 2);
  const DataReport a = make_data_report(lanes, {}, {}, index), b = make_data_report(tensors, {}, {}, index);
  CHECK(a.steps == b.steps);
  CHECK(a.batch_tokens == b.batch_tokens);
  CHECK(a.text_units == 2);
  CHECK(b.text_units == 4);
  CHECK(report_text(a).find("4 steps of 4 samples") != std::string::npos);
}

TEST_CASE("bad records are grouped by what they have in common and the first twenty spelt out") {
  SampleIndex index = index_of({5, 5});
  for (int i = 0; i < 25; ++i)
    index.bad.push_back(
        {"a.jsonl", i + 1, i, "r" + std::to_string(i), "image 'x" + std::to_string(i) + ".jpg' does not exist"});
  index.bad.push_back({"a.jsonl", 40, 39, "r39", "2 <image> placeholders in the user turns, but 1 image"});
  index.total_records = 28;
  const DataReport report = make_data_report(spec_of(1), {}, {}, index);
  REQUIRE(report.groups.size() == 2);
  CHECK(report.groups[0].records == 25);
  CHECK(report.groups[0].reason == "image '...' does not exist");
  CHECK(report.groups[1].reason == "N <image> placeholders in the user turns, but N image");
  const std::string text = bad_records_text(index);
  CHECK(text.find("26 of 28 records cannot be used") == 0);
  CHECK(text.find("25 x image '...' does not exist") != std::string::npos);
  CHECK(text.find("a.jsonl:20: record 'r19'") != std::string::npos);
  CHECK(text.find("'r20'") == std::string::npos);
  CHECK(text.find("and 6 more") != std::string::npos);
  CHECK(report_json(report, index)["bad_records"].size() == 26);
}

TEST_CASE("numbers of a reason do not tell kinds apart, names do") {
  CHECK(reason_kind("has 120 tokens, more than 64") == "has N tokens, more than N");
  CHECK(reason_kind("image 'a'; caused by: cannot open /a b/c.jpg: No such file; valid: x/y") ==
        "image '...'; caused by: cannot open '...': No such file; valid: x/y");
  CHECK(reason_kind("cannot open /a") == "cannot open '...'");
  CHECK(reason_kind("'a1.mp4' holds 64x48 pixels in MP4") == "'...' holds NxN pixels in MP4");
  CHECK(reason_kind("is coded as mpeg1video, in 2^26 bytes") == "is coded as mpeg1video, in N^N bytes");
  CHECK(reason_kind("H264 and JSON5 of N12, 7") == "H264 and JSON5 of N12, N");
}

TEST_CASE("Sources are listed with their weights and what they come to in a pass") {
  SampleIndex index = index_of({5, 6, 7, 8, 9, 10});
  IndexedSample other;
  other.source = 1;
  other.tokens = 4;
  for (int i = 0; i < 4; ++i) index.samples.push_back(other);
  JobSpec spec = spec_of(4);
  spec.data.sources = {{"a.jsonl", "", 1, -1}, {"b.jsonl", "", 1, -1}};
  spec.data.sources[0].weight = 0.5;
  spec.data.sources[1].weight = 2.25;
  const DataReport report = make_data_report(spec, spec.data.sources, {}, index);
  CHECK(report.epoch_samples == 3 + 9);
  CHECK(report.steps == 6);
  const std::string text = report_text(report);
  CHECK(text.find("  a.jsonl: 6 samples, weight 0.5, 3 in a pass\n  b.jsonl: 4 samples, weight 2.25, 9 in a pass\n") !=
        std::string::npos);
  CHECK(text.find("  12 samples in a pass over the data\n") != std::string::npos);
  CHECK(report_json(report, index)["sources"][1]["epoch_samples"] == 9);
}

}  // namespace
}  // namespace troupe
