#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "actors/models/text_decoder.h"
#include "base/model/model_config.h"

/// Runs the text decoder of one reference case on the ranks of a real Gloo world, one thread a rank.
namespace troupe::testing {

/// A file written by text_reference.py.
struct TextCase {
  ModelConfig config;
  std::map<std::string, at::Tensor> tensors;
  TextUnitBatch batch;
  at::Tensor vision_rows;
  double scale = 1.0 / 29;
  const at::Tensor& at(const std::string& name) const { return tensors.at(name); }
};
TextCase load_text_case(const std::string& name);

struct TextRunOptions {
  int tp = 1;
  bool sequence = false, frozen = false, want_vision_gradient = true, keep_context = true;
  at::ScalarType dtype = at::kFloat;
  int backward_runs = 1;  // forward and backward pairs; gradients add up
};

/// One rank's results.
struct TextRankRun {
  TextResult result;
  at::Tensor vision_gradient;
  std::vector<int64_t> next_tokens;
  std::map<std::string, at::Tensor> gradients;  // local, as the store holds them
};

struct TextRun {
  std::vector<TextRankRun> ranks;
  std::map<std::string, at::Tensor> gradients;  // global: put together as the declarations say
  bool replicas_equal = true;                   // gradients declared kSame, bit by bit
};
TextRun run_text_case(const TextCase& text_case, const TextRunOptions& options);

/// The vision rows' gradient of the whole unit: rank 0's, or with tensor-sequence parallelism the ranks' one after the
/// other.
at::Tensor whole_vision_gradient(const TextRun& run, bool sequence);

/// Calls `work` on every rank of a world with this tp size, one thread a rank; fails the test when one throws.
void run_on_ranks(int tp, const std::function<void(World&)>& work);

/// Largest difference over the largest absolute element of `expected`.
double relative_difference(const at::Tensor& actual, const at::Tensor& expected);

}  // namespace troupe::testing
