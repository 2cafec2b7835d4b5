#include "base/checkpoint/checkpoint_manifest.h"

#include <catch2/catch.hpp>

using namespace troupe;

namespace {

CheckpointManifest two_groups() {
  CheckpointManifest m;
  m.step = 12;
  m.skipped_steps = 2;
  m.samples_done = 96;
  m.dtype = "bf16";
  m.groups = {{"vision", Mesh().set(Axis::kDp, 2).set(Axis::kSp, 2), 1, false},
              {"text", Mesh().set(Axis::kTp, 2), 0, true, 4096}};
  m.data = {7, 8, false, 4, 0.1, "", "abc"};
  m.files = {{"vision-0.safetensors", 123, "00ff00ff00ff00ff"}};
  return m;
}

}  // namespace

TEST_CASE("a manifest reads back as it was written") {
  const auto read = manifest_from_json(manifest_to_json(two_groups()), "here");
  REQUIRE(read.ok());
  CHECK(read->step == 12);
  CHECK(read->skipped_steps == 2);
  CHECK(read->samples_done == 96);
  CHECK(read->dtype == "bf16");
  CHECK(read->groups == two_groups().groups);
  CHECK(read->data.seed == 7);
  CHECK(read->data.global_batch == 8);
  CHECK_FALSE(read->data.shuffle);
  CHECK(read->data.sort_window == 4);
  CHECK(read->data.eval_split == 0.1);
  CHECK(read->data.index == "abc");
  REQUIRE(read->files.size() == 1);
  CHECK(read->files[0].name == "vision-0.safetensors");
  CHECK(read->files[0].bytes == 123);
  CHECK(read->files[0].xxh64 == "00ff00ff00ff00ff");
}

TEST_CASE("a manifest that is cut off, of another format or lacks a key is refused with its origin") {
  const std::string text = manifest_to_json(two_groups());
  CHECK(manifest_from_json(text.substr(0, text.size() / 2), "here").error().code == ErrorCode::kDataLoss);
  CHECK(manifest_from_json(R"({"format": 99})", "here").error().code == ErrorCode::kInvalidArgument);
  const auto lacking = manifest_from_json(R"({"format": 3, "step": 3})", "here");
  REQUIRE_FALSE(lacking.ok());
  CHECK(lacking.error().code == ErrorCode::kDataLoss);
  CHECK(lacking.error().message.find("here") != std::string::npos);
}

TEST_CASE("a resume in another mesh, zero stage or dtype is refused and both layouts are printed") {
  const CheckpointManifest saved = two_groups();
  CHECK(check_resumable(saved, two_groups(), "folder").ok());
  CheckpointManifest wider = two_groups();
  wider.groups[1].mesh.set(Axis::kTp, 4);
  const Status refused = check_resumable(saved, wider, "folder");
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().message.find("tp=2") != std::string::npos);
  CHECK(refused.error().message.find("tp=4") != std::string::npos);
  CheckpointManifest unsharded = two_groups(), other_type = two_groups();
  unsharded.groups[0].zero = 0;
  other_type.dtype = "fp32";
  CHECK_FALSE(check_resumable(saved, unsharded, "folder").ok());
  CHECK_FALSE(check_resumable(saved, other_type, "folder").ok());
}

TEST_CASE("a resume whose shards would be cut elsewhere is refused by the key that cuts them") {
  CheckpointManifest wanted = two_groups();
  wanted.groups[1].bucket_bytes = 8192;
  const Status refused = check_resumable(two_groups(), wanted, "folder");
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().message.find("group text were cut with training.bucket_bytes 4096; this job: 8192") !=
        std::string::npos);
}

TEST_CASE("a resume on other data or in another order is refused and each setting is named, saved and wanted") {
  const auto refusal = [](void (*change)(CheckpointData&)) {
    CheckpointManifest wanted = two_groups();
    change(wanted.data);
    const Status status = check_resumable(two_groups(), wanted, "folder");
    return status.ok() ? std::string("accepted") : status.error().message;
  };
  const std::string head = "folder: was saved after 96 samples of other data, and would go on at another one: ",
                    tail = "; valid: the same, or a new run";
  CHECK(refusal([](CheckpointData& d) { d.seed = 9; }) == head + "training.seed 7 (this job: 9)" + tail);
  CHECK(refusal([](CheckpointData& d) { d.global_batch = 16; }) ==
        head + "training.global_batch 8 (this job: 16)" + tail);
  CHECK(refusal([](CheckpointData& d) { d.index = "abd"; }) ==
        head + "records, tokenizer, chat template, pixel limits and sample lengths of digest abc (this job: abd)" +
            tail);
  CHECK(refusal([](CheckpointData& d) { d = {7, 8, true, 0, 0.2, "", "abc"}; }) ==
        head + "data.shuffle false (this job: true), data.sort_window 4 (this job: 0), eval.split 0.1 (this job: 0.2)" +
            tail);
  CHECK(refusal([](CheckpointData& d) { d.source_weights = "1, 0.5"; }) ==
        head + "data.sources.weight 1 each (this job: [1, 0.5])" + tail);
  CHECK(refusal([](CheckpointData& d) { d.index.clear(); }) == "accepted");  // not known yet
}
