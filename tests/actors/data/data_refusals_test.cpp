#include "actors/data/data_refusals.h"

#include <catch2/catch.hpp>

using namespace troupe;

namespace {

SampleIndex index_of(int samples, int32_t supervised = 2, int32_t source = 0) {
  SampleIndex index;
  for (int i = 0; i < samples; ++i) {
    IndexedSample s;
    s.source = source;
    s.record = i;
    s.tokens = 10 + i;
    s.supervised = supervised;
    s.id = "r" + std::to_string(i);
    index.samples.push_back(s);
  }
  index.total_records = samples;
  return index;
}

JobSpec spec_of(int64_t batch, double weight = 1) {
  JobSpec spec;
  spec.training.global_batch = batch;
  spec.training.steps = 3;
  spec.data.sources = {{"a.jsonl", "", 1, -1, {}, "data.sources[0]", weight}};
  return spec;
}

using Reasons = std::vector<std::string>;
Reasons reasons(const JobSpec& spec, const SampleIndex& index, const SampleIndex* eval = nullptr) {
  return data_refusals(spec, count_data(spec, index, eval));
}

}  // namespace

TEST_CASE("Skipping bad records is advised only where it is not done and would leave some") {
  CHECK(unusable_records(2, 16, OnBadRecord::kFail) ==
        "2 of 16 records cannot be used (data.on_bad_record: skip goes on without them)");
  CHECK(unusable_records(1, 1, OnBadRecord::kFail) == "1 of 1 records cannot be used");
  CHECK(unusable_records(2, 16, OnBadRecord::kSkip) == "2 of 16 records cannot be used and are left out");
}

TEST_CASE("Bad records are refused unless they are to be skipped") {
  SampleIndex index = index_of(3);
  index.bad.push_back({"a", 1, 3, "x", "why"});
  index.total_records = 4;
  JobSpec spec = spec_of(3);
  CHECK(reasons(spec, index) ==
        Reasons{"1 of 4 records cannot be used (data.on_bad_record: skip goes on without them)"});
  spec.data.on_bad_record = OnBadRecord::kSkip;
  CHECK(reasons(spec, index).empty());
}

TEST_CASE("Samples must fill a batch, come to a step and to every step that is to be seen") {
  JobSpec spec = spec_of(4);
  CHECK(reasons(spec, index_of(4)).empty());
  CHECK(reasons(spec, index_of(3)) == Reasons{"key 'training.global_batch': value 4, but the data have 3 samples to "
                                              "train on; valid: at most 3, or more samples"});
  CHECK(reasons(spec, index_of(0)) ==
        Reasons{
            "key 'training.global_batch': value 4, but the data have 0 samples to train on; valid: data with samples"});
  spec.training.steps.reset();
  spec.training.epochs = 0.1;
  CHECK(reasons(spec, index_of(4)) ==
        Reasons{"key 'training.epochs': value 0.1 of 4 samples is no sample, so no step; valid: at least 0.25"});
  spec.training.epochs = 2;
  spec.profile = {2, 3, {}};
  CHECK(reasons(spec, index_of(4)) ==
        Reasons{"key 'profile.steps': value 3 is behind the last step, 2; valid: 1 to 2"});
  CHECK(reasons(spec, index_of(8)).empty());
}

TEST_CASE("Weights decide how many samples there are, and one that leaves none is refused") {
  CHECK(reasons(spec_of(8, 2), index_of(4)).empty());
  CHECK(reasons(spec_of(4, 0.5), index_of(4))[0].find("the data have 2 samples to train on") != std::string::npos);
  CHECK(reasons(spec_of(1, 0.1), index_of(4))[0] ==
        "key 'data.sources[0].weight': value 0.1 of 4 samples is no sample in a data epoch; valid: at least 0.25");
  const DataCounts counts = count_data(spec_of(1, 2.5), index_of(4), nullptr);
  CHECK(counts.epoch_samples == 10);
  CHECK(counts.sources[0].samples == 4);
}

TEST_CASE("A source that gives no sample beside others that do is refused, unless bad records are the reason") {
  JobSpec spec = spec_of(2);
  spec.data.sources.push_back({"none.json", "", 1, -1});
  spec.data.sources.back().key = "data.sources[1]";
  SampleIndex index = index_of(4);
  CHECK(reasons(spec, index) ==
        Reasons{"key 'data.sources[1].path': 'none.json' gives no sample; valid: a file with records that can be used, "
                "of which 'take' and data.max_sample_tokens leave some"});
  index.bad.push_back({"none.json", 1, 0, "x", "why"});
  CHECK(reasons(spec, index).size() == 1);
  CHECK(reasons(spec, index)[0].find("records cannot be used") != std::string::npos);
  spec.data.on_bad_record = OnBadRecord::kSkip;
  CHECK(reasons(spec, index).size() == 1);
  CHECK(reasons(spec, index)[0].find("gives no sample") != std::string::npos);
}

TEST_CASE("Held-out samples are not trained on, and something must be held out when it is asked for") {
  JobSpec spec = spec_of(1000);
  spec.eval.split = 0.5;
  const SampleIndex index = index_of(1000);
  const DataCounts counts = count_data(spec, index, nullptr);
  CHECK(counts.held_out > 400);
  CHECK(counts.epoch_samples == 1000 - counts.held_out);
  CHECK(reasons(spec, index)[0].find("(" + std::to_string(counts.held_out) + " more are held out by eval.split)") !=
        std::string::npos);
  spec = spec_of(1);
  spec.eval.split = 0.001;
  CHECK(reasons(spec, index_of(8)) ==
        Reasons{"key 'eval.split': value 0.001 holds out 0 of 8 samples; valid: a larger fraction, or eval.sources"});
}

TEST_CASE("What there is to evaluate must have supervised tokens, and may not be bad") {
  JobSpec spec = spec_of(1);
  spec.eval.sources = {{"e.jsonl", "", 1, -1}};
  const SampleIndex silent = index_of(2, 0), none = index_of(0);
  CHECK(
      reasons(spec, index_of(8), &silent) ==
      Reasons{
          "key 'eval.sources': 2 samples with no supervised token are left to evaluate; valid: records with answers"});
  CHECK(reasons(spec, index_of(8), &none) ==
        Reasons{"key 'eval.sources': 0 samples are left to evaluate; valid: records with answers"});
  SampleIndex bad = index_of(2);
  bad.bad.push_back({"e", 1, 3, "x", "why"});
  bad.total_records = 3;
  CHECK(reasons(spec, index_of(8), &bad) ==
        Reasons{"key 'eval.sources': 1 of 3 records cannot be used (data.on_bad_record: skip goes on without them)"});
  CHECK(reasons(spec, index_of(8)).empty());  // nobody looked at them
}

TEST_CASE("There must be something to learn, and every sample must fit its packed sequence") {
  CHECK(reasons(spec_of(1), index_of(2, 0)) ==
        Reasons{
            "none of the 2 samples has a supervised token, so nothing would be learned; valid: records with answers"});
  JobSpec spec = spec_of(1);
  spec.data.pack_tokens = 12;
  CHECK(reasons(spec, index_of(4)) ==
        Reasons{"key 'data.pack_tokens': value 12, but sample 'r3' has 13 tokens; valid: at least 13, or a "
                "data.max_sample_tokens that leaves it out"});
}
