#include "transport/world/solo_communicator.h"

namespace troupe {
namespace {

/// Out and in may be one tensor; a copy onto itself is left out.
void copy(at::Tensor& out, const at::Tensor& in) {
  if (out.data_ptr() != in.data_ptr()) out.copy_(in);
}

class SoloWorld final : public World {
 public:
  const Mesh& mesh() const override { return mesh_; }
  int rank() const override { return 0; }
  Communicator& over(AxisSet) override { return communicator_; }
  Communicator& posted_over(AxisSet) override { return communicator_; }
  int64_t post(std::function<void()> work) override {
    work();
    return 0;
  }
  void wait_posted(int64_t) override {}
  void abort() override {}

 private:
  Mesh mesh_;
  SoloCommunicator communicator_;
};

}  // namespace

void SoloCommunicator::all_gather(at::Tensor& out, const at::Tensor& in) { copy(out, in); }
void SoloCommunicator::all_gather_rows(at::Tensor& out, const at::Tensor& in, const std::vector<int64_t>&) {
  copy(out, in);
}
void SoloCommunicator::reduce_scatter_sum(at::Tensor& out, const at::Tensor& in) { copy(out, in); }
void SoloCommunicator::reduce_scatter_rows_sum(at::Tensor& out, const at::Tensor& in, const std::vector<int64_t>&) {
  copy(out, in);
}
void SoloCommunicator::all_to_all_rows(at::Tensor& out, const at::Tensor& in, const std::vector<int64_t>&,
                                       const std::vector<int64_t>&) {
  copy(out, in);
}

std::unique_ptr<World> create_solo_world() { return std::make_unique<SoloWorld>(); }

}  // namespace troupe
