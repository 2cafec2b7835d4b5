#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "actors/nn/parameter_store.h"
#include "transport/world/world.h"

/// The text decoder of Qwen2.5-VL (embedding, layers, head and loss) on one rank of a dp x tp mesh.
/// Source: Qwen2.5-VL technical report (arXiv:2502.13923); tensor parallelism after Megatron-LM (arXiv:1909.08053),
/// tensor-sequence parallelism after arXiv:2205.05198.
namespace troupe {

/// One text unit of one lane: sequences concatenated without padding between them. S tokens in all; the same on every
/// tp rank. Tensors lie on the CPU (the decoder reads them before any kernel is queued; on a device they cost a
/// synchronisation each).
struct TextUnitBatch {
  at::Tensor ids;                        // int64 [S]
  at::Tensor positions;                  // int64 [3, S] mRoPE rows t, h, w
  std::vector<int64_t> sequence_starts;  // [n + 1], from 0 to S: attention never crosses (samples, even inside a pack)
  at::Tensor loss_rows;                  // int64 [L] rows whose next token is supervised, ascending
  at::Tensor targets;                    // int64 [L] those tokens
  std::vector<int64_t> loss_samples;     // [L] which sample of the unit (0..n-1) each loss row belongs to
  at::Tensor
      vision_positions;  // int64 [T] rows of the sequence that vision rows fill, in the order of the unit's vision rows
  at::Tensor loss_weights{};  // fp32 [L] what each loss row counts in loss and gradient; undefined: 1 each
};

/// With tensor-sequence parallelism rank r of tp holds rows [token_cut(S, tp, r), token_cut(S, tp, r + 1)) of the
/// (padded) sequence. S is padded up to a multiple of tp; the cut may lie past S.
int64_t token_cut(int64_t tokens, int tp, int rank);

struct TextResult {
  double loss_sum = 0;              // weighted sum of token losses of the whole unit; the same on every tp rank
  int64_t correct = 0;              // targets that are the most likely token
  std::vector<double> sample_loss;  // [n] sums by sample
  std::vector<int64_t>
      predicted;  // [L] the most likely token of each loss row; filled when keep_context is false (evaluation)
};

struct TextContext {
  virtual ~TextContext() = default;
};

/// Owner thread only. Collectives over tp, the same on every tp rank of the lane.
class TextDecoder {
 public:
  virtual ~TextDecoder() = default;
  /// vision_rows: without tp_sequence all [T, H] rows of the unit (already gathered over tp); with tp_sequence only the
  /// rows whose vision_positions fall in this rank's cut, in ascending position. `scale` = 1 / N multiplies every
  /// gradient. Head and loss run on loss rows only. keep_context false: evaluation, no backward will follow.
  virtual TextResult forward(const TextUnitBatch& batch, const at::Tensor& vision_rows, double scale, bool keep_context,
                             std::unique_ptr<TextContext>& context) = 0;
  /// Adds weight gradients to the store's gradient buffers. Returns the gradient of `vision_rows`, same shape, when
  /// `want_vision_gradient` (without tp_sequence: complete and bitwise equal on every tp rank), else undefined.
  virtual at::Tensor backward(std::unique_ptr<TextContext> context, bool want_vision_gradient) = 0;
  /// Greedy next-token ids after the last row of each sequence, for evaluation: int64 [n].
  virtual at::Tensor next_tokens(const TextUnitBatch& batch, const at::Tensor& vision_rows) = 0;
};

/// `world` has communicators over {tp}. `store` holds the component text (store.options().tp_sequence selects
/// tensor-sequence parallelism).
std::unique_ptr<TextDecoder> create_text_decoder(const ModelConfig& config, ParameterStore& store, World& world);

}  // namespace troupe
