#include "actors/host/boundary.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/index_select.h>

#include <set>

#include "actors/kernels/device_copy.h"

namespace troupe {
namespace {

constexpr uint32_t kNumbersEdge = 0xffff;

at::Tensor index_tensor(const std::vector<int64_t>& values, at::Device device) {
  // The vectors live as long as the step's plans, longer than any use of the view.
  const at::Tensor view = at::from_blob(const_cast<int64_t*>(values.data()), {static_cast<int64_t>(values.size())}, at::kLong);
  return copy_to_device(view, device);
}

Payload payload_of(const at::Tensor& contiguous) {
  Payload payload;
  payload.bytes = contiguous.nbytes();
  payload.data = static_cast<const std::byte*>(contiguous.const_data_ptr());
  payload.owner = std::make_shared<const at::Tensor>(contiguous);
  return payload;
}

}  // namespace

struct Boundary::UnitPair {
  ReshardPlan plan;
  uint64_t digest = 0;                     // of both layouts
  std::vector<uint64_t> piece_digests;     // of the samples and rows of each piece
};

Boundary::Boundary(const JobContext& job) : job_(job) {}
Boundary::~Boundary() = default;

Result<std::unique_ptr<Boundary>> Boundary::create(const JobContext& job) {
  std::unique_ptr<Boundary> self(new Boundary(job));
  self->local_ = create_in_process_channel();
  const auto& groups = job.assignment.group_slots;
  std::set<SlotId> mine, peers;
  for (size_t g = 0; g < groups.size(); ++g)
    for (int slot : groups[g])
      if (SlotId(slot) == job.assignment.self)
        for (size_t other = 0; other < groups.size(); ++other)
          if (other != g)
            for (int peer : groups[other]) peers.insert(SlotId(peer));
  peers.erase(job.assignment.self);
  TROUPE_RETURN_IF_ERROR(self->local_->connect({job.assignment.self}, job.control->store(), kBoundaryTimeout));
  if (!peers.empty()) {
    UcxChannelOptions options;
    options.name = job.assignment.job_id + "/g" + std::to_string(job.assignment.generation.value) + "/boundary";
    options.self = job.assignment.self;
    options.interface_address = job.assignment.slots[static_cast<size_t>(job.assignment.self.value)].data_address;
    TROUPE_ASSIGN(self->remote_, create_ucx_channel(options));
    TROUPE_RETURN_IF_ERROR(self->remote_->connect({peers.begin(), peers.end()}, job.control->store(), std::chrono::minutes(5)));
  }
  return self;
}

void Boundary::begin_step(const StepPlan& plan, const SampleIndex& index, bool evaluation) {
  plan_ = &plan;
  index_ = &index;
  // Training steps are told apart by their number; evaluation steps share one and take the next attempt.
  sequence_ = evaluation ? sequence_ + 1 : 0;
  producers_.clear();
  consumers_.clear();
  pairs_.clear();
}

Result<const Boundary::UnitPair*> Boundary::pair(int u, int m) {
  auto& entry = pairs_[{u, m}];
  if (entry) return entry.get();
  const GroupSpec& text = job_.group(job_.decoder);
  if (!producers_.contains(u)) producers_[u] = producer_layout(job_.config.vision, *plan_, u, job_.group(job_.encoder).mesh);
  if (!consumers_.contains(m))
    consumers_[m] = consumer_layout(*plan_, *index_, job_.config.vision.merge_size, m, text.mesh, text.tp_sequence);
  auto made = std::make_unique<UnitPair>();
  TROUPE_ASSIGN(made->plan, plan_reshard(producers_[u], consumers_[m]));
  std::vector<int64_t> shape;
  for (const ReshardPiece& piece : made->plan.pieces) {
    std::vector<int64_t> ids;
    for (int64_t row : piece.target) ids.push_back(consumers_[m].ranks[static_cast<size_t>(piece.consumer)].rows[static_cast<size_t>(row)]);
    made->piece_digests.push_back(rows_digest(*plan_, ids));
    for (int64_t v : {int64_t{piece.producer}, int64_t{piece.consumer}, static_cast<int64_t>(ids.size())}) shape.push_back(v);
  }
  made->digest = rows_digest(*plan_, shape);
  entry = std::move(made);
  return entry.get();
}

int64_t Boundary::consumer_row_count(int consumer, int m) {
  const GroupSpec& text = job_.group(job_.decoder);
  if (!consumers_.contains(m))
    consumers_[m] = consumer_layout(*plan_, *index_, job_.config.vision.merge_size, m, text.mesh, text.tp_sequence);
  return static_cast<int64_t>(consumers_[m].ranks[static_cast<size_t>(consumer)].rows.size());
}

MessageTag Boundary::tag(int u, int m, int from, int to, bool backward) const {
  MessageTag t;
  t.generation = job_.assignment.generation.value;
  t.step = plan_->step;
  t.attempt = sequence_;
  t.producer_unit = u;
  t.consumer_unit = m;
  t.from_rank = from;
  t.to_rank = to;
  t.backward = backward;
  return t;
}

Status Boundary::send(SlotId to, const MessageTag& message, const MessageHeader& header, const at::Tensor& rows, const std::vector<int64_t>& picked) {
  if (to == job_.assignment.self) {
    Payload payload;  // the tensor itself: the receiver picks its rows out of it, nothing is copied here
    payload.bytes = static_cast<size_t>(header.rows * header.row_bytes);
    payload.object = std::make_shared<const at::Tensor>(rows);
    payload.owner = payload.object;
    if (!message.backward) counters_.in_process_rows += header.rows;
    return local_->send(to, message, header, std::move(payload));
  }
  // Device rows are staged through host memory: the channel then needs no device support.
  const at::Tensor packed = at::index_select(rows, 0, index_tensor(picked, rows.device())).cpu();
  if (!message.backward) counters_.wire_rows += header.rows;
  counters_.wire_bytes += static_cast<int64_t>(packed.nbytes());
  return remote_->send(to, message, header, payload_of(packed));
}

Status Boundary::receive(SlotId from, const MessageTag& message, const MessageHeader& header, const std::vector<int64_t>& picked,
                         const std::vector<int64_t>& placed, at::Tensor& into) {
  TROUPE_ASSIGN(const Payload payload, channel_to(from).receive(from, message, header, kBoundaryTimeout));
  const at::Tensor target = index_tensor(placed, into.device());
  if (payload.object) {
    const auto& rows = *static_cast<const at::Tensor*>(payload.object.get());
    into.index_copy_(0, target, at::index_select(rows, 0, index_tensor(picked, rows.device())));
  } else {
    const at::Tensor rows = at::from_blob(const_cast<std::byte*>(payload.data), {header.rows, into.size(1)}, into.options().device(at::kCPU));
    into.index_copy_(0, target, into.is_cpu() ? rows : rows.to(into.device()));
  }
  return {};
}

Status Boundary::send_rows(int producer, int u, int m, const at::Tensor& rows) {
  TROUPE_ASSIGN(const UnitPair* p, pair(u, m));
  for (size_t i = 0; i < p->plan.pieces.size(); ++i) {
    const ReshardPiece& piece = p->plan.pieces[i];
    if (piece.producer != producer) continue;
    const MessageHeader header = {static_cast<int64_t>(piece.source.size()), rows.size(1) * rows.element_size(), p->piece_digests[i], p->digest};
    TROUPE_RETURN_IF_ERROR(send(job_.slot_of(job_.decoder, piece.consumer), tag(u, m, producer, piece.consumer, false), header, rows, piece.source));
  }
  return {};
}

Status Boundary::receive_rows(int consumer, int m, int u, at::Tensor& into) {
  TROUPE_ASSIGN(const UnitPair* p, pair(u, m));
  for (size_t i = 0; i < p->plan.pieces.size(); ++i) {
    const ReshardPiece& piece = p->plan.pieces[i];
    if (piece.consumer != consumer) continue;
    const MessageHeader header = {static_cast<int64_t>(piece.source.size()), into.size(1) * into.element_size(), p->piece_digests[i], p->digest};
    TROUPE_RETURN_IF_ERROR(receive(job_.slot_of(job_.encoder, piece.producer), tag(u, m, piece.producer, consumer, false), header, piece.source, piece.target, into));
  }
  return {};
}

Status Boundary::send_gradient(int consumer, int m, int u, const at::Tensor& gradient) {
  TROUPE_ASSIGN(const UnitPair* p, pair(u, m));
  for (size_t i = 0; i < p->plan.pieces.size(); ++i) {
    const ReshardPiece& piece = p->plan.pieces[i];
    if (piece.consumer != consumer) continue;
    const MessageHeader header = {static_cast<int64_t>(piece.target.size()), gradient.size(1) * gradient.element_size(), p->piece_digests[i], p->digest};
    TROUPE_RETURN_IF_ERROR(send(job_.slot_of(job_.encoder, piece.producer), tag(u, m, consumer, piece.producer, true), header, gradient, piece.target));
  }
  return {};
}

Status Boundary::receive_gradient(int producer, int u, int m, at::Tensor& into) {
  TROUPE_ASSIGN(const UnitPair* p, pair(u, m));
  for (size_t i = 0; i < p->plan.pieces.size(); ++i) {
    const ReshardPiece& piece = p->plan.pieces[i];
    if (piece.producer != producer) continue;
    const MessageHeader header = {static_cast<int64_t>(piece.target.size()), into.size(1) * into.element_size(), p->piece_digests[i], p->digest};
    TROUPE_RETURN_IF_ERROR(receive(job_.slot_of(job_.decoder, piece.consumer), tag(u, m, piece.consumer, producer, true), header, piece.target, piece.source, into));
  }
  return {};
}

Status Boundary::send_numbers(int from_group, int from_rank, int to_group, const std::vector<double>& numbers) {
  const auto senders = static_cast<int>(job_.assignment.group_slots[static_cast<size_t>(from_group)].size());
  const auto receivers = static_cast<int>(job_.assignment.group_slots[static_cast<size_t>(to_group)].size());
  const MessageHeader header = {static_cast<int64_t>(numbers.size()), sizeof(double), 0, 0};
  for (int r = from_rank; r < receivers; r += senders) {
    const auto copy = std::make_shared<const std::vector<double>>(numbers);
    Payload payload;
    payload.data = reinterpret_cast<const std::byte*>(copy->data());
    payload.bytes = numbers.size() * sizeof(double);
    payload.owner = copy;
    MessageTag message = tag(from_group, to_group, from_rank, r, false);
    message.edge = kNumbersEdge;
    const SlotId to = job_.slot_of(to_group, r);
    TROUPE_RETURN_IF_ERROR(channel_to(to).send(to, message, header, std::move(payload)));
  }
  return {};
}

Result<std::vector<double>> Boundary::receive_numbers(int from_group, int to_group, int to_rank, size_t count) {
  const auto senders = static_cast<int>(job_.assignment.group_slots[static_cast<size_t>(from_group)].size());
  const int sender = to_rank % senders;
  MessageTag message = tag(from_group, to_group, sender, to_rank, false);
  message.edge = kNumbersEdge;
  const SlotId from = job_.slot_of(from_group, sender);
  const MessageHeader header = {static_cast<int64_t>(count), sizeof(double), 0, 0};
  TROUPE_ASSIGN(const Payload payload, channel_to(from).receive(from, message, header, kBoundaryTimeout));
  const auto* values = reinterpret_cast<const double*>(payload.data);
  return std::vector<double>(values, values + count);
}

Status Boundary::flush() { return remote_ ? remote_->flush(kBoundaryTimeout) : Status(); }

void Boundary::abort() {
  local_->abort();
  if (remote_) remote_->abort();
}

BoundaryCounters Boundary::take_counters() { return std::exchange(counters_, BoundaryCounters{}); }

}  // namespace troupe
