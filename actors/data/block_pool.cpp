#include "actors/data/block_pool.h"

#include <algorithm>

namespace troupe {

BlockPool::BlockPool(BlockReader& reader, int threads) : reader_(reader) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { loop(); });
}

BlockPool::~BlockPool() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    open_.clear();
  }
  added_.notify_all();
  for (auto& thread : threads_) thread.join();
}

void BlockPool::add(int source, RecordBlock block) {
  auto task = std::make_shared<Task>();
  task->source = source;
  task->work = std::make_unique<Done>();
  task->work->block = std::move(block);
  tasks_.push_back(task);
  {
    const std::lock_guard lock(mutex_);
    open_.push_back(std::move(task));
  }
  added_.notify_one();
}

std::unique_ptr<BlockPool::Done> BlockPool::take(std::chrono::milliseconds patience) {
  if (tasks_.empty()) return nullptr;
  Task& oldest = *tasks_.front();
  {
    std::unique_lock lock(mutex_);
    // A block takes its time; without patience at all the owner would turn in circles.
    const auto wait = std::max(patience, std::chrono::milliseconds(1));
    if (!finished_.wait_for(lock, wait, [&] { return oldest.done; })) return nullptr;
  }
  auto work = std::move(oldest.work);
  tasks_.pop_front();
  return work;
}

void BlockPool::loop() {
  while (true) {
    std::shared_ptr<Task> task;
    {
      std::unique_lock lock(mutex_);
      added_.wait(lock, [&] { return closed_ || !open_.empty(); });
      if (closed_) return;
      task = std::move(open_.front());
      open_.pop_front();
    }
    task->work->look = reader_.look(task->source, task->work->block);
    {
      const std::lock_guard lock(mutex_);
      task->done = true;
    }
    finished_.notify_all();
  }
}

}  // namespace troupe
