#include "base/program/gradient_buckets.h"

#include <catch2/catch.hpp>

using namespace troupe;

namespace {

ParameterDecl parameter(const std::string& component, int64_t elements, TpLayout layout = TpLayout::kReplicated) {
  ParameterDecl p;
  p.shape = {elements};
  p.component = component;
  p.tp_layout = layout;
  return p;
}

}  // namespace

TEST_CASE("buckets go from the last parameter to the first and none holds more than it may") {
  const std::vector<ParameterDecl> parameters = {parameter("text", 4), parameter("text", 3), parameter("text", 3),
                                                 parameter("text", 5)};
  CHECK(gradient_buckets(parameters, {}, 1, 8) == std::vector<GradientBucket>{{2, 4}, {0, 2}});
  CHECK(gradient_buckets(parameters, {}, 1, 0) == std::vector<GradientBucket>{{0, 4}});
}

TEST_CASE("a parameter larger than a bucket is a bucket of its own") {
  const std::vector<ParameterDecl> parameters = {parameter("text", 100), parameter("text", 1), parameter("text", 100),
                                                 parameter("text", 1)};
  CHECK(gradient_buckets(parameters, {}, 1, 10) == std::vector<GradientBucket>{{3, 4}, {2, 3}, {1, 2}, {0, 1}});
}

TEST_CASE("no bucket goes over the border of a component, and frozen ones have none") {
  const std::vector<ParameterDecl> parameters = {parameter("vision", 1), parameter("vision", 1), parameter("merger", 1),
                                                 parameter("other", 1)};
  CHECK(gradient_buckets(parameters, {}, 1, 0) == std::vector<GradientBucket>{{3, 4}, {2, 3}, {0, 2}});
  CHECK(gradient_buckets(parameters, {"merger"}, 1, 0) == std::vector<GradientBucket>{{3, 4}, {0, 2}});
  CHECK(gradient_buckets(parameters, {"vision", "merger", "other"}, 1, 0).empty());
}

TEST_CASE("over tp a cut parameter counts with one rank's part, rounded alike on all ranks") {
  const std::vector<ParameterDecl> parameters = {parameter("text", 9, TpLayout::kRows), parameter("text", 4),
                                                 parameter("text", 9, TpLayout::kRows)};
  CHECK(gradient_buckets(parameters, {}, 2, 9) == std::vector<GradientBucket>{{1, 3}, {0, 1}});
}

TEST_CASE("the spec's bytes are gradients of the job's dtype, and a group of one rank has one bucket a component") {
  JobSpec spec;
  GroupSpec group;
  spec.training.bucket_bytes = 400;
  CHECK(most_bucket_elements(spec, group) == 0);
  group.mesh.set(Axis::kDp, 2);
  CHECK(most_bucket_elements(spec, group) == 100);
  spec.model.dtype = DType::kBf16Pure;
  CHECK(most_bucket_elements(spec, group) == 200);
}
