#include "base/trace/trace_log.h"

#include <array>

namespace troupe {

const char* span_kind_name(SpanKind kind) {
  constexpr std::array<const char*, 5> kNames = {"step", "instruction", "kernel", "send", "peer"};
  return kNames[static_cast<size_t>(kind)];
}

void TraceLog::add(const Span& span) {
  if (!on()) return;
  std::lock_guard lock(mutex_);
  if (spans_.size() < limit_)
    spans_.push_back(span);
  else
    ++dropped_;
}

std::vector<Span> TraceLog::take() {
  std::lock_guard lock(mutex_);
  return std::exchange(spans_, {});
}

int64_t TraceLog::dropped() const {
  std::lock_guard lock(mutex_);
  return dropped_;
}

}  // namespace troupe
