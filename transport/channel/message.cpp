#include "transport/channel/message.h"

#include <sstream>

namespace troupe {
namespace {

std::string describe(const MessageHeader& header) {
  std::ostringstream out;
  out << header.rows << " rows of " << header.row_bytes << " bytes, samples " << std::hex << header.samples_digest
      << ", plan " << header.plan_digest;
  return out.str();
}

}  // namespace

std::string MessageTag::to_string() const {
  std::ostringstream out;
  out << "edge " << edge << " step " << step;
  if (attempt > 0) out << " attempt " << attempt;
  out << " units " << producer_unit << "->" << consumer_unit << " ranks " << from_rank << "->" << to_rank
      << (backward ? " backward" : " forward") << " generation " << generation;
  return out.str();
}

SendBuffer Channel::buffer_for(SlotId, size_t) { return {}; }

Status check_header(SlotId from, SlotId self, const MessageTag& tag, const MessageHeader& sent, size_t bytes,
                    const MessageHeader& expected) {
  const bool same = sent.rows == expected.rows && sent.row_bytes == expected.row_bytes &&
                    sent.samples_digest == expected.samples_digest && sent.plan_digest == expected.plan_digest;
  if (!same) {
    return data_loss(tag.to_string() + ": slot " + std::to_string(from.value) + " sent " + describe(sent) + "; slot " +
                     std::to_string(self.value) + " expected " + describe(expected));
  }
  if (bytes != static_cast<size_t>(sent.rows * sent.row_bytes)) {
    return data_loss(tag.to_string() + ": slot " + std::to_string(from.value) + " sent " + std::to_string(bytes) +
                     " bytes; slot " + std::to_string(self.value) + " expected " + describe(expected));
  }
  return {};
}

Error channel_aborted() { return make_error(ErrorCode::kAborted, "the channel was aborted"); }

Error generation_ended(const MessageTag& tag) {
  return make_error(ErrorCode::kAborted, "a newer generation has begun on the channel: " + tag.to_string());
}

Error receive_timed_out(SlotId from, SlotId self, const MessageTag& tag, std::chrono::milliseconds timeout) {
  return deadline_exceeded("no message from slot " + std::to_string(from.value) + " to slot " +
                           std::to_string(self.value) + " within " + std::to_string(timeout.count()) +
                           " ms: " + tag.to_string());
}

Error peer_is_lost(SlotId peer, SlotId self, const MessageTag& tag, const std::string& reason) {
  return unavailable("slot " + std::to_string(peer.value) + " is lost to slot " + std::to_string(self.value) + " (" +
                     reason + "): " + tag.to_string());
}

}  // namespace troupe
