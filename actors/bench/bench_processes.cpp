#include "actors/bench/bench_processes.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

namespace troupe {
namespace {

constexpr int kLookMs = 1000;  // at the latest, should a signal that a process has ended be lost

using Body = std::function<Status(const OnLine& say)>;

Error failed(const char* call) { return internal_error(std::string(call) + ": " + std::strerror(errno)); }

void write_line(int pipe, const std::string& line) {
  const std::string text = line + "\n";
  for (size_t done = 0; done < text.size();) {
    const ssize_t wrote = ::write(pipe, text.data() + done, text.size() - done);
    if (wrote < 0 && errno != EINTR) ::_exit(1);  // nobody listens any more
    if (wrote > 0) done += static_cast<size_t>(wrote);
  }
}

/// What a body says is a line behind "+"; why it failed is the one behind "!".
[[noreturn]] void become(const Body& body, int pipe, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  const Status status = body([pipe](const std::string& line) { write_line(pipe, "+" + line); });
  if (!status.ok()) {
    const nlohmann::json error = {{"code", error_code_name(status.error().code)},
                                  {"message", status.error().to_string()}};
    write_line(pipe, "!" + error.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }
  ::_exit(status.ok() ? 0 : 1);
}

/// SIGINT and its like are for the watcher, as is a terminal's Ctrl-C that reaches all: blocked in every process.
class Signals {
 public:
  Signals() {
    ::sigemptyset(&watched_);
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) ::sigaddset(&watched_, number);
    ::pthread_sigmask(SIG_BLOCK, &watched_, &before_);
    descriptor_ = ::signalfd(-1, &watched_, SFD_CLOEXEC | SFD_NONBLOCK);
  }
  ~Signals() {
    ::close(descriptor_);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  int descriptor() const { return descriptor_; }
  /// Whether one of those that have come asks to end.
  bool asked_to_end() const {
    signalfd_siginfo info;
    bool asked = false;
    while (::read(descriptor_, &info, sizeof info) == sizeof info) asked |= info.ssi_signo != SIGCHLD;
    return asked;
  }

 private:
  sigset_t watched_, before_;
  int descriptor_;
};

/// One process: killed when it is let go of before its end.
class Process {
 public:
  Process(pid_t pid, int pipe) : pid_(pid), pipe_(pipe) {}
  ~Process() {
    if (!ended_) {
      ::kill(pid_, SIGKILL);
      while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
      }
    }
    ::close(pipe_);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  int pipe() const { return pipe_; }
  bool ended() const { return ended_; }

  /// Hands on the lines that have come; the error if there is one among them.
  Status listen(const OnLine& heard) {
    char block[4096];
    for (ssize_t got = 0; (got = ::read(pipe_, block, sizeof block)) > 0;)
      text_.append(block, static_cast<size_t>(got));
    for (size_t end = 0; (end = text_.find('\n')) != std::string::npos; text_.erase(0, end + 1)) {
      const std::string line = text_.substr(1, end - 1);
      if (text_[0] == '+') {
        heard(line);
        continue;
      }
      const auto error = nlohmann::json::parse(line, nullptr, false);
      if (!error.is_object()) return internal_error("the measuring process " + std::to_string(pid_) + " said " + line);
      return make_error(error_code_from_name(error.value("code", "")), error.value("message", ""));
    }
    return {};
  }
  /// An error when it has ended by a signal or, which its lines explain, otherwise than well.
  Status look() {
    int status = 0;
    if (ended_ || ::waitpid(pid_, &status, WNOHANG) != pid_) return {};
    ended_ = true;
    const std::string who = "the measuring process " + std::to_string(pid_) + " ";
    if (WIFSIGNALED(status))
      return unavailable(who + "was killed by signal " + std::to_string(WTERMSIG(status)) + " (" +
                         ::strsignal(WTERMSIG(status)) + ")");
    if (WEXITSTATUS(status) != 0)
      return internal_error(who + "exited with status " + std::to_string(WEXITSTATUS(status)));
    return {};
  }

 private:
  pid_t pid_;
  int pipe_;
  std::string text_;  // of a line that is not whole yet
  bool ended_ = false;
};

Result<std::unique_ptr<Process>> start(const Body& body) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return failed("pipe");
  std::fflush(nullptr);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::close(ends[0]);
    become(body, ends[1], parent);
  }
  const Status forked = pid < 0 ? Status(failed("fork")) : Status();
  ::close(ends[1]);
  if (!forked.ok()) {
    ::close(ends[0]);
    return forked.error();
  }
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return std::make_unique<Process>(pid, ends[0]);
}

}  // namespace

Status run_processes(const std::vector<Body>& bodies, const OnLine& heard) {
  const Signals signals;
  if (signals.descriptor() < 0) return failed("signalfd");
  std::vector<std::unique_ptr<Process>> processes;
  for (const Body& body : bodies) {
    TROUPE_ASSIGN(auto process, start(body));
    processes.push_back(std::move(process));
  }
  for (size_t left = processes.size(); left > 0;) {
    std::vector<pollfd> ready{{signals.descriptor(), POLLIN, 0}};
    for (const auto& process : processes)
      if (!process->ended()) ready.push_back({process->pipe(), POLLIN, 0});
    if (::poll(ready.data(), ready.size(), kLookMs) < 0 && errno != EINTR) return failed("poll");
    if (signals.asked_to_end()) return cancelled("interrupted");
    left = 0;
    // Ends before lines: who was killed is the cause of what others say, and an end's lines are in its pipe already.
    std::vector<Status> ends;
    for (const auto& process : processes) ends.push_back(process->look());
    for (const Status& end : ends)
      if (!end.ok() && end.error().code == ErrorCode::kUnavailable) return end;
    for (size_t i = 0; i < processes.size(); ++i) {
      TROUPE_RETURN_IF_ERROR(processes[i]->listen(heard));
      TROUPE_RETURN_IF_ERROR(ends[i]);
      left += processes[i]->ended() ? 0 : 1;
    }
  }
  return {};
}

}  // namespace troupe
