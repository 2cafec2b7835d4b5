#include "base/mapped_file.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/regular_file.h"
#include "base/shortened_file.h"

namespace troupe {

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::string& path) {
  const Result<int> opened = open_regular_file(path);
  if (!opened.ok()) return not_found("cannot open " + path + ": " + opened.error().message);
  const int fd = *opened;
  struct stat info {};
  if (::fstat(fd, &info) != 0) {
    const int reason = errno;
    ::close(fd);
    return not_found("cannot open " + path + ": " + std::strerror(reason));
  }
  const auto size = static_cast<size_t>(info.st_size);
  void* data = nullptr;
  if (size > 0) data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  const int reason = errno;
  ::close(fd);
  if (data == MAP_FAILED) return not_found("cannot map " + path + ": " + std::strerror(reason));
  return std::shared_ptr<const MappedFile>(
      new MappedFile(static_cast<const char*>(data), size, name_mapping(data, size, path)));
}

void MappedFile::forget(size_t begin, size_t end) const {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  begin = begin / page * page;  // a neighbour's part of a page is read again from the cache of the system
  end = std::min(end, size_);
  if (begin < end) ::madvise(const_cast<char*>(data_) + begin, end - begin, MADV_DONTNEED);
}

MappedFile::~MappedFile() {
  forget_mapping(named_);
  if (size_ > 0) ::munmap(const_cast<char*>(data_), size_);
}

}  // namespace troupe
