#include "actors/kernels/row_functions_cuda.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/sum.h>
#include <c10/cuda/CUDAStream.h>

#include "actors/kernels/row_kernels.h"
#include "base/result.h"

namespace troupe::cuda {
namespace {

bool is_row_type(const at::Tensor& x) { return x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16; }

RowType row_type(const at::Tensor& x) {
  TROUPE_CHECK(x.is_contiguous() && is_row_type(x));
  return x.scalar_type() == at::kFloat ? RowType::kFp32 : RowType::kBf16;
}

void* data(const at::Tensor& x) { return x.defined() ? x.data_ptr() : nullptr; }

Stream stream_of(const at::Tensor& x) { return c10::cuda::getCurrentCUDAStream(x.device().index()).stream(); }

void check(const char* refused) {
  if (refused != nullptr) throw ErrorException(internal_error(std::string("CUDA refused a kernel: ") + refused));
}

}  // namespace

bool takes_norm(const at::Tensor& x) { return is_row_type(x) && norm_width_fits(row_type(x), x.size(1)); }
bool takes_swiglu(const at::Tensor& gate_up) { return is_row_type(gate_up) && gate_up.size(1) / 2 % 4 == 0; }
bool takes_rope(const at::Tensor& rows, int64_t head_dim) { return is_row_type(rows) && head_dim % 8 == 0; }
bool takes_squares(const at::Tensor& x) {
  return is_row_type(x) && reinterpret_cast<uintptr_t>(x.const_data_ptr()) % 16 == 0;
}

RmsNormResult rms_norm_rows(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight, double eps) {
  const RowType type = row_type(x);
  TROUPE_CHECK(row_type(weight) == type && (!residual.defined() || row_type(residual) == type));
  RmsNormResult r{residual.defined() ? at::empty_like(x) : at::Tensor(), at::empty_like(x),
                  at::empty({x.size(0)}, x.options().dtype(at::kFloat))};
  check(rms_forward(type,
                    {data(x), data(residual), data(weight), data(r.sum), data(r.y), r.inverse.data_ptr<float>(),
                     x.size(0), x.size(1), static_cast<float>(eps)},
                    stream_of(x)));
  return r;
}

at::Tensor rms_norm_rows_backward(const at::Tensor& grad_y, const at::Tensor& grad_sum, const at::Tensor& x,
                                  const at::Tensor& weight, const at::Tensor& inverse, at::Tensor weight_gradient,
                                  bool want_grad_x) {
  const RowType type = row_type(x);
  TROUPE_CHECK(row_type(grad_y) == type && (!grad_sum.defined() || row_type(grad_sum) == type));
  const int64_t rows = x.size(0), width = x.size(1);
  at::Tensor grad_x = want_grad_x ? at::empty_like(x) : at::Tensor(), partial;
  if (weight_gradient.defined())
    partial = at::empty({norm_backward_blocks(rows), width}, x.options().dtype(at::kFloat));
  check(rms_backward(type,
                     {data(grad_y), data(grad_sum), data(x), data(weight), inverse.data_ptr<float>(), data(grad_x),
                      partial.defined() ? partial.data_ptr<float>() : nullptr, rows, width},
                     stream_of(x)));
  if (partial.defined()) weight_gradient.add_(at::sum(partial, 0));
  return grad_x;
}

at::Tensor swiglu_rows(const at::Tensor& gate_up) {
  const int64_t rows = gate_up.size(0), width = gate_up.size(1) / 2;
  at::Tensor y = at::empty({rows, width}, gate_up.options());
  check(swiglu_forward(row_type(gate_up), {data(gate_up), nullptr, data(y), nullptr, rows, width}, stream_of(gate_up)));
  return y;
}

at::Tensor swiglu_rows_backward(const at::Tensor& grad_y, const at::Tensor& gate_up) {
  TROUPE_CHECK(row_type(grad_y) == row_type(gate_up));
  at::Tensor grad = at::empty_like(gate_up);
  check(swiglu_backward(row_type(gate_up),
                        {data(gate_up), data(grad_y), nullptr, data(grad), gate_up.size(0), gate_up.size(1) / 2},
                        stream_of(gate_up)));
  return grad;
}

void rope_split_rows(const RopeTensors& a, bool inverse) {
  const RowType type = row_type(a.packed);
  TROUPE_CHECK(row_type(a.q) == type && row_type(a.k) == type && row_type(a.v) == type);
  TROUPE_CHECK(row_type(a.cos) == RowType::kFp32 && row_type(a.sin) == RowType::kFp32);
  const int64_t rows = a.q.size(0), heads = a.q.size(1), kv = a.k.size(1), d = a.q.size(2);
  TROUPE_CHECK(a.cos.size(0) == rows && a.cos.size(1) == d && a.packed.size(1) == (heads + 2 * kv) * d);
  check(rope_split(type,
                   {data(a.packed), data(a.q), data(a.k), data(a.v), a.cos.const_data_ptr<float>(),
                    a.sin.const_data_ptr<float>(), rows, heads, kv, d, inverse},
                   stream_of(a.packed)));
}

at::Tensor squares(const at::Tensor& x) {
  const at::Tensor partial = at::empty({square_blocks(x.numel()), 2}, x.options().dtype(at::kDouble));
  check(squares(row_type(x), data(x), x.numel(), partial.data_ptr<double>(), stream_of(x)));
  return at::sum(partial, 0);
}

}  // namespace troupe::cuda
