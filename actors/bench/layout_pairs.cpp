#include <algorithm>
#include <map>
#include <numeric>
#include <thread>

#include "actors/bench/boundary_ends.h"
#include "base/layout/row_layout.h"
#include "base/rendezvous/memory_kv_store.h"
#include "transport/channel/channel.h"

namespace troupe {
namespace {

constexpr std::chrono::milliseconds kPatience{20000};
constexpr int64_t kRows = 997;  // divides by none of the sizes
constexpr size_t kRowBytes = 1280 * 2;

struct Member {
  SlotId slot;
  std::unique_ptr<Channel> channel;
  Status status;
};

MessageHeader header_of(const ReshardPiece& piece) {
  return {static_cast<int64_t>(piece.source.size()), kRowBytes, 0, 0};
}

MessageTag tag_of(const ReshardPiece& piece) {
  MessageTag tag;
  tag.from_rank = piece.producer;
  tag.to_rank = piece.consumer;
  return tag;
}

/// Producers are the slots below `producers`. Both directions of a rank's work run in its own thread.
Status move_rows(Member& rank, const ReshardPlan& plan, int producers, KvStore& store,
                 const std::vector<SlotId>& peers) {
  TROUPE_RETURN_IF_ERROR(rank.channel->connect(peers, store, kPatience));
  const int self = rank.slot.value;
  for (const ReshardPiece& piece : plan.pieces) {
    const size_t bytes = piece.source.size() * kRowBytes;
    if (piece.producer == self) {
      const auto rows = std::make_shared<std::vector<std::byte>>(bytes);
      TROUPE_RETURN_IF_ERROR(rank.channel->send(SlotId(producers + piece.consumer), tag_of(piece), header_of(piece),
                                                {rows->data(), bytes, rows, nullptr}));
    } else if (producers + piece.consumer == self) {
      TROUPE_RETURN_IF_ERROR(
          rank.channel->receive(SlotId(piece.producer), tag_of(piece), header_of(piece), kPatience).status());
    }
  }
  return rank.channel->flush(kPatience);
}

}  // namespace

Result<LayoutPairBytes> measure_layout_pair(int producers, int consumers) {
  std::vector<int64_t> rows(kRows);
  std::iota(rows.begin(), rows.end(), 0);
  const RowLayout from = stripe_layout(rows, producers), to = stripe_layout(rows, consumers);
  TROUPE_ASSIGN(const ReshardPlan plan, plan_reshard(from, to));
  MemoryKvStore store;
  std::vector<Member> ranks(static_cast<size_t>(producers + consumers));
  std::vector<std::thread> threads;
  for (int slot = 0; slot < producers + consumers; ++slot) {
    Member& rank = ranks[static_cast<size_t>(slot)];
    rank.slot = SlotId(slot);
    UcxChannelOptions options;
    options.name = "pair";
    options.self = rank.slot;
    TROUPE_ASSIGN(rank.channel, create_ucx_channel(options));
  }
  for (Member& rank : ranks) {
    std::vector<SlotId> peers;
    for (int slot = 0; slot < producers + consumers; ++slot) {
      if ((slot < producers) != (rank.slot.value < producers)) peers.emplace_back(slot);
    }
    threads.emplace_back([&, peers] { rank.status = move_rows(rank, plan, producers, store, peers); });
  }
  for (auto& thread : threads) thread.join();
  LayoutPairBytes bytes{producers, consumers, kRows * kRowBytes, 0, 0};
  for (Member& rank : ranks) {
    TROUPE_RETURN_IF_ERROR(rank.status);
    const bool produces = rank.slot.value < producers;
    const ChannelCounters counters = rank.channel->counters();
    const uint64_t moved = produces ? counters.bytes_sent : counters.bytes_received;
    const size_t place = static_cast<size_t>(produces ? rank.slot.value : rank.slot.value - producers);
    const size_t held = (produces ? from : to).ranks[place].rows.size() * kRowBytes;
    if (produces) bytes.wire_bytes += moved;
    bytes.largest_rank_ratio =
        std::max(bytes.largest_rank_ratio, static_cast<double>(moved) / static_cast<double>(held));
  }
  return bytes;
}

}  // namespace troupe
