#pragma once

#include <google/protobuf/repeated_ptr_field.h>

#include <deque>

/// Messages that wait while one is on its way leave together, below what a control message may hold.
namespace troupe {

/// Of one batch; a larger message goes alone.
inline constexpr size_t kBatchBytes = 1 << 20;

/// The largest call: what is around it in its message has room beside it.
inline constexpr size_t kLargestCallBytes = 15 << 20;

/// Moves messages from the front of `waiting` to `into`: up to kBatchBytes of them, and one at least.
template <typename Message>
void take_batch(std::deque<Message>& waiting, google::protobuf::RepeatedPtrField<Message>* into) {
  size_t bytes = 0;
  while (!waiting.empty()) {
    const size_t size = waiting.front().ByteSizeLong();
    if (!into->empty() && bytes + size > kBatchBytes) return;
    bytes += size;
    into->Add()->Swap(&waiting.front());
    waiting.pop_front();
  }
}

}  // namespace troupe
