#pragma once

#include <functional>
#include <memory>

#include "transport/channel/channel.h"

namespace troupe::testing {

/// Two connected ends; of an in-process channel both are the same object. `keep` owns what they need.
struct ChannelPair {
  Channel* a = nullptr;
  Channel* b = nullptr;
  SlotId slot_a, slot_b;
  std::shared_ptr<void> keep;
};
/// Makes a pair; `credit_bytes` 0: the channel's own default.
using ChannelFactory = std::function<ChannelPair(size_t credit_bytes)>;

/// What every channel must do, as sections of the calling test case. A factory that has no device to work with returns
/// a pair of null pointers, and the suite says that it was skipped.
void run_channel_contract(const ChannelFactory& make);
/// What every channel with memory of its own must do, in addition.
void run_credit_contract(const ChannelFactory& make);

/// A tag that differs from every other with another `number`.
MessageTag numbered_tag(int64_t number, uint32_t generation = 1);
/// Bytes that depend on `seed` and place; rows of one byte.
Payload patterned(size_t bytes, uint64_t seed);
bool matches(const Payload& payload, size_t bytes, uint64_t seed);
/// The header of a payload of so many bytes, one row.
MessageHeader header_of(size_t bytes);

}  // namespace troupe::testing
