#include "actors/kernels/row_functions_cpu.h"

#include <ATen/Parallel.h>
#include <ATen/ops/add.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "actors/kernels/row_loops.h"
#include "base/result.h"

namespace troupe::cpu {
namespace {

/// Rows in one piece of a sum over rows: a constant, so that sums do not depend on the number of threads.
constexpr int64_t kPieceRows = 128;
/// Elements below which starting a thread costs more than it saves.
constexpr int64_t kGrainElements = 1 << 14;

RowType row_type(const at::Tensor& x) {
  TROUPE_CHECK(x.is_contiguous() && (x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16));
  return x.scalar_type() == at::kFloat ? RowType::kFp32 : RowType::kBf16;
}

int64_t grain(int64_t width) { return std::max<int64_t>(1, kGrainElements / std::max<int64_t>(1, width)); }

/// The address of row `row` of x [N, width], or null when x is undefined.
void* at_row(const at::Tensor& x, int64_t row, int64_t width) {
  if (!x.defined()) return nullptr;
  return static_cast<char*>(x.data_ptr()) + row * width * static_cast<int64_t>(x.element_size());
}

/// Runs piece(begin, end, partial sums [width]) over fixed pieces of `rows` and adds the partial sums to `sums` in
/// order.
template <typename Piece>
void sum_pieces(int64_t rows, int64_t width, at::Tensor sums, Piece piece) {
  const int64_t pieces = (rows + kPieceRows - 1) / kPieceRows;
  at::Tensor partial = at::zeros({pieces, width}, at::kFloat);
  float* data = partial.data_ptr<float>();
  at::parallel_for(0, pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) piece(p * kPieceRows, std::min(rows, (p + 1) * kPieceRows), data + p * width);
  });
  if (pieces > 0) sums.add_(pieces == 1 ? partial[0] : at::sum(partial, 0));
}

}  // namespace

RmsNormResult rms_norm_rows(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight, double eps) {
  const RowType type = row_type(x);
  TROUPE_CHECK(row_type(weight) == type && (!residual.defined() || row_type(residual) == type));
  const int64_t rows = x.size(0), width = x.size(1);
  RmsNormResult r{residual.defined() ? at::empty_like(x) : at::Tensor(), at::empty_like(x),
                  at::empty({rows}, at::kFloat)};
  at::parallel_for(0, rows, grain(width), [&](int64_t begin, int64_t end) {
    row_loops().rms_forward(type, {at_row(x, begin, width), at_row(residual, begin, width), weight.data_ptr(),
                                   at_row(r.sum, begin, width), at_row(r.y, begin, width),
                                   r.inverse.data_ptr<float>() + begin, end - begin, width, static_cast<float>(eps)});
  });
  return r;
}

at::Tensor rms_norm_rows_backward(const at::Tensor& grad_y, const at::Tensor& grad_sum, const at::Tensor& x,
                                  const at::Tensor& weight, const at::Tensor& inverse, at::Tensor weight_gradient,
                                  bool want_grad_x) {
  const RowType type = row_type(x);
  TROUPE_CHECK(row_type(grad_y) == type && (!grad_sum.defined() || row_type(grad_sum) == type));
  const int64_t rows = x.size(0), width = x.size(1);
  at::Tensor grad_x = want_grad_x ? at::empty_like(x) : at::Tensor();
  const auto piece = [&](int64_t begin, int64_t end, float* sums) {
    row_loops().rms_backward(
        type, {at_row(grad_y, begin, width), at_row(grad_sum, begin, width), at_row(x, begin, width), weight.data_ptr(),
               inverse.data_ptr<float>() + begin, at_row(grad_x, begin, width), sums, end - begin, width});
  };
  if (weight_gradient.defined()) {
    sum_pieces(rows, width, std::move(weight_gradient), piece);
  } else if (want_grad_x) {
    at::parallel_for(0, rows, grain(width), [&](int64_t begin, int64_t end) { piece(begin, end, nullptr); });
  }
  return grad_x;
}

at::Tensor swiglu_rows(const at::Tensor& gate_up) {
  const RowType type = row_type(gate_up);
  const int64_t rows = gate_up.size(0), width = gate_up.size(1) / 2;
  at::Tensor y = at::empty({rows, width}, gate_up.options());
  at::parallel_for(0, rows, grain(width), [&](int64_t begin, int64_t end) {
    row_loops().swiglu_forward(
        type, {at_row(gate_up, begin, 2 * width), nullptr, at_row(y, begin, width), nullptr, end - begin, width});
  });
  return y;
}

at::Tensor swiglu_rows_backward(const at::Tensor& grad_y, const at::Tensor& gate_up) {
  const RowType type = row_type(gate_up);
  TROUPE_CHECK(row_type(grad_y) == type);
  const int64_t rows = gate_up.size(0), width = gate_up.size(1) / 2;
  at::Tensor grad = at::empty_like(gate_up);
  at::parallel_for(0, rows, grain(width), [&](int64_t begin, int64_t end) {
    row_loops().swiglu_backward(type, {at_row(gate_up, begin, 2 * width), at_row(grad_y, begin, width), nullptr,
                                       at_row(grad, begin, 2 * width), end - begin, width});
  });
  return grad;
}

void rope_split_rows(const RopeTensors& a, bool inverse) {
  const RowType type = row_type(a.packed);
  TROUPE_CHECK(row_type(a.q) == type && row_type(a.k) == type && row_type(a.v) == type);
  TROUPE_CHECK(row_type(a.cos) == RowType::kFp32 && row_type(a.sin) == RowType::kFp32);
  const int64_t rows = a.q.size(0), heads = a.q.size(1), kv = a.k.size(1), d = a.q.size(2),
                width = (heads + 2 * kv) * d;
  TROUPE_CHECK(a.cos.size(0) == rows && a.cos.size(1) == d && a.packed.size(1) == width);
  at::parallel_for(0, rows, grain(width), [&](int64_t begin, int64_t end) {
    row_loops().rope_split(
        type, {at_row(a.packed, begin, width), at_row(a.q, begin, heads * d), at_row(a.k, begin, kv * d),
               at_row(a.v, begin, kv * d), a.cos.data_ptr<float>() + begin * d, a.sin.data_ptr<float>() + begin * d,
               end - begin, heads, kv, d, inverse});
  });
}

void add_column_sums(const at::Tensor& x, at::Tensor sums) {
  const RowType type = row_type(x);
  const int64_t width = x.size(1);
  sum_pieces(x.size(0), width, std::move(sums), [&](int64_t begin, int64_t end, float* partial) {
    row_loops().add_column_sums(type, at_row(x, begin, width), end - begin, width, partial);
  });
}

}  // namespace troupe::cpu
