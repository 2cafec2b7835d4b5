#pragma once

#include <memory>
#include <string>

#include "transport/channel/channel.h"

namespace troupe {

struct NcclChannelOptions {
  std::string name;  // key prefix in the store: job and generation
  SlotId self;
  int device = 0;
};

/// The channel between slots on different GPUs over NCCL point-to-point. NCCL knows no tags, only an order, so each
/// direction of each pair of slots is a communicator of its own; the sender's order and the headers go through
/// `control`, a channel of host memory that is used for nothing else and is connected, aborted and owned here.
///
/// Payloads lie in device memory; their bytes are complete when send() is called, and those that receive() returns are
/// complete too. Cost: one small control message and one NCCL message each; two communicators, two streams and two
/// threads a peer.
Result<std::unique_ptr<Channel>> create_nccl_channel(const NcclChannelOptions& options,
                                                     std::unique_ptr<Channel> control);

}  // namespace troupe
