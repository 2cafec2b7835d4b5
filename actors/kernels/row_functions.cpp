#include "actors/kernels/row_functions.h"

#include <ATen/ops/add.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/sum.h>

#include "actors/kernels/row_functions_cpu.h"
#include "actors/kernels/row_functions_cuda.h"

namespace troupe {
namespace {

/// Compositions of ATen operators, for any device. Sums in fp32.
namespace composed {

RmsNormResult rms_norm_rows(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight, double eps) {
  RmsNormResult r;
  if (residual.defined()) r.sum = at::add(x, residual);
  const at::Tensor wide = (residual.defined() ? r.sum : x).to(at::kFloat);
  r.inverse = at::rsqrt(at::mean(wide.square(), -1).add_(eps));
  r.y = wide.mul(r.inverse.unsqueeze(1)).mul_(weight).to(x.scalar_type());
  return r;
}

at::Tensor rms_norm_rows_backward(const at::Tensor& grad_y, const at::Tensor& grad_sum, const at::Tensor& x,
                                  const at::Tensor& weight, const at::Tensor& inverse, at::Tensor weight_gradient,
                                  bool want_grad_x) {
  const at::Tensor wide_grad = grad_y.to(at::kFloat), unit = x.to(at::kFloat).mul(inverse.unsqueeze(1));
  if (weight_gradient.defined()) weight_gradient.add_(at::sum(wide_grad.mul(unit), 0));
  if (!want_grad_x) return {};
  const at::Tensor inner = wide_grad.mul(weight);
  at::Tensor grad = inner.sub(unit.mul(at::mean(inner.mul(unit), -1, true))).mul_(inverse.unsqueeze(1));
  if (grad_sum.defined()) grad.add_(grad_sum);
  return grad.to(x.scalar_type());
}

at::Tensor swiglu_rows(const at::Tensor& gate_up) {
  const int64_t width = gate_up.size(1) / 2;
  return at::silu(gate_up.narrow(1, 0, width).to(at::kFloat))
      .mul_(gate_up.narrow(1, width, width))
      .to(gate_up.scalar_type());
}

at::Tensor swiglu_rows_backward(const at::Tensor& grad_y, const at::Tensor& gate_up) {
  const int64_t width = gate_up.size(1) / 2;
  const at::Tensor gate = gate_up.narrow(1, 0, width).to(at::kFloat), s = at::sigmoid(gate), d = grad_y.to(at::kFloat);
  at::Tensor grad = at::empty_like(gate_up);
  grad.narrow(1, width, width).copy_(d.mul(gate).mul_(s));
  grad.narrow(1, 0, width)
      .copy_(d.mul(gate_up.narrow(1, width, width)).mul_(s).mul_(gate.mul(s.neg().add_(1)).add_(1)));
  return grad;
}

at::Tensor rotate(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin, bool inverse) {
  const int64_t half = x.size(2) / 2;
  const at::Tensor wide = x.to(at::kFloat), c = cos.unsqueeze(1);
  const at::Tensor s = inverse ? at::cat({sin.narrow(1, half, half), sin.narrow(1, 0, half).neg()}, 1).unsqueeze(1)
                               : at::cat({sin.narrow(1, 0, half).neg(), sin.narrow(1, half, half)}, 1).unsqueeze(1);
  const at::Tensor swapped = at::cat({wide.narrow(2, half, half), wide.narrow(2, 0, half)}, 2);
  return wide.mul(c).add_(swapped.mul_(s)).to(x.scalar_type());
}

}  // namespace composed
}  // namespace

RmsNormResult rms_norm_rows(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight, double eps) {
  if (x.is_cpu()) return cpu::rms_norm_rows(x, residual, weight, eps);
  if (cuda::takes_norm(x)) return cuda::rms_norm_rows(x, residual, weight, eps);
  return composed::rms_norm_rows(x, residual, weight, eps);
}

at::Tensor rms_norm_rows_backward(const at::Tensor& grad_y, const at::Tensor& grad_sum, const at::Tensor& x,
                                  const at::Tensor& weight, const at::Tensor& inverse, at::Tensor weight_gradient,
                                  bool want_grad_x) {
  const auto backward = x.is_cpu()            ? &cpu::rms_norm_rows_backward
                        : cuda::takes_norm(x) ? &cuda::rms_norm_rows_backward
                                              : &composed::rms_norm_rows_backward;
  return backward(grad_y, grad_sum, x, weight, inverse, std::move(weight_gradient), want_grad_x);
}

at::Tensor swiglu_rows(const at::Tensor& gate_up) {
  if (gate_up.is_cpu()) return cpu::swiglu_rows(gate_up);
  return cuda::takes_swiglu(gate_up) ? cuda::swiglu_rows(gate_up) : composed::swiglu_rows(gate_up);
}

at::Tensor swiglu_rows_backward(const at::Tensor& grad_y, const at::Tensor& gate_up) {
  if (gate_up.is_cpu()) return cpu::swiglu_rows_backward(grad_y, gate_up);
  return cuda::takes_swiglu(gate_up) ? cuda::swiglu_rows_backward(grad_y, gate_up)
                                     : composed::swiglu_rows_backward(grad_y, gate_up);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> rope_split_rows(const at::Tensor& qkv, const at::Tensor& cos,
                                                               const at::Tensor& sin, int64_t query_heads,
                                                               int64_t kv_heads) {
  const int64_t rows = qkv.size(0), heads = query_heads + 2 * kv_heads, d = cos.size(1);
  if (qkv.is_cpu() || cuda::takes_rope(qkv, d)) {
    at::Tensor q = at::empty({rows, query_heads, d}, qkv.options()), k = at::empty({rows, kv_heads, d}, qkv.options());
    at::Tensor v = at::empty_like(k);
    (qkv.is_cpu() ? cpu::rope_split_rows : cuda::rope_split_rows)({qkv, q, k, v, cos, sin}, false);
    return {q, k, v};
  }
  const at::Tensor all = qkv.view({rows, heads, d});
  return {composed::rotate(all.narrow(1, 0, query_heads), cos, sin, false),
          composed::rotate(all.narrow(1, query_heads, kv_heads), cos, sin, false),
          all.narrow(1, query_heads + kv_heads, kv_heads).contiguous()};
}

at::Tensor rope_split_rows_backward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                    const at::Tensor& cos, const at::Tensor& sin) {
  const int64_t rows = q.size(0), query_heads = q.size(1), kv_heads = k.size(1), d = q.size(2),
                heads = query_heads + 2 * kv_heads;
  at::Tensor packed = at::empty({rows, heads * d}, q.options());
  if (q.is_cpu() || cuda::takes_rope(q, d)) {
    (q.is_cpu() ? cpu::rope_split_rows : cuda::rope_split_rows)({packed, q, k, v, cos, sin}, true);
    return packed;
  }
  const at::Tensor all = packed.view({rows, heads, d});
  all.narrow(1, 0, query_heads).copy_(composed::rotate(q, cos, sin, true));
  all.narrow(1, query_heads, kv_heads).copy_(composed::rotate(k, cos, sin, true));
  all.narrow(1, query_heads + kv_heads, kv_heads).copy_(v);
  return packed;
}

void add_column_sums(const at::Tensor& x, at::Tensor sums) {
  if (x.is_cpu()) {
    cpu::add_column_sums(x, std::move(sums));
  } else {
    sums.add_(at::sum(x, 0, false, at::kFloat));
  }
}

at::Tensor squares_and_non_finite(const at::Tensor& x) {
  if (x.is_cuda() && cuda::takes_squares(x)) return cuda::squares(x);
  return at::stack({x.to(at::kFloat).square().sum(at::kDouble), at::isfinite(x).logical_not_().sum(at::kDouble)});
}

}  // namespace troupe
