#include "base/process_watch.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <sstream>

namespace troupe {
namespace {

std::string pid_namespace() {
  char name[64];
  const ssize_t length = readlink("/proc/self/ns/pid", name, sizeof name);
  return length > 0 ? std::string(name, static_cast<size_t>(length)) : "-";
}

/// What proc(5) numbers as `number` in a process's stat, from 3 on; empty when there is no such process.
std::string stat_field(int pid, int number) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  const size_t name_end = line.rfind(')');  // a program's name may hold blanks
  if (name_end == std::string::npos) return "";
  std::istringstream fields(line.substr(name_end + 1));
  std::string field;
  for (int at = 3; at <= number; ++at) fields >> field;
  return field;
}

/// In clock ticks since the boot; empty when there is no such process. With the pid it names a process for good.
std::string start_time(int pid) { return stat_field(pid, 22); }

}  // namespace

std::string boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  file >> id;
  return id.empty() ? "unknown" : id;
}

std::string own_process() {
  return boot_id() + ' ' + pid_namespace() + ' ' + std::to_string(getpid()) + ' ' + start_time(getpid());
}

Result<int> watch_process(const std::string& process) {
  std::istringstream fields(process);
  std::string boot, name_space, started;
  int pid = 0;
  if (!(fields >> boot >> name_space >> pid >> started)) return -1;
  if (boot != boot_id() || name_space != pid_namespace() || pid == getpid()) return -1;
  const int descriptor = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (descriptor < 0 && errno != ESRCH) return -1;
  // Looked at after the descriptor is held: a pid that was given to another process meanwhile shows here.
  if (descriptor >= 0 && start_time(pid) == started) return descriptor;
  if (descriptor >= 0) close(descriptor);
  return unavailable("process " + std::to_string(pid) + " has ended");
}

bool is_stopped(int pid) { return stat_field(pid, 3) == "T"; }

}  // namespace troupe
