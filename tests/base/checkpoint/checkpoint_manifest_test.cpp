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
  m.groups = {{"vision", Mesh().set(Axis::kDp, 2).set(Axis::kSp, 2), 1, false}, {"text", Mesh().set(Axis::kTp, 2), 0, true}};
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
  REQUIRE(read->files.size() == 1);
  CHECK(read->files[0].name == "vision-0.safetensors");
  CHECK(read->files[0].bytes == 123);
  CHECK(read->files[0].xxh64 == "00ff00ff00ff00ff");
}

TEST_CASE("a manifest that is cut off, of another format or lacks a key is refused with its origin") {
  const std::string text = manifest_to_json(two_groups());
  CHECK(manifest_from_json(text.substr(0, text.size() / 2), "here").error().code == ErrorCode::kDataLoss);
  CHECK(manifest_from_json(R"({"format": 99})", "here").error().code == ErrorCode::kInvalidArgument);
  const auto lacking = manifest_from_json(R"({"format": 1, "step": 3})", "here");
  REQUIRE_FALSE(lacking.ok());
  CHECK(lacking.error().code == ErrorCode::kDataLoss);
  CHECK(lacking.error().message.find("here") != std::string::npos);
}

TEST_CASE("a resume in another mesh, zero stage or dtype is refused and both layouts are printed") {
  const CheckpointManifest saved = two_groups();
  CHECK(check_same_layout(saved, two_groups(), "folder").ok());
  CheckpointManifest wider = two_groups();
  wider.groups[1].mesh.set(Axis::kTp, 4);
  const Status refused = check_same_layout(saved, wider, "folder");
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().message.find("tp=2") != std::string::npos);
  CHECK(refused.error().message.find("tp=4") != std::string::npos);
  CheckpointManifest unsharded = two_groups(), other_type = two_groups();
  unsharded.groups[0].zero = 0;
  other_type.dtype = "fp32";
  CHECK_FALSE(check_same_layout(saved, unsharded, "folder").ok());
  CHECK_FALSE(check_same_layout(saved, other_type, "folder").ok());
}
