#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

/// What a host did in a window of steps, as spans of time. Cheap enough to leave in the code: a span that nobody
/// records costs one atomic load.
namespace troupe {

enum class SpanKind : uint8_t {
  kStep,         // a whole step of this host
  kInstruction,  // one instruction of the program; holds the spans below
  kKernel,       // tensor work: forward, backward, packing and placing rows, collectives, the optimizer
  kSend,         // handing a message to a channel, which carries it on by itself; `bytes` says how large
  kPeer,         // blocked until a message of a peer has arrived
};
const char* span_kind_name(SpanKind kind);

/// Times are nanoseconds of this host's steady clock. Names are short, so that a span allocates nothing.
struct Span {
  SpanKind kind = SpanKind::kInstruction;
  std::string name;
  std::string lane;  // a second thread of the host, such as "reduce"; empty: the executor
  int64_t step = 0;
  int group = -1, rank = -1;                            // -1: the host as a whole
  int unit = -1;                                        // -1: once a step
  int peer_group = -1, peer_rank = -1, peer_unit = -1;  // the other end of a message
  bool gradient = false;                                // of a message: backward
  int64_t bytes = 0;
  int64_t begin_ns = 0, end_ns = 0;
  bool operator==(const Span&) const = default;
};

/// Thread-safe. Bounded: what comes after `limit` spans is counted, not kept.
class TraceLog {
 public:
  static constexpr size_t kDefaultLimit = 1 << 20;
  explicit TraceLog(size_t limit = kDefaultLimit) : limit_(limit) {}
  TraceLog(const TraceLog&) = delete;
  TraceLog& operator=(const TraceLog&) = delete;

  bool on() const { return on_.load(std::memory_order_relaxed); }
  void start() { on_.store(true, std::memory_order_relaxed); }
  void stop() { on_.store(false, std::memory_order_relaxed); }
  /// Ignored while off.
  void add(const Span& span);
  /// All spans so far, in the order in which they ended; the log is empty afterwards.
  std::vector<Span> take();
  int64_t dropped() const;

  static int64_t now_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }

 private:
  const size_t limit_;
  std::atomic<bool> on_{false};
  mutable std::mutex mutex_;
  std::vector<Span> spans_;
  int64_t dropped_ = 0;
};

/// Records the time between its construction and its end, when `log` is on at its construction. `log` may be null.
class SpanScope {
 public:
  SpanScope(TraceLog* log, Span span) : log_(log && log->on() ? log : nullptr), span_(std::move(span)) {
    if (log_) span_.begin_ns = TraceLog::now_ns();
  }
  ~SpanScope() { end(); }
  SpanScope(const SpanScope&) = delete;
  SpanScope& operator=(const SpanScope&) = delete;
  void set_bytes(int64_t bytes) { span_.bytes = bytes; }
  void end() {
    if (!log_) return;
    span_.end_ns = TraceLog::now_ns();
    log_->add(span_);
    log_ = nullptr;
  }

 private:
  TraceLog* log_;
  Span span_;
};

}  // namespace troupe
