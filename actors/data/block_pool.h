#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "actors/data/block_reader.h"

namespace troupe {

/// Threads that look at blocks; what they find comes back in the order in which blocks were added. Owner thread only.
class BlockPool {
 public:
  struct Done {
    RecordBlock block;
    BlockReader::Look look;
  };

  BlockPool(BlockReader& reader, int threads);
  /// Lets blocks that are being looked at be finished; others are dropped.
  ~BlockPool();
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  /// Only while waiting() < most_waiting().
  void add(int source, RecordBlock block);
  /// The oldest block, once it was looked at; null when that takes longer than `patience`.
  std::unique_ptr<Done> take(std::chrono::milliseconds patience);
  /// Blocks that were added and not taken.
  size_t waiting() const { return tasks_.size(); }
  size_t most_waiting() const { return 2 * threads_.size() + 2; }

 private:
  struct Task {
    int source;
    std::unique_ptr<Done> work;
    bool done = false;  // under mutex_
  };
  void loop();

  BlockReader& reader_;
  std::deque<std::shared_ptr<Task>> tasks_;  // the owner's; shared with the thread that is at it
  std::mutex mutex_;
  std::condition_variable added_, finished_;
  std::deque<std::shared_ptr<Task>> open_;  // nobody is at them yet; under mutex_
  bool closed_ = false;                     // under mutex_
  std::vector<std::thread> threads_;
};

}  // namespace troupe
