#pragma once

#include "actors/kernels/row_loops.h"

struct CUstream_st;

/// The row-wise kernels on a GPU, on raw rows; no LibTorch here, so that nvcc reads little. Arguments are those of
/// row_loops.h with device addresses; fp32 and bf16, arithmetic in fp32. Each call launches on `stream` and returns; a
/// refused launch is returned as its text, else null. Tensors start at multiples of 16 bytes.
namespace troupe::cuda {

using Stream = CUstream_st*;

/// 16 bytes hold so many elements.
constexpr int64_t elements_of_16_bytes(RowType type) { return type == RowType::kFp32 ? 4 : 8; }

/// Whether the norms' kernels take rows so wide.
bool norm_width_fits(RowType type, int64_t width);
/// Blocks of the norm's backward pass, each of which writes one row of partial weight gradients.
int64_t norm_backward_blocks(int64_t rows);

const char* rms_forward(RowType type, const RmsForward& a, Stream stream);
/// a.weight_gradient: partial sums [norm_backward_blocks(rows), width], written whole; or null.
const char* rms_backward(RowType type, const RmsBackward& a, Stream stream);

/// For widths that are multiples of 4.
const char* swiglu_forward(RowType type, const Swiglu& a, Stream stream);
const char* swiglu_backward(RowType type, const Swiglu& a, Stream stream);

/// For head sizes that are multiples of 8.
const char* rope_split(RowType type, const RopeSplit& a, Stream stream);

/// Rows of partial results of `squares`.
int64_t square_blocks(int64_t n);
/// Per block the sum of squares and the count of non-finite values of its share of x [n]: partial [square_blocks(n), 2]
/// fp64.
const char* squares(RowType type, const void* x, int64_t n, double* partial, Stream stream);

}  // namespace troupe::cuda
