#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <map>

#include "transport/nccl/nccl_comm.h"
#include "transport/world/exchange_communicator.h"
#include "transport/world/solo_communicator.h"

/// Collectives are put on the caller's current stream, so that they need no events of their own; who wants overlap
/// changes the stream.
namespace troupe {
namespace {

ncclDataType_t nccl_type(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return ncclFloat32;
    case at::kBFloat16:
      return ncclBfloat16;
    case at::kDouble:
      return ncclFloat64;
    case at::kLong:
      return ncclInt64;
    default:
      throw ErrorException(
          invalid_argument(std::string("NCCL world: tensors of type ") + c10::toString(type) + " are not exchanged"));
  }
}

void run(NcclComm& comm, const std::function<ncclResult_t(ncclComm_t)>& calls) {
  const Status status = comm.enqueue(calls);
  if (!status.ok()) throw ErrorException(status.error());
}

size_t count(const at::Tensor& tensor) { return static_cast<size_t>(tensor.numel()); }

/// All transfers of an exchange as one NCCL group.
class NcclExchange final : public PeerExchange {
 public:
  NcclExchange(NcclComm& comm, int device) : comm_(comm), device_(static_cast<c10::DeviceIndex>(device)) {}
  void exchange(const std::vector<Transfer>& sends, const std::vector<Transfer>& receives) override;

 private:
  NcclComm& comm_;
  c10::DeviceIndex device_;
};

void NcclExchange::exchange(const std::vector<Transfer>& sends, const std::vector<Transfer>& receives) {
  const cudaStream_t stream = c10::cuda::getCurrentCUDAStream(device_);
  run(comm_, [&](ncclComm_t comm) {
    ncclResult_t result = ncclSuccess;
    const auto keep_worst = [&result](ncclResult_t next) {
      if (next != ncclSuccess && next != ncclInProgress) result = next;
    };
    for (const auto& [peer, tensor] : sends) {
      if (tensor.numel() > 0)
        keep_worst(
            ncclSend(tensor.const_data_ptr(), count(tensor), nccl_type(tensor.scalar_type()), peer, comm, stream));
    }
    for (const auto& [peer, tensor] : receives) {
      if (tensor.numel() > 0)
        keep_worst(ncclRecv(tensor.data_ptr(), count(tensor), nccl_type(tensor.scalar_type()), peer, comm, stream));
    }
    return result;
  });
}

/// NCCL's own collectives where it has them, exchanges for the ragged ones.
class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(const std::string& name, int rank, int size, std::unique_ptr<NcclComm> comm, int device)
      : comm_(std::move(comm)),
        device_(static_cast<c10::DeviceIndex>(device)),
        ragged_(name, rank, size, std::make_unique<NcclExchange>(*comm_, device)) {}
  NcclComm& comm() { return *comm_; }
  int size() const override { return ragged_.size(); }
  int rank() const override { return ragged_.rank(); }
  void all_reduce_sum(at::Tensor& tensor) override { all_reduce(tensor, ncclSum); }
  void all_reduce_max(at::Tensor& tensor) override { all_reduce(tensor, ncclMax); }
  void all_gather(at::Tensor& out, const at::Tensor& in) override;
  void all_gather_rows(at::Tensor& out, const at::Tensor& in, const std::vector<int64_t>& rows) override {
    ragged_.all_gather_rows(out, in, rows);
  }
  void reduce_scatter_sum(at::Tensor& out, const at::Tensor& in) override;
  void reduce_scatter_rows_sum(at::Tensor& out, const at::Tensor& in, const std::vector<int64_t>& rows) override {
    ragged_.reduce_scatter_rows_sum(out, in, rows);
  }
  void all_to_all_rows(at::Tensor& out, const at::Tensor& in, const std::vector<int64_t>& receive_rows,
                       const std::vector<int64_t>& send_rows) override {
    ragged_.all_to_all_rows(out, in, receive_rows, send_rows);
  }
  void broadcast(at::Tensor& tensor, int root) override;

 private:
  void all_reduce(at::Tensor& tensor, ncclRedOp_t operation);
  cudaStream_t stream() const { return c10::cuda::getCurrentCUDAStream(device_); }

