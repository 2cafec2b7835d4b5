#include "worker/supervision/log_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

namespace troupe::worker {

void cap_log(const std::string& path, int64_t cap_bytes) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 || info.st_size <= cap_bytes) return;
  std::ifstream from(path, std::ios::binary);
  std::ofstream to(path + ".old", std::ios::binary | std::ios::trunc);
  from.seekg(info.st_size - cap_bytes / 2);
  to << from.rdbuf();
  static_cast<void>(!::truncate(path.c_str(), 0));
}

std::vector<std::string> LineTail::read_new() {
  std::ifstream file(path_, std::ios::binary);
  if (!file) return {};
  file.seekg(offset_);
  std::string fresh((std::istreambuf_iterator<char>(file)), {});
  offset_ += static_cast<int64_t>(fresh.size());
  rest_ += fresh;
  std::vector<std::string> lines;
  size_t begin = 0;
  for (size_t end; (end = rest_.find('\n', begin)) != std::string::npos; begin = end + 1)
    lines.push_back(rest_.substr(begin, end - begin));
  rest_.erase(0, begin);
  return lines;
}

}  // namespace troupe::worker
