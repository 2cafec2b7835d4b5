#pragma once

#include "transport/world/world.h"

namespace troupe {

/// A communicator of one rank: what a group has over axes of size 1. Copies in to out and reaches nobody.
class SoloCommunicator final : public Communicator {
 public:
  int size() const override { return 1; }
  int rank() const override { return 0; }
  void all_reduce_sum(at::Tensor&) override {}
  void all_reduce_max(at::Tensor&) override {}
  void all_gather(at::Tensor& out, const at::Tensor& in) override;
  void all_gather_rows(at::Tensor& out, const at::Tensor& in, const std::vector<int64_t>& rows) override;
  void reduce_scatter_sum(at::Tensor& out, const at::Tensor& in) override;
  void reduce_scatter_rows_sum(at::Tensor& out, const at::Tensor& in, const std::vector<int64_t>& rows) override;
  void all_to_all_rows(at::Tensor& out, const at::Tensor& in, const std::vector<int64_t>& receive_rows,
                       const std::vector<int64_t>& send_rows) override;
  void broadcast(at::Tensor&, int) override {}
};

}  // namespace troupe
