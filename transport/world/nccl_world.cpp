#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <array>
#include <map>

#include "transport/nccl/nccl_comm.h"
#include "transport/world/exchange_communicator.h"
#include "transport/world/solo_communicator.h"

/// Collectives are put on the caller's current stream, so that they need no events of their own; posted work runs with
/// another stream as the current one.
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

void require(cudaError_t result, const char* what) {
  if (result != cudaSuccess)
    throw ErrorException(internal_error(std::string("CUDA: ") + what + ": " + cudaGetErrorString(result)));
}

/// The second line of a world on a GPU: a stream, and an event behind each work. The oldest events are used again: who
/// waits for a work that is no longer the event's waits for a later one, which is behind it on the same stream.
class PostedStream {
 public:
  explicit PostedStream(c10::DeviceIndex device)
      : device_(device), stream_(c10::cuda::getStreamFromPool(/*isHighPriority=*/true, device)) {
    for (cudaEvent_t* event : all_events()) require(cudaEventCreateWithFlags(event, cudaEventDisableTiming), "event");
  }
  ~PostedStream() {
    for (cudaEvent_t* event : all_events()) cudaEventDestroy(*event);
  }
  PostedStream(const PostedStream&) = delete;
  PostedStream& operator=(const PostedStream&) = delete;

  int64_t post(const std::function<void()>& work) {
    require(cudaEventRecord(ready_, c10::cuda::getCurrentCUDAStream(device_)), "posting work");
    require(cudaStreamWaitEvent(stream_, ready_, 0), "posting work");
    const c10::cuda::CUDAStreamGuard on(stream_);
    work();
    require(cudaEventRecord(done(++posted_), stream_), "posting work");
    return posted_;
  }
  void wait(int64_t number) {
    if (number < 1) return;
    require(cudaStreamWaitEvent(c10::cuda::getCurrentCUDAStream(device_), done(number), 0), "waiting for posted work");
  }

 private:
  cudaEvent_t& done(int64_t number) { return done_[static_cast<size_t>(number) % done_.size()]; }
  std::vector<cudaEvent_t*> all_events() {
    std::vector<cudaEvent_t*> all{&ready_};
    for (cudaEvent_t& event : done_) all.push_back(&event);
    return all;
  }

  c10::DeviceIndex device_;
  c10::cuda::CUDAStream stream_;
  cudaEvent_t ready_ = nullptr;
  std::array<cudaEvent_t, 256> done_{};
  int64_t posted_ = 0;
};

class NcclWorld final : public World {
 public:
  explicit NcclWorld(const WorldOptions& options) : options_(options) {}
  Status connect(KvStore& store);
  const Mesh& mesh() const override { return options_.mesh; }
  int rank() const override { return options_.rank; }
  Communicator& over(AxisSet axes) override { return find(communicators_, axes); }
  Communicator& posted_over(AxisSet axes) override { return find(posted_, axes); }
  int64_t post(std::function<void()> work) override {
    if (!line_) line_ = std::make_unique<PostedStream>(static_cast<c10::DeviceIndex>(options_.device_index));
    return line_->post(work);
  }
  void wait_posted(int64_t number) override {
    if (line_) line_->wait(number);
  }
  void abort() override;

 private:
  using Communicators = std::map<AxisSet, std::unique_ptr<NcclCommunicator>>;
  Status connect(KvStore& store, const std::vector<AxisSet>& all, const std::string& line, Communicators& made);
  Communicator& find(const Communicators& made, AxisSet axes);

  const WorldOptions options_;
  SoloCommunicator solo_;
  Communicators communicators_, posted_;  // fixed after connect()
  std::unique_ptr<PostedStream> line_;    // from the first post on
};

Status NcclWorld::connect(KvStore& store) {
  TROUPE_RETURN_IF_ERROR(connect(store, options_.axes, "", communicators_));
  return connect(store, options_.posted_axes, "posted/", posted_);
}

Status NcclWorld::connect(KvStore& store, const std::vector<AxisSet>& all, const std::string& line,
                          Communicators& made) {
  for (const AxisSet axes : all) {
    const int size = options_.mesh.size(axes);
    if (size == 1 || made.count(axes) > 0) continue;
    NcclCommOptions options;
    options.rank = options_.mesh.index_among_peers(options_.rank, axes);
    options.size = size;
    options.device = options_.device_index;
    options.timeout = options_.timeout;
    // The lowest rank tells the communicators of one set of axes apart.
    options.name = options_.name + "/" + line + axes.to_string() + "/" +
                   std::to_string(options_.mesh.peers(options_.rank, axes).front());
    TROUPE_ASSIGN(auto comm, NcclComm::create(options, store));
    made[axes] = std::make_unique<NcclCommunicator>("world " + options.name, options.rank, size, std::move(comm),
                                                    options.device);
  }
  return {};
}

Communicator& NcclWorld::find(const Communicators& made, AxisSet axes) {
  if (options_.mesh.size(axes) == 1) return solo_;
  const auto found = made.find(axes);
  if (found == made.end()) {
    throw ErrorException(
        internal_error("world " + options_.name + " was made without a communicator over " + axes.to_string()));
  }
  return *found->second;
}

void NcclWorld::abort() {
  std::vector<NcclComm*> all;
  for (const auto* made : {&communicators_, &posted_})
    for (const auto& [axes, communicator] : *made) all.push_back(&communicator->comm());
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
