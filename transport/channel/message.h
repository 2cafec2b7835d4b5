#pragma once

#include "transport/channel/channel.h"

/// What every channel says about a message in the same words.
namespace troupe {

/// DataLoss naming both sides when `sent` or its `bytes` differ from `expected`; ok otherwise.
Status check_header(SlotId from, SlotId self, const MessageTag& tag, const MessageHeader& sent, size_t bytes,
                    const MessageHeader& expected);

Error channel_aborted();
Error generation_ended(const MessageTag& tag);
Error receive_timed_out(SlotId from, SlotId self, const MessageTag& tag, std::chrono::milliseconds timeout);
Error peer_is_lost(SlotId peer, SlotId self, const MessageTag& tag, const std::string& reason);

}  // namespace troupe
