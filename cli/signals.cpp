#include "cli/signals.h"

#include <csignal>
#include <ctime>

namespace troupe::cli {
namespace {

sigset_t watched() {
  sigset_t set;
  ::sigemptyset(&set);
  for (int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) ::sigaddset(&set, number);
  return set;
}

}  // namespace

void block_signals() {
  const sigset_t set = watched();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

void ignore_closed_pipes() { std::signal(SIGPIPE, SIG_IGN); }

int wait_signal(std::chrono::milliseconds timeout) {
  const sigset_t set = watched();
  const timespec time{timeout.count() / 1000, timeout.count() % 1000 * 1000000};
  const int number = ::sigtimedwait(&set, nullptr, &time);
  return number > 0 ? number : 0;
}

}  // namespace troupe::cli
