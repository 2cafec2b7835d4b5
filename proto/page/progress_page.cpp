#include "proto/page/progress_page.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>

namespace troupe {

struct ProgressPage::Content {
  static constexpr size_t kInstructionBytes = 64;
  std::atomic<uint64_t> sequence{0};  // odd while a write is under way
  std::atomic<int64_t> step{0};
  std::atomic<int32_t> group{-1};
  std::atomic<int32_t> rank{-1};
  std::atomic<uint64_t> instruction[kInstructionBytes / 8] = {};
};

Result<std::unique_ptr<ProgressPage>> ProgressPage::map(int fd) {
  void* memory = ::mmap(nullptr, sizeof(Content), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED)
    return internal_error(std::string("progress page cannot be mapped: ") + std::strerror(errno));
  return std::unique_ptr<ProgressPage>(new ProgressPage(fd, static_cast<Content*>(memory)));
}

Result<std::unique_ptr<ProgressPage>> ProgressPage::create() {
  int fd = ::memfd_create("troupe-progress", MFD_CLOEXEC);
  if (fd < 0) return internal_error(std::string("memfd_create: ") + std::strerror(errno));
  if (::ftruncate(fd, sizeof(Content)) != 0) {
    ::close(fd);
    return internal_error(std::string("progress page cannot be sized: ") + std::strerror(errno));
  }
  TROUPE_ASSIGN(auto page, map(fd));
  new (page->content_) Content();
  return page;
}

Result<std::unique_ptr<ProgressPage>> ProgressPage::open(int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0 || info.st_size < static_cast<off_t>(sizeof(Content)))
    return invalid_argument("descriptor " + std::to_string(fd) + " is no progress page");
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  return map(fd);
}

ProgressPage::~ProgressPage() {
  ::munmap(content_, sizeof(Content));
  ::close(fd_);
}

void ProgressPage::publish(int64_t step, const char* instruction, int group, int rank) {
  char text[Content::kInstructionBytes] = {};
  std::strncpy(text, instruction ? instruction : "", sizeof(text) - 1);
  const uint64_t before = content_->sequence.load(std::memory_order_relaxed);
  content_->sequence.store(before + 1, std::memory_order_relaxed);
  // Who reads any of what follows sees the odd number too. No fence: the thread sanitizer knows none.
  content_->step.store(step, std::memory_order_release);
  content_->group.store(group, std::memory_order_release);
  content_->rank.store(rank, std::memory_order_release);
  for (size_t i = 0; i < Content::kInstructionBytes / 8; ++i) {
    uint64_t word;
    std::memcpy(&word, text + i * 8, 8);
    content_->instruction[i].store(word, std::memory_order_release);
  }
  content_->sequence.store(before + 2, std::memory_order_release);
}

Progress ProgressPage::read() const {
  for (int attempt = 0; attempt < 1000; ++attempt) {
    const uint64_t before = content_->sequence.load(std::memory_order_acquire);
    if (before == 0) return {};
    if (before % 2 != 0) continue;
    Progress progress;
    progress.valid = true;
    progress.step = content_->step.load(std::memory_order_acquire);
    progress.group = content_->group.load(std::memory_order_acquire);
    progress.rank = content_->rank.load(std::memory_order_acquire);
    char text[Content::kInstructionBytes];
    for (size_t i = 0; i < Content::kInstructionBytes / 8; ++i) {
      const uint64_t word = content_->instruction[i].load(std::memory_order_acquire);
      std::memcpy(text + i * 8, &word, 8);
    }
    text[Content::kInstructionBytes - 1] = '\0';
    if (content_->sequence.load(std::memory_order_relaxed) != before) continue;
    progress.instruction = text;
    return progress;
  }
  return {};
}

}  // namespace troupe
