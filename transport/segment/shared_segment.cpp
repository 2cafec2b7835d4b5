#include "transport/segment/shared_segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>
#include <sstream>

#include "base/process_watch.h"

namespace troupe {
namespace {

constexpr size_t kPage = 4096;
/// The first page holds a number by which a reader knows that it has opened the right memory.
constexpr size_t kFirst = kPage;

size_t whole_pages(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

Error segment_error(const std::string& what) {
  return make_error(ErrorCode::kResourceExhausted, "shared segment: " + what + ": " + std::strerror(errno));
}

}  // namespace

struct SharedSegment::Mapping {
  int fd = -1;
  std::byte* data = nullptr;
  size_t bytes = 0;
  std::atomic<bool> left{false};
  std::mutex mutex;
  RangeAllocator ranges{0};

  ~Mapping() {
    if (data != nullptr) munmap(data, bytes);
    if (fd >= 0) close(fd);
  }
  /// Asks for the pages now: touching them later could only fail with a signal.
  std::byte* allocate(size_t size) {
    std::optional<size_t> offset;
    {
      std::lock_guard lock(mutex);
      offset = ranges.take(whole_pages(size));
    }
    if (!offset) throw std::bad_alloc();
    const size_t place = kFirst + *offset;
    if (fallocate(fd, 0, static_cast<off_t>(place), static_cast<off_t>(whole_pages(size))) != 0) {
      std::lock_guard lock(mutex);
      ranges.give_back(*offset);
      throw std::bad_alloc();
    }
    return data + place;
  }
  void release(std::byte* slab, size_t size) {
    if (left.load()) return;
    const auto place = static_cast<size_t>(slab - data);
    (void)fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(place),
                    static_cast<off_t>(whole_pages(size)));
    std::lock_guard lock(mutex);
    ranges.give_back(place - kFirst);
  }
};

SharedSegment::SharedSegment(std::shared_ptr<Mapping> mapping, size_t retained_bytes)
    : mapping_(std::move(mapping)),
      pool_(SlabPool::create(retained_bytes,
                             {[m = mapping_](size_t bytes) { return m->allocate(bytes); },
                              [m = mapping_](std::byte* data, size_t bytes) { m->release(data, bytes); }})) {}

SharedSegment::~SharedSegment() { leave_to_readers(); }

void SharedSegment::leave_to_readers() { mapping_->left.store(true); }

Result<std::shared_ptr<SharedSegment>> SharedSegment::create(size_t bytes, size_t retained_bytes) {
  auto mapping = std::make_shared<Mapping>();
  mapping->bytes = kFirst + whole_pages(bytes);
  mapping->ranges = RangeAllocator(whole_pages(bytes));
  mapping->fd = memfd_create("troupe-boundary", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (mapping->fd < 0) return segment_error("creating it");
  if (ftruncate(mapping->fd, static_cast<off_t>(mapping->bytes)) != 0) return segment_error("sizing it");
  // A reader must never meet the end of the file: that would be a signal, not an error.
  if (fcntl(mapping->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) return segment_error("sealing it");
  void* data = mmap(nullptr, mapping->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, mapping->fd, 0);
  if (data == MAP_FAILED) return segment_error("mapping it");
  mapping->data = static_cast<std::byte*>(data);
  uint64_t number = 0;
  if (getrandom(&number, sizeof number, 0) != sizeof number) return segment_error("drawing its number");
  std::memcpy(mapping->data, &number, sizeof number);
  return std::shared_ptr<SharedSegment>(new SharedSegment(std::move(mapping), retained_bytes));
}

std::string SharedSegment::ticket() const {
  uint64_t number = 0;
  std::memcpy(&number, mapping_->data, sizeof number);
  std::ostringstream out;
  out << boot_id() << ' ' << getpid() << ' ' << mapping_->fd << ' ' << mapping_->bytes << ' ' << number;
  return out.str();
}

std::optional<SlabPool::Slab> SharedSegment::take(size_t bytes) {
  try {
    return pool_->take(bytes);
  } catch (const std::bad_alloc&) {
    return std::nullopt;
  }
}

std::optional<size_t> SharedSegment::offset_of(const std::byte* data) const {
  if (data < mapping_->data + kFirst || data >= mapping_->data + mapping_->bytes) return std::nullopt;
  return static_cast<size_t>(data - mapping_->data);
}

Result<std::shared_ptr<const SegmentView>> SegmentView::open(const std::string& ticket) {
  std::istringstream in(ticket);
  std::string boot;
  int pid = 0, number_of_fd = -1;
  size_t bytes = 0;
  uint64_t number = 0;
  if (!(in >> boot >> pid >> number_of_fd >> bytes >> number))
    return unavailable("no shared segment in '" + ticket + "'");
  if (boot != boot_id()) return unavailable("the shared segment lies on another node");
  const std::string path = "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(number_of_fd);
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return unavailable("shared segment " + path + ": " + std::strerror(errno));
  struct stat status {};
  void* data = MAP_FAILED;
  if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && static_cast<size_t>(status.st_size) == bytes &&
      bytes >= kFirst)
    data = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, 0);
  close(fd);
  if (data == MAP_FAILED) return unavailable("shared segment " + path + " is not what its ticket says");
  std::shared_ptr<const SegmentView> view(new SegmentView(static_cast<const std::byte*>(data), bytes));
  uint64_t found = 0;
  std::memcpy(&found, data, sizeof found);
  if (found != number) return unavailable("shared segment " + path + " is another process's");
  return view;
}

SegmentView::~SegmentView() { munmap(const_cast<std::byte*>(data_), bytes_); }

const std::byte* SegmentView::at(size_t offset, size_t bytes) const {
  if (offset < kFirst || offset > bytes_ || bytes > bytes_ - offset) return nullptr;
  return data_ + offset;
}

}  // namespace troupe
