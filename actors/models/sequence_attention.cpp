#include "actors/models/sequence_attention.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <array>
#include <memory>

#include "actors/kernels/attention.h"
#include "base/result.h"

namespace troupe {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

/// Moves tensors between "my rows, all heads" and "all rows, my heads".
class HeadExchange {
 public:
  HeadExchange(Communicator& communicator, std::vector<int64_t> rank_rows)
      : communicator_(communicator),
        rank_rows_(std::move(rank_rows)),
        local_rows_(rank_rows_[static_cast<size_t>(communicator.rank())]) {
    for (int64_t rows : rank_rows_) all_rows_ += rows;
    my_share_.assign(rank_rows_.size(), local_rows_);
  }

  /// Each part [local rows, h, d] -> [all rows, parts, h / size, d].
  at::Tensor to_heads(const std::vector<at::Tensor>& parts) const {
    const int64_t size = communicator_.size(), heads = parts[0].size(1) / size, d = parts[0].size(2),
                  n = static_cast<int64_t>(parts.size());
    at::Tensor sent = at::empty({size, local_rows_, n, heads, d}, parts[0].options());
    for (int64_t i = 0; i < n; ++i) {
      sent.select(2, i).copy_(parts[static_cast<size_t>(i)].view({local_rows_, size, heads, d}).transpose(0, 1));
    }
    sent = sent.view({size * local_rows_, n, heads, d});
    at::Tensor received = at::empty({all_rows_, n, heads, d}, sent.options());
    communicator_.all_to_all_rows(received, sent, rank_rows_, my_share_);
    return received;
  }

  /// [all rows, parts, h / size, d] -> each part [local rows, h, d].
  std::vector<at::Tensor> to_rows(const at::Tensor& x) const {
    const int64_t size = communicator_.size(), n = x.size(1), heads = x.size(2), d = x.size(3);
    at::Tensor received = at::empty({size * local_rows_, n, heads, d}, x.options());
    communicator_.all_to_all_rows(received, x, my_share_, rank_rows_);
    received = received.view({size, local_rows_, n, heads, d});
    std::vector<at::Tensor> parts;
    for (int64_t i = 0; i < n; ++i)
      parts.push_back(received.select(2, i).transpose(0, 1).contiguous().view({local_rows_, size * heads, d}));
    return parts;
  }

 private:
  Communicator& communicator_;
  std::vector<int64_t> rank_rows_;
  int64_t local_rows_ = 0, all_rows_ = 0;
  std::vector<int64_t> my_share_;  // my rows go to every rank, each with that rank's heads
};

/// What the backward pass needs beside tensors.
struct Setting : torch::CustomClassHolder {
  HeadExchange exchange;
  std::vector<int64_t> cu_seqlens;
  double scale;
  Setting(Communicator& communicator, std::vector<int64_t> rank_rows, std::vector<int64_t> starts, double s)
      : exchange(communicator, std::move(rank_rows)), cu_seqlens(std::move(starts)), scale(s) {}
  AttentionPlan plan() const { return {cu_seqlens, false, scale}; }
};

class SequenceAttentionFunction : public torch::autograd::Function<SequenceAttentionFunction> {
 public:
  static Variable forward(AutogradContext* ctx, const Variable& q, const Variable& k, const Variable& v,
                          const c10::intrusive_ptr<Setting>& setting) {
    const at::Tensor qkv = setting->exchange.to_heads({q, k, v});
    const at::Tensor qh = qkv.select(1, 0), kh = qkv.select(1, 1), vh = qkv.select(1, 2);
    const AttentionResult result =
        q.is_cpu() ? cpu::attention(qh, kh, vh, setting->plan()) : cuda::attention(qh, kh, vh, setting->plan());
    variable_list saved = {qkv, result.out};
    saved.insert(saved.end(), result.saved.begin(), result.saved.end());
    ctx->save_for_backward(std::move(saved));
    ctx->saved_data["setting"] = c10::IValue::make_capsule(setting);
    return setting->exchange.to_rows(result.out.unsqueeze(1))[0];
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const auto setting = c10::static_intrusive_pointer_cast<Setting>(ctx->saved_data["setting"].toCapsule());
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor& qkv = saved[0];
    const at::Tensor qh = qkv.select(1, 0), kh = qkv.select(1, 1), vh = qkv.select(1, 2);
    const at::Tensor grad_out = setting->exchange.to_heads({gradients[0].contiguous()}).squeeze(1);
    const AttentionResult result{saved[1], {saved.begin() + 2, saved.end()}};
    const AttentionGradients grads = qkv.is_cpu()
                                         ? cpu::attention_backward(grad_out, qh, kh, vh, result, setting->plan())
                                         : cuda::attention_backward(grad_out, qh, kh, vh, result, setting->plan());
    at::Tensor packed = at::empty_like(qkv);
    packed.select(1, 0).copy_(grads.q);
    packed.select(1, 1).copy_(grads.k);
    packed.select(1, 2).copy_(grads.v);
    const std::vector<at::Tensor> rows = setting->exchange.to_rows(packed);
    return {rows[0], rows[1], rows[2], Variable()};
  }
};

}  // namespace

at::Tensor sequence_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                              const std::vector<int64_t>& cu_seqlens, const std::vector<int64_t>& rank_rows,
                              double scale, Communicator& communicator) {
  TROUPE_CHECK(q.size(1) % communicator.size() == 0 && k.size(1) == q.size(1) && v.size(1) == q.size(1));
  TROUPE_CHECK(static_cast<int>(rank_rows.size()) == communicator.size());
  TROUPE_CHECK(q.size(0) == rank_rows[static_cast<size_t>(communicator.rank())]);
  return SequenceAttentionFunction::apply(q, k, v,
                                          c10::make_intrusive<Setting>(communicator, rank_rows, cu_seqlens, scale));
}

}  // namespace troupe
