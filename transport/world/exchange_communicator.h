#pragma once

#include <vector>

#include "transport/world/world.h"

namespace troupe {

/// Point-to-point transfers between the members of one communicator: all that a backend on CPUs has to offer for the
/// collectives.
class PeerExchange {
 public:
  /// A contiguous tensor for or from `peer`, a position in the communicator other than this rank's.
  struct Transfer {
    int peer = 0;
    at::Tensor tensor;
  };
  virtual ~PeerExchange() = default;
  /// Carries out all transfers at once and returns when every one has ended; empty tensors are neither sent nor
  /// received. Throws ErrorException naming the peer.
  virtual void exchange(const std::vector<Transfer>& sends, const std::vector<Transfer>& receives) = 0;
};

/// The collectives over direct exchanges: every rank talks to every other, one round for gathers and all-to-all, two
/// for reductions of large tensors. Sums run in rank order, in fp32 for bf16, so that they do not depend on arrival,
/// and each element is summed in one way whatever the size: all ranks end with the same bits, and a repeated run too.
/// Cost of a rank with n members: gathers send (n-1) x in, reduce-scatter in x (n-1)/n, all-reduce 2 x in x (n-1)/n.
class ExchangeCommunicator final : public Communicator {
 public:
  enum class Reduction { kSum, kMax };
  /// `name` is for errors, such as "world g1/text over tp".
  ExchangeCommunicator(std::string name, int rank, int size, std::unique_ptr<PeerExchange> exchange);
  int size() const override { return size_; }
  int rank() const override { return rank_; }
  void all_reduce_sum(at::Tensor& tensor) override;
  void all_reduce_max(at::Tensor& tensor) override;
  void all_gather(at::Tensor& out, const at::Tensor& in) override;
  void all_gather_rows(at::Tensor& out, const at::Tensor& in, const std::vector<int64_t>& rows) override;
  void reduce_scatter_sum(at::Tensor& out, const at::Tensor& in) override;
  void reduce_scatter_rows_sum(at::Tensor& out, const at::Tensor& in, const std::vector<int64_t>& rows) override;
  void all_to_all_rows(at::Tensor& out, const at::Tensor& in, const std::vector<int64_t>& receive_rows,
                       const std::vector<int64_t>& send_rows) override;
  void broadcast(at::Tensor& tensor, int root) override;

 private:
  void all_reduce(at::Tensor& tensor, Reduction reduction);
  void gather(at::Tensor& out, const at::Tensor& in, const std::vector<int64_t>& rows);
  void reduce_scatter(at::Tensor& out, const at::Tensor& in, const std::vector<int64_t>& rows, Reduction reduction);
  void require(bool condition, const std::string& what) const;

  std::string name_;
  int rank_, size_;
  std::unique_ptr<PeerExchange> exchange_;
};

}  // namespace troupe
