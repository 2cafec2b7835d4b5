#include "tests/transport/channel/channel_contract.h"

#include <catch2/catch.hpp>
#include <thread>

using namespace std::chrono_literals;

namespace troupe::testing {
namespace {

constexpr size_t kSizes[] = {0, 8, size_t{64} << 10, size_t{8} << 20};
constexpr auto kPatience = 20s;

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

void sizes_arrive(ChannelPair& pair, bool posted) {
  int64_t number = 0;
  for (const size_t bytes : kSizes) {
    const MessageTag tag = numbered_tag(number++);
    if (posted) REQUIRE(pair.b->post_receive(pair.slot_a, tag, bytes).ok());
    REQUIRE(pair.a->send(pair.slot_b, tag, header_of(bytes), patterned(bytes, bytes + 1)).ok());
    const auto received = pair.b->receive(pair.slot_a, tag, header_of(bytes), kPatience);
    REQUIRE(received.ok());
    CHECK(matches(*received, bytes, bytes + 1));
  }
  REQUIRE(pair.a->flush(kPatience).ok());
}

void reverse_order(ChannelPair& pair) {
  constexpr int kMessages = 200;
  for (int i = 0; i < kMessages; ++i) {
    const size_t bytes = kSizes[i % 3];
    REQUIRE(
        pair.a->send(pair.slot_b, numbered_tag(i), header_of(bytes), patterned(bytes, static_cast<uint64_t>(i))).ok());
  }
  for (int i = kMessages - 1; i >= 0; --i) {
    const size_t bytes = kSizes[i % 3];
    const auto received = pair.b->receive(pair.slot_a, numbered_tag(i), header_of(bytes), kPatience);
    REQUIRE(received.ok());
    CHECK(matches(*received, bytes, static_cast<uint64_t>(i)));
  }
}

void concurrent_senders(ChannelPair& pair) {
  constexpr int kThreads = 4, kEach = 60;
  std::vector<std::string> errors(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      // Even threads send one way, odd ones the other; each also receives what its neighbour sends.
      Channel& out = t % 2 == 0 ? *pair.a : *pair.b;
      Channel& in = t % 2 == 0 ? *pair.a : *pair.b;
      const SlotId peer = t % 2 == 0 ? pair.slot_b : pair.slot_a;
      for (int i = 0; i < kEach; ++i) {
        const size_t bytes = kSizes[i % 3];
        const auto sent =
            out.send(peer, numbered_tag(t * 1000 + i), header_of(bytes), patterned(bytes, static_cast<uint64_t>(t)));
        if (!sent.ok()) errors[static_cast<size_t>(t)] = sent.error().to_string();
      }
      const int neighbour = t ^ 1;
      for (int i = 0; i < kEach; ++i) {
        const size_t bytes = kSizes[i % 3];
        const auto received = in.receive(peer, numbered_tag(neighbour * 1000 + i), header_of(bytes), kPatience);
        if (!received.ok()) {
          errors[static_cast<size_t>(t)] = received.error().to_string();
        } else if (!matches(*received, bytes, static_cast<uint64_t>(neighbour))) {
          errors[static_cast<size_t>(t)] = "wrong bytes";
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(errors == std::vector<std::string>(kThreads));
}

void late_generation(ChannelPair& pair) {
  REQUIRE(pair.b->post_receive(pair.slot_a, numbered_tag(1, 2), 8).ok());
  REQUIRE(pair.a->send(pair.slot_b, numbered_tag(1, 1), header_of(8), patterned(8, 1)).ok());
  REQUIRE(pair.a->send(pair.slot_b, numbered_tag(1, 2), header_of(8), patterned(8, 2)).ok());
  const auto received = pair.b->receive(pair.slot_a, numbered_tag(1, 2), header_of(8), kPatience);
  REQUIRE(received.ok());
  CHECK(matches(*received, 8, 2));
  // Messages of two tags may overtake each other, so the late one may still be on its way.
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (pair.b->counters().stale_dropped == 0 && std::chrono::steady_clock::now() < deadline)
    std::this_thread::yield();
  CHECK(pair.b->counters().stale_dropped == 1);
  CHECK(pair.b->receive(pair.slot_a, numbered_tag(1, 1), header_of(8), 10ms).error().code == ErrorCode::kAborted);
}

/// What differs from the expectation, and what the error must say about both sides.
void differing_headers(ChannelPair& pair) {
  const auto exchange = [&](int64_t number, MessageHeader sent, MessageHeader expected) {
    REQUIRE(pair.a->send(pair.slot_b, numbered_tag(number), sent, patterned(8, 1)).ok());
    const auto received = pair.b->receive(pair.slot_a, numbered_tag(number), expected, kPatience);
    REQUIRE_FALSE(received.ok());
    CHECK(received.error().code == ErrorCode::kDataLoss);
    CHECK(contains(received.error().message, "slot " + std::to_string(pair.slot_a.value) + " sent"));
    CHECK(contains(received.error().message, "slot " + std::to_string(pair.slot_b.value) + " expected"));
    return received.error().message;
  };
  const MessageHeader right = header_of(8);
  MessageHeader other = right;
  other.rows = 2;
  other.row_bytes = 4;
  CHECK(contains(exchange(1, other, right), "2 rows of 4 bytes"));
  other = right;
  other.samples_digest ^= 0xabc;
  (void)exchange(2, right, other);
  other = right;
  other.plan_digest ^= 1;
  (void)exchange(3, other, right);
  other = right;
  other.rows = 3;  // both sides agree, the bytes do not
  (void)exchange(4, other, other);
}

void waits_end(ChannelPair& pair, bool lost) {
  std::string error;
  ErrorCode code = ErrorCode::kInternal;
  std::chrono::steady_clock::time_point ended;
  std::thread waiter([&] {
    const auto received = pair.b->receive(pair.slot_a, numbered_tag(7), header_of(8), kPatience);
    ended = std::chrono::steady_clock::now();
    if (received.ok()) return;
    error = received.error().message;
    code = received.error().code;
  });
  const auto noticed = std::chrono::steady_clock::now();
  lost ? pair.b->peer_lost(pair.slot_a) : pair.b->abort();
  waiter.join();
  CHECK(ended - noticed < 1s);
  CHECK(code == (lost ? ErrorCode::kUnavailable : ErrorCode::kAborted));
  if (lost) CHECK(contains(error, "slot " + std::to_string(pair.slot_a.value)));
  if (lost) CHECK(contains(error, numbered_tag(7).to_string()));
  const auto after = pair.b->send(pair.slot_a, numbered_tag(8), header_of(8), patterned(8, 1));
  CHECK(after.error().code == code);
}

void payloads_are_let_go(ChannelPair& pair) {
  for (const size_t bytes : {size_t{8}, size_t{8} << 20}) {
    Payload payload = patterned(bytes, 3);
    const std::weak_ptr<const void> owner = payload.owner;
    REQUIRE(pair.a->send(pair.slot_b, numbered_tag(static_cast<int64_t>(bytes)), header_of(bytes), std::move(payload))
                .ok());
    {
      const auto received =
          pair.b->receive(pair.slot_a, numbered_tag(static_cast<int64_t>(bytes)), header_of(bytes), kPatience);
      REQUIRE(received.ok());
      CHECK(matches(*received, bytes, 3));
    }
    REQUIRE(pair.a->flush(kPatience).ok());
    CHECK(owner.expired());
  }
}

void bytes_are_counted_once(ChannelPair& pair) {
  uint64_t total = 0;
  for (int i = 0; i < 12; ++i) {
    const size_t bytes = kSizes[i % 4];
    total += bytes;
    REQUIRE(pair.a->send(pair.slot_b, numbered_tag(i), header_of(bytes), patterned(bytes, 1)).ok());
    REQUIRE(pair.b->receive(pair.slot_a, numbered_tag(i), header_of(bytes), kPatience).ok());
  }
  CHECK(pair.a->counters().messages_sent == 12);
  CHECK(pair.a->counters().bytes_sent == total);
  CHECK(pair.b->counters().messages_received == 12);
  CHECK(pair.b->counters().bytes_received == total);
  CHECK(pair.b->counters().stale_dropped == 0);
}

/// The sender is ahead of the receiver by far more than the credit. The suite's own slabs show where the bytes are.
void credits_bound_memory(ChannelPair& pair, size_t credit) {
  constexpr int kMessages = 20;
  const size_t bytes = credit / 4;
  for (int i = 0; i < kMessages; ++i) {
    REQUIRE(
        pair.a->send(pair.slot_b, numbered_tag(i), header_of(bytes), patterned(bytes, static_cast<uint64_t>(i))).ok());
  }
  CHECK(pair.a->counters().credit_waits >= kMessages - 5);
  CHECK(pair.a->flush(50ms).error().code == ErrorCode::kDeadlineExceeded);
  CHECK(pair.b->counters().held_bytes <= credit);
  for (int i = 0; i < kMessages; ++i) {
    const auto received = pair.b->receive(pair.slot_a, numbered_tag(i), header_of(bytes), kPatience);
    REQUIRE(received.ok());
    CHECK(matches(*received, bytes, static_cast<uint64_t>(i)));
  }
  REQUIRE(pair.a->flush(kPatience).ok());
  // A receiver that waits for a message lets it pass beyond the credit: one more.
  CHECK(pair.b->counters().peak_held_bytes <= credit + bytes);
  CHECK(pair.b->counters().held_bytes == 0);
}

void oversized_passes_alone(ChannelPair& pair, size_t credit) {
  for (int i = 0; i < 3; ++i) {
    const size_t bytes = credit * 3;
    REQUIRE(
        pair.a->send(pair.slot_b, numbered_tag(i), header_of(bytes), patterned(bytes, static_cast<uint64_t>(i))).ok());
  }
  for (int i = 0; i < 3; ++i) {
    const auto received = pair.b->receive(pair.slot_a, numbered_tag(i), header_of(credit * 3), kPatience);
    REQUIRE(received.ok());
    CHECK(matches(*received, credit * 3, static_cast<uint64_t>(i)));
  }
  CHECK(pair.b->counters().peak_held_bytes <= credit * 6);
}

/// Receives come in the reverse order of sends, and the receiver holds on to everything.
void no_order_stands_still(ChannelPair& pair, size_t credit) {
  constexpr int kMessages = 12;
  std::vector<Payload> held;
  for (int i = 0; i < kMessages; ++i) {
    REQUIRE(pair.a->send(pair.slot_b, numbered_tag(i), header_of(credit / 2), patterned(credit / 2, 1)).ok());
  }
  for (int i = kMessages - 1; i >= 0; --i) {
    auto received = pair.b->receive(pair.slot_a, numbered_tag(i), header_of(credit / 2), kPatience);
    REQUIRE(received.ok());
    held.push_back(std::move(*received));
  }
}

void nothing_is_allocated_in_a_steady_state(ChannelPair& pair) {
  uint64_t before = 0;
  for (int round = 0; round < 60; ++round) {
    if (round == 20) before = pair.a->counters().allocations + pair.b->counters().allocations;
    for (int i = 0; i < 8; ++i) {
      const size_t bytes = kSizes[i % 4];
      const auto number = round * 8 + i;
      REQUIRE(pair.b->post_receive(pair.slot_a, numbered_tag(number), bytes).ok());
      REQUIRE(pair.a->send(pair.slot_b, numbered_tag(number), header_of(bytes), patterned(bytes, 1)).ok());
      REQUIRE(pair.b->receive(pair.slot_a, numbered_tag(number), header_of(bytes), kPatience).ok());
    }
  }
  CHECK(pair.a->counters().allocations + pair.b->counters().allocations == before);
}

/// What a producer packs into the channel's own memory is not copied again.
void buffers_are_not_copied(ChannelPair& pair) {
  constexpr size_t kBytes = 1 << 20;
  const SendBuffer buffer = pair.a->buffer_for(pair.slot_b, kBytes);
  if (buffer.data == nullptr) return;
  const Payload pattern = patterned(kBytes, 4);
  std::copy(pattern.data, pattern.data + kBytes, buffer.data);
  REQUIRE(
      pair.a->send(pair.slot_b, numbered_tag(1), header_of(kBytes), {buffer.data, kBytes, buffer.owner, nullptr}).ok());
  CHECK(matches(pair.b->receive(pair.slot_a, numbered_tag(1), header_of(kBytes), kPatience).value(), kBytes, 4));
  CHECK(pair.a->counters().bytes_copied == 0);
}

}  // namespace

MessageTag numbered_tag(int64_t number, uint32_t generation) {
  MessageTag tag;
  tag.generation = generation;
  tag.step = number / 100;
  tag.producer_unit = static_cast<int32_t>(number % 100);
  tag.consumer_unit = 1;
  return tag;
}

Payload patterned(size_t bytes, uint64_t seed) {
  auto storage = std::make_shared<std::vector<std::byte>>(bytes);
  for (size_t i = 0; i < bytes; ++i) (*storage)[i] = static_cast<std::byte>(i * 31 + i / 251 + seed);
  return {storage->data(), bytes, storage, nullptr};
}

bool matches(const Payload& payload, size_t bytes, uint64_t seed) {
  if (payload.bytes != bytes) return false;
  for (size_t i = 0; i < bytes; ++i) {
    if (payload.data[i] != static_cast<std::byte>(i * 31 + i / 251 + seed)) return false;
  }
  return true;
}

MessageHeader header_of(size_t bytes) { return {1, static_cast<int64_t>(bytes), 0x1234, 0x5678}; }

void run_channel_contract(const ChannelFactory& make) {
  ChannelPair pair = make(0);
  if (pair.a == nullptr) {
    WARN("skipped: this channel has no devices to work with here");
    return;
  }
  SECTION("messages of every size arrive as they were sent") { sizes_arrive(pair, false); }
  SECTION("messages of every size arrive where they were announced") { sizes_arrive(pair, true); }
  SECTION("receives may come in another order than sends, and later") { reverse_order(pair); }
  SECTION("both ends may send and receive from several threads at once") { concurrent_senders(pair); }
  SECTION("a message of an older generation is dropped and counted") { late_generation(pair); }
  SECTION("a header that differs from the expected one is data loss that names both sides") { differing_headers(pair); }
  SECTION("the notice of a lost peer ends its waits with unavailable") { waits_end(pair, true); }
  SECTION("abort ends every wait") { waits_end(pair, false); }
  SECTION("a payload is let go of once it has been sent and received") { payloads_are_let_go(pair); }
  SECTION("payload bytes are counted once on each side") { bytes_are_counted_once(pair); }
  SECTION("buffers and slabs stand still in a steady state") { nothing_is_allocated_in_a_steady_state(pair); }
  SECTION("what is packed into the channel's own memory is not copied again") { buffers_are_not_copied(pair); }
  SECTION("a wait that runs out names the slot and the message, and the message can still come") {
    const auto nothing = pair.b->receive(pair.slot_a, numbered_tag(5), header_of(8), 5ms);
    CHECK(nothing.error().code == ErrorCode::kDeadlineExceeded);
    CHECK(contains(nothing.error().message, "slot " + std::to_string(pair.slot_a.value)));
    CHECK(contains(nothing.error().message, numbered_tag(5).to_string()));
    REQUIRE(pair.a->send(pair.slot_b, numbered_tag(5), header_of(8), patterned(8, 9)).ok());
    CHECK(matches(pair.b->receive(pair.slot_a, numbered_tag(5), header_of(8), kPatience).value(), 8, 9));
  }
}

void run_credit_contract(const ChannelFactory& make) {
  constexpr size_t kCredit = size_t{4} << 20;
  ChannelPair pair = make(kCredit);
  if (pair.a == nullptr) {
    WARN("skipped: this channel has no devices to work with here");
    return;
  }
  SECTION("a sender that is ahead keeps what the receiver has no credit for") { credits_bound_memory(pair, kCredit); }
  SECTION("a message larger than the credit passes alone") { oversized_passes_alone(pair, kCredit); }
  SECTION("no order of receives stands still for want of credit") { no_order_stands_still(pair, kCredit); }
  SECTION("the notice of a lost peer ends what waits for credit") {
    for (int i = 0; i < 8; ++i) {
      REQUIRE(pair.a->send(pair.slot_b, numbered_tag(i), header_of(kCredit), patterned(kCredit, 1)).ok());
    }
    pair.a->peer_lost(pair.slot_b);
    CHECK(pair.a->flush(1s).ok());
    CHECK(pair.a->send(pair.slot_b, numbered_tag(9), header_of(8), patterned(8, 1)).error().code ==
          ErrorCode::kUnavailable);
  }
}

}  // namespace troupe::testing
