#include "actors/host/boundary.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/index_select.h>

#include <algorithm>
#include <set>

#include "actors/host/meeting.h"
#include "actors/kernels/device_copy.h"

namespace troupe {
namespace {

constexpr uint32_t kNumbersEdge = 0xffff;

at::Tensor index_tensor(const std::vector<int64_t>& values, at::Device device) {
  // The vectors live as long as the step's plans, longer than any use of the view.
  const at::Tensor view =
      at::from_blob(const_cast<int64_t*>(values.data()), {static_cast<int64_t>(values.size())}, at::kLong);
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

/// The pieces of a crossing, as they travel: `producer` is the sending rank, `consumer` the receiving one.
struct Boundary::Route {
  std::vector<ReshardPiece> pieces;
  std::vector<uint64_t> piece_digests;  // of the samples and rows of each piece, in message order
  uint64_t digest = 0;                  // of both layouts
};

Boundary::Boundary(const JobContext& job) : job_(job), timeout_(kBoundaryTimeout) {}
Boundary::~Boundary() = default;

Result<std::unique_ptr<Boundary>> Boundary::create(const JobContext& job) {
  std::unique_ptr<Boundary> self(new Boundary(job));
  self->local_ = create_in_process_channel();
  const MessageDelays& delays = job.message_delays;
  if (delays.most.count() > 0) self->local_ = create_delayed_channel(std::move(self->local_), delays);
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
    if (job.spec.channel != BoundaryChannel::kAuto) {
      options.shared_segment = false;
      options.transports = job.spec.channel == BoundaryChannel::kTcp ? "tcp" : "posix";
    }
    TROUPE_ASSIGN(self->remote_, create_ucx_channel(options));
    if (delays.most.count() > 0)
      self->remote_ = create_delayed_channel(std::move(self->remote_), {delays.seed + 1, delays.most});
    TROUPE_RETURN_IF_ERROR(
        self->remote_->connect({peers.begin(), peers.end()}, job.control->store(), std::chrono::minutes(5)));
  }
  return self;
}

void Boundary::begin_step(const StepPlan& plan, const SampleIndex& index, bool evaluation) {
  plan_ = &plan;
  index_ = &index;
  // Training steps are told apart by their number; evaluation steps share one and take the next attempt.
  sequence_ = evaluation ? sequence_ + 1 : 0;
  encoder_rows_.clear();
  decoder_rows_.clear();
  routes_.clear();
}

const RowLayout& Boundary::encoder_rows(int u) {
  const auto [at, fresh] = encoder_rows_.try_emplace(u);
  if (fresh) at->second = producer_layout(job_.config.vision, *plan_, u, job_.group(job_.encoder).mesh);
  return at->second;
}

const RowLayout& Boundary::decoder_rows(int m) {
  const auto [at, fresh] = decoder_rows_.try_emplace(m);
  const GroupSpec& text = job_.group(job_.decoder);
  if (fresh)
    at->second = consumer_layout(*plan_, *index_, job_.config.vision.merge_size, m, text.mesh, text.tp_sequence);
  return at->second;
}

Result<const Boundary::Route*> Boundary::route(const Crossing& crossing) {
  auto& entry = routes_[crossing];
  if (entry) return entry.get();
  auto made = std::make_unique<Route>();
  if (crossing.backward) {
    TROUPE_ASSIGN(const Route* forward, route({crossing.u, crossing.m, false}));
    for (const ReshardPiece& piece : forward->pieces) made->pieces.push_back(reversed(piece));
    made->digest = forward->digest;
  } else {
    TROUPE_ASSIGN(ReshardPlan plan, plan_reshard(encoder_rows(crossing.u), decoder_rows(crossing.m)));
    made->pieces = std::move(plan.pieces);
    std::vector<int64_t> shape;
    for (const ReshardPiece& piece : made->pieces)
      for (int64_t v : {int64_t{piece.producer}, int64_t{piece.consumer}, static_cast<int64_t>(piece.target.size())})
        shape.push_back(v);
    made->digest = rows_digest(*plan_, shape);
  }
  const RowLayout& receivers = crossing.backward ? encoder_rows(crossing.u) : decoder_rows(crossing.m);
  for (const ReshardPiece& piece : made->pieces) {
    std::vector<int64_t> ids;
    for (int64_t row : piece.target)
      ids.push_back(receivers.ranks[static_cast<size_t>(piece.consumer)].rows[static_cast<size_t>(row)]);
    made->piece_digests.push_back(rows_digest(*plan_, ids));
  }
  entry = std::move(made);
  return entry.get();
}

void Boundary::wait_at_most(std::chrono::milliseconds timeout) { timeout_ = std::min(timeout, kBoundaryTimeout); }

int64_t Boundary::producer_row_count(int producer, int u) {
  return static_cast<int64_t>(encoder_rows(u).ranks[static_cast<size_t>(producer)].rows.size());
}

int64_t Boundary::consumer_row_count(int consumer, int m) {
  return static_cast<int64_t>(decoder_rows(m).ranks[static_cast<size_t>(consumer)].rows.size());
}

MessageTag Boundary::tag(int producer_unit, int consumer_unit, int from, int to, bool backward) const {
  MessageTag t;
  t.generation = job_.assignment.generation.value;
  t.step = plan_->step;
  t.attempt = sequence_;
  t.producer_unit = producer_unit;
  t.consumer_unit = consumer_unit;
  t.from_rank = from;
  t.to_rank = to;
  t.backward = backward;
  return t;
}

Span Boundary::span(SpanKind kind, const char* name, const MessageTag& message, bool sends) const {
  // Forward the encoder sends, backward the decoder.
  const bool encoder = sends != message.backward;
  Span s =
      job_.span(kind, name, message.step, encoder ? job_.encoder : job_.decoder,
                sends ? message.from_rank : message.to_rank, encoder ? message.producer_unit : message.consumer_unit);
  s.peer_group = encoder ? job_.decoder : job_.encoder;
  s.peer_rank = sends ? message.to_rank : message.from_rank;
  s.peer_unit = encoder ? message.consumer_unit : message.producer_unit;
  s.gradient = message.backward;
  return s;
}

/// Straight into memory that the channel will not copy, where it has such. Device rows are staged through host memory:
/// the channel then needs no device support.
Payload Boundary::pack_rows(SlotId to, const at::Tensor& rows, const std::vector<int64_t>& picked) {
  const at::Tensor indices = index_tensor(picked, rows.device());
  const auto bytes = picked.size() * static_cast<size_t>(rows.size(1) * rows.element_size());
  SendBuffer buffer = remote_->buffer_for(to, bytes);
  if (buffer.data == nullptr) return payload_of(at::index_select(rows, 0, indices).cpu());
  at::Tensor packed = at::from_blob(buffer.data, {static_cast<int64_t>(picked.size()), rows.size(1)},
                                    rows.options().device(at::kCPU).requires_grad(false));
  if (rows.is_cpu())
    at::index_select_out(packed, rows, 0, indices);
  else
    packed.copy_(at::index_select(rows, 0, indices));
  return {buffer.data, bytes, std::move(buffer.owner), nullptr};
}

Status Boundary::send_piece(SlotId to, const MessageTag& message, const MessageHeader& header, const at::Tensor& rows,
                            const std::vector<int64_t>& picked) {
  if (to == job_.assignment.self) {
    SpanScope scope(job_.trace.get(), span(SpanKind::kSend, "hand over", message, true));
    Payload payload;  // the tensor itself: the receiver picks its rows out of it, nothing is copied here
    payload.bytes = static_cast<size_t>(header.rows * header.row_bytes);
    payload.object = std::make_shared<const at::Tensor>(rows);
    payload.owner = payload.object;
    if (!message.backward) counters_.in_process_rows += header.rows;
    return local_->send(to, message, header, std::move(payload));
  }
  SpanScope pack(job_.trace.get(), span(SpanKind::kKernel, "pack", message, true));
  Payload packed = pack_rows(to, rows, picked);
  pack.end();
  SpanScope scope(job_.trace.get(), span(SpanKind::kSend, "send", message, true));
  scope.set_bytes(static_cast<int64_t>(packed.bytes));
  if (!message.backward) counters_.wire_rows += header.rows;
  counters_.wire_bytes += static_cast<int64_t>(packed.bytes);
  return remote_->send(to, message, header, std::move(packed));
}

Status Boundary::receive_piece(SlotId from, const MessageTag& message, const MessageHeader& header,
                               const ReshardPiece& piece, at::Tensor& into) {
  SpanScope wait(job_.trace.get(), span(SpanKind::kPeer, "receive", message, false));
  TROUPE_ASSIGN(const Payload payload, channel_to(from).receive(from, message, header, timeout_));
  if (!payload.object) wait.set_bytes(static_cast<int64_t>(payload.bytes));
  wait.end();
  const SpanScope place(job_.trace.get(), span(SpanKind::kKernel, "place", message, false));
  const at::Tensor target = index_tensor(piece.target, into.device());
  if (payload.object) {
    const auto& rows = *static_cast<const at::Tensor*>(payload.object.get());
    into.index_copy_(0, target, at::index_select(rows, 0, index_tensor(piece.source, rows.device())));
  } else {
    const at::Tensor rows = at::from_blob(const_cast<std::byte*>(payload.data), {header.rows, into.size(1)},
                                          into.options().device(at::kCPU));
    into.index_copy_(0, target, into.is_cpu() ? rows : rows.to(into.device()));
  }
  return {};
}

Status Boundary::send(const Crossing& crossing, int from, const at::Tensor& rows) {
  TROUPE_ASSIGN(const Route* r, route(crossing));
  const int receiving_group = crossing.backward ? job_.encoder : job_.decoder;
  for (size_t i = 0; i < r->pieces.size(); ++i) {
    const ReshardPiece& piece = r->pieces[i];
    if (piece.producer != from) continue;
    const MessageHeader header = {static_cast<int64_t>(piece.source.size()), rows.size(1) * rows.element_size(),
                                  r->piece_digests[i], r->digest};
    const MessageTag message = tag(crossing.u, crossing.m, from, piece.consumer, crossing.backward);
    TROUPE_RETURN_IF_ERROR(
        send_piece(job_.slot_of(receiving_group, piece.consumer), message, header, rows, piece.source));
  }
  return {};
}

Status Boundary::receive(const Crossing& crossing, int to, at::Tensor& into) {
  TROUPE_ASSIGN(const Route* r, route(crossing));
  const int sending_group = crossing.backward ? job_.decoder : job_.encoder;
  for (size_t i = 0; i < r->pieces.size(); ++i) {
    const ReshardPiece& piece = r->pieces[i];
    if (piece.consumer != to) continue;
    const MessageHeader header = {static_cast<int64_t>(piece.target.size()), into.size(1) * into.element_size(),
                                  r->piece_digests[i], r->digest};
    const MessageTag message = tag(crossing.u, crossing.m, piece.producer, to, crossing.backward);
    TROUPE_RETURN_IF_ERROR(receive_piece(job_.slot_of(sending_group, piece.producer), message, header, piece, into));
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
  const SpanScope wait(job_.trace.get(), job_.span(SpanKind::kPeer, "numbers", plan_->step, to_group, to_rank));
  TROUPE_ASSIGN(const Payload payload, channel_to(from).receive(from, message, header, kBoundaryTimeout));
  const auto* values = reinterpret_cast<const double*>(payload.data);
  return std::vector<double>(values, values + count);
}

Status Boundary::close(std::chrono::milliseconds timeout) {
  if (remote_) TROUPE_RETURN_IF_ERROR(remote_->flush(timeout));
  return meet(job_, "boundary-closed", timeout);
}

void Boundary::abort() {
  local_->abort();
  if (remote_) remote_->abort();
}

uint64_t Boundary::copied_bytes() const { return remote_ ? remote_->counters().bytes_copied : 0; }

BoundaryCounters Boundary::take_counters() { return std::exchange(counters_, BoundaryCounters{}); }

}  // namespace troupe