  std::unique_ptr<NcclComm> comm_;
  c10::DeviceIndex device_;
  ExchangeCommunicator ragged_;
};

void NcclCommunicator::all_reduce(at::Tensor& tensor, ncclRedOp_t operation) {
  if (tensor.numel() == 0) return;
  const ncclDataType_t type = nccl_type(tensor.scalar_type());
  run(*comm_, [&](ncclComm_t comm) {
    return ncclAllReduce(tensor.data_ptr(), tensor.data_ptr(), count(tensor), type, operation, comm, stream());
  });
}

void NcclCommunicator::all_gather(at::Tensor& out, const at::Tensor& in) {
  if (in.numel() == 0) return;
  const ncclDataType_t type = nccl_type(in.scalar_type());
  run(*comm_, [&](ncclComm_t comm) {
    return ncclAllGather(in.const_data_ptr(), out.data_ptr(), count(in), type, comm, stream());
  });
}

void NcclCommunicator::reduce_scatter_sum(at::Tensor& out, const at::Tensor& in) {
  if (in.numel() == 0) return;
  const ncclDataType_t type = nccl_type(in.scalar_type());
  run(*comm_, [&](ncclComm_t comm) {
    return ncclReduceScatter(in.const_data_ptr(), out.data_ptr(), count(out), type, ncclSum, comm, stream());
  });
}

void NcclCommunicator::broadcast(at::Tensor& tensor, int root) {
  if (tensor.numel() == 0) return;
  const ncclDataType_t type = nccl_type(tensor.scalar_type());
  run(*comm_, [&](ncclComm_t comm) {
    return ncclBroadcast(tensor.data_ptr(), tensor.data_ptr(), count(tensor), type, root, comm, stream());
  });
}

class NcclWorld final : public World {
 public:
  explicit NcclWorld(const WorldOptions& options) : options_(options) {}
  Status connect(KvStore& store);
  const Mesh& mesh() const override { return options_.mesh; }
  int rank() const override { return options_.rank; }
  Communicator& over(AxisSet axes) override;
  void abort() override;

 private:
  const WorldOptions options_;
  SoloCommunicator solo_;
  std::map<AxisSet, std::unique_ptr<NcclCommunicator>> communicators_;  // fixed after connect()
};

Status NcclWorld::connect(KvStore& store) {
  for (const AxisSet axes : options_.axes) {
    const int size = options_.mesh.size(axes);
    if (size == 1 || communicators_.count(axes) > 0) continue;
    NcclCommOptions options;
    options.rank = options_.mesh.index_among_peers(options_.rank, axes);
    options.size = size;
    options.device = options_.device_index;
    options.timeout = options_.timeout;
    // The lowest rank tells the communicators of one set of axes apart.
    options.name =
        options_.name + "/" + axes.to_string() + "/" + std::to_string(options_.mesh.peers(options_.rank, axes).front());
    TROUPE_ASSIGN(auto comm, NcclComm::create(options, store));
    communicators_[axes] = std::make_unique<NcclCommunicator>("world " + options.name, options.rank, size,
                                                              std::move(comm), options.device);
  }
  return {};
}

Communicator& NcclWorld::over(AxisSet axes) {
  if (options_.mesh.size(axes) == 1) return solo_;
  const auto found = communicators_.find(axes);
  if (found == communicators_.end()) {
    throw ErrorException(
        internal_error("world " + options_.name + " was made without a communicator over " + axes.to_string()));
  }
  return *found->second;
}

void NcclWorld::abort() {
  std::vector<NcclComm*> all;
  for (auto& [axes, communicator] : communicators_) all.push_back(&communicator->comm());
  NcclComm::abort_all(all);
}

}  // namespace

Result<std::unique_ptr<World>> create_nccl_world(const WorldOptions& options, KvStore& store) {
  if (options.rank < 0 || options.rank >= options.mesh.ranks() || options.device_index < 0) {
    return invalid_argument("world " + options.name + ": rank " + std::to_string(options.rank) + " of " +
                            options.mesh.to_string() + " on CUDA device " + std::to_string(options.device_index));
  }
  auto world = std::make_unique<NcclWorld>(options);
  TROUPE_RETURN_IF_ERROR(world->connect(store));
  return std::unique_ptr<World>(std::move(world));
}

}  // namespace troupe
