#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <tuple>
#include <vector>

/// The differentiable building blocks that the vision encoder and the text decoder share, on CPUs and GPUs.
///
/// Weights are plain tensors (requires_grad false) that live in flat buffers. A function that has weights takes the
/// views of the flat gradient buffers beside them, and its backward ADDS into those views in place; so the autograd
/// graph carries activations only, and no gradient is copied or accumulated twice. An undefined gradient view means a
/// frozen weight: no work is done for it, and where nothing upstream needs a gradient the graph ends by itself. Inputs
/// need not require a gradient for the weights to get theirs. Gradient views are fp32, or the compute dtype
/// (bf16-pure).
///
/// Owner thread only; on GPUs everything is ordered on the current stream. Compute dtype fp32 or bf16 (sums are taken
/// in fp32). Zero rows are legal everywhere. Results are bitwise repeatable for a fixed number of threads. Letters: N
/// rows, I and O features in and out, h query heads, g key/value heads, d head size.
namespace troupe {

/// x [N, I], weight [O, I], bias [O] or undefined -> x weight^T + bias, [N, O]. Saves x.
at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                  const at::Tensor& weight_gradient, const at::Tensor& bias_gradient);

/// x [N, H], weight [H] -> x / sqrt(mean(x^2) + eps) * weight. Saves x and [N] fp32.
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& weight_gradient, double eps);

/// A residual addition with the norm behind it, in one pass each way.
struct NormedSum {
  at::Tensor sum;     // [N, H] x + residual, the next residual stream
  at::Tensor normed;  // [N, H] rms_norm(sum)
};
NormedSum add_rms_norm(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight,
                       const at::Tensor& weight_gradient, double eps);

/// gate_up [N, 2 I], gate in the first I columns -> silu(gate) * up, [N, I]. Saves its input only.
at::Tensor swiglu(const at::Tensor& gate_up);

/// The exact GELU (by the error function). Saves its input.
at::Tensor gelu(const at::Tensor& x);

/// Splits the packed projection [N, (h + 2 g) d] (all query heads, all key heads, all value heads) and rotates queries
/// and keys by halves: out = x * cos + rotate_half(x) * sin. cos, sin: [N, d] fp32, no gradient. Returns q [N, h, d], k
/// [N, g, d], v [N, g, d], contiguous. One pass.
std::tuple<at::Tensor, at::Tensor, at::Tensor> rope_split(const at::Tensor& qkv, const at::Tensor& cos,
                                                          const at::Tensor& sin, int64_t query_heads, int64_t kv_heads);

/// Attention inside each segment of rows [cu_seqlens[i], cu_seqlens[i + 1]), never across; no padding. q [N, h, d], k
/// and v [N, g, d] -> [N, h, d]. Saves q, k, v, the output and [h, N] fp32. `kv_of_query`: the key/value head of each
/// query head (ascending); empty: h % g == 0, equal shares in order. Runs of adjacent segments of equal length are
/// worked on together. Empty segments are legal. Source: FlashAttention-2 (arXiv:2307.08691), as ATen ships it.
at::Tensor varlen_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const std::vector<int64_t>& cu_seqlens, bool causal, double scale,
                            const std::vector<int64_t>& kv_of_query = {});

/// rows [N, ...] -> rows[index], differentiable; index int64 without repeats (the gradient is a scatter, not a sum).
at::Tensor take_rows(const at::Tensor& rows, const at::Tensor& index);

}  // namespace troupe
