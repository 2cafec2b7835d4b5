#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <vector>

#include "actors/models/vision_encoder.h"

/// Runs the vision encoder on the images of the reference file, on the ranks of a real Gloo world, one thread a rank.
namespace troupe::testing {

/// A file written by vision_reference.py.
struct VisionCase {
  ModelConfig config;
  std::map<std::string, at::Tensor> tensors;
  std::vector<IndexedImage> images;
  const at::Tensor& at(const std::string& name) const { return tensors.at(name); }
};
VisionCase load_vision_case();

struct VisionRunOptions {
  int sp = 1;
  std::vector<int> images = {};          // which images of the case; empty: all
  bool no_images = false;                // an empty unit
  std::vector<std::string> frozen = {};  // components
  at::ScalarType dtype = at::kFloat;
  bool keep_context = true;
  int passes = 1;  // forward and backward pairs; gradients add up
};

struct VisionRun {
  at::Tensor rows;  // reading order
  std::map<std::string, at::Tensor>
      gradients;                   // by classic name, summed over the ranks; frozen parameters are left out
  std::vector<int64_t> rank_rows;  // merged rows of each rank
  std::vector<bool> has_context;   // by rank
};
VisionRun run_vision_case(const VisionCase& vision_case, const VisionRunOptions& options);

/// Largest difference over the largest absolute element of `expected`.
double relative_difference(const at::Tensor& actual, const at::Tensor& expected);

}  // namespace troupe::testing
