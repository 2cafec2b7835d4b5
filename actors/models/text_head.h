#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "actors/models/text_layer.h"
#include "transport/world/world.h"

/// The vocabulary-parallel head with its cross entropy, on loss rows only. The loss's scale is known when it is
/// computed, so the logits' gradient is used up where it arises and no [L, V] tensor is kept. Source: Megatron-LM
/// (arXiv:1909.08053), section 3, the parallel cross entropy.
namespace troupe {

struct TextHeadInput {
  at::Tensor hidden;        // [L, H] all loss rows behind the final norm, the same on every tp rank
  at::Tensor targets;       // int64 [L]
  at::Tensor loss_weights;  // fp32 [L], of losses and gradients; undefined: 1 each
  TrainedView weight;       // [rows of this rank, H], padding rows included
  int64_t first_token = 0;  // of this rank's rows
  int64_t tokens = 0;       // this rank's rows that are real; the rest is padding and takes no part
  double scale = 1;         // of the gradient
  bool want_gradient = false;
  bool want_predictions = false;
  int64_t chunk_bytes = int64_t{64} << 20;  // bound of the fp32 logits at hand; the same on every tp rank. GPUs want
                                            // more: each chunk reads all weights
};

struct TextHeadOutput {
  std::vector<float> losses;  // [L] weighted, the same on every tp rank
  int64_t correct = 0;
  std::vector<int64_t> predicted;  // [L] with want_predictions; of equal logits the lowest token
  at::Tensor hidden_gradient;      // with want_gradient: this rank's summand [L, H], already scaled
};

/// Adds the weight's gradient. Collectives over `tp`: two (with predictions three) small ones a chunk of rows; the same
/// on every rank. Sums in fp32.
TextHeadOutput text_head(const TextHeadInput& input, Communicator& tp);

}  // namespace troupe
