#include "actors/data/data_refusals.h"

#include <catch2/catch.hpp>

using namespace troupe;

TEST_CASE("Skipping bad records is advised only where it is not done and would leave some") {
  CHECK(unusable_records(2, 16, OnBadRecord::kFail) ==
        "2 of 16 records cannot be used (data.on_bad_record: skip goes on without them)");
  CHECK(unusable_records(1, 1, OnBadRecord::kFail) == "1 of 1 records cannot be used");
  CHECK(unusable_records(2, 16, OnBadRecord::kSkip) == "2 of 16 records cannot be used and are left out");
}

TEST_CASE("Samples must fill a batch, come to a step and to every step that is to be seen") {
  JobSpec spec;
  spec.training.global_batch = 4;
  spec.training.steps = 3;
  CHECK(check_enough_samples(spec, 4, 0).ok());
  CHECK(check_enough_samples(spec, 3, 2).error().message ==
        "key 'training.global_batch': value 4, but the data have 3 samples to train on (2 more are held out by "
        "eval.split); valid: at most 3, or more samples");
  CHECK(check_enough_samples(spec, 0, 0).error().message ==
        "key 'training.global_batch': value 4, but the data have 0 samples to train on; valid: data with samples");
  spec.training.steps.reset();
  spec.training.epochs = 0.1;
  CHECK(check_enough_samples(spec, 4, 0).error().message ==
        "key 'training.epochs': value 0.1 of 4 samples is no sample, so no step; valid: at least 0.25");
  spec.training.epochs = 2;
  spec.profile = {2, 3, {}};
  CHECK(check_enough_samples(spec, 4, 0).error().message ==
        "key 'profile.steps': value 3 is behind the last step, 2; valid: 1 to 2");
  CHECK(check_enough_samples(spec, 8, 0).ok());
}
