#include "worker/supervision/spawner.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <future>

extern char** environ;

namespace troupe::worker {
namespace {

/// Everything that the child needs between fork and exec, prepared before: nothing may allocate there.
struct Prepared {
  std::vector<std::string> storage;
  std::vector<char*> arguments, environment;
  int output = -1, standard_output = -1, null = -1, inherited = -1;
  ~Prepared() {
    for (int fd : {output, standard_output, null})
      if (fd >= 0) ::close(fd);
  }
};

Result<int> open_output(const std::string& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) return make_error(ErrorCode::kFailedPrecondition, "cannot write " + path + ": " + std::strerror(errno));
  return fd;
}

Status prepare(const SpawnSpec& spec, Prepared& out) {
  for (char** entry = environ; *entry; ++entry) {
    const std::string text = *entry;
    if (!spec.environment.contains(text.substr(0, text.find('=')))) out.storage.push_back(text);
  }
  for (const auto& [name, value] : spec.environment) out.storage.push_back(name + "=" + value);
  const size_t variables = out.storage.size();
  out.storage.insert(out.storage.end(), spec.arguments.begin(), spec.arguments.end());
  for (size_t i = 0; i < out.storage.size(); ++i)
    (i < variables ? out.environment : out.arguments).push_back(out.storage[i].data());
  out.environment.push_back(nullptr);
  out.arguments.push_back(nullptr);
  if (!spec.output_path.empty()) {
    TROUPE_ASSIGN(out.output, open_output(spec.output_path));
  }
  if (!spec.standard_output_path.empty()) {
    TROUPE_ASSIGN(out.standard_output, open_output(spec.standard_output_path));
  }
  out.null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  out.inherited = spec.inherited_fd;
  return {};
}

[[noreturn]] void become_child(const Prepared& prepared, int parent, int failure) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent may have died before prctl: then no signal will ever come.
  if (::getppid() != parent) ::_exit(127);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (int number : {SIGINT, SIGTERM, SIGUSR1, SIGPIPE, SIGHUP}) ::signal(number, SIG_DFL);
  ::dup2(prepared.null, 0);
  const int standard_output = prepared.standard_output >= 0 ? prepared.standard_output : prepared.output;
  if (standard_output >= 0) ::dup2(standard_output, 1);
  if (prepared.output >= 0) ::dup2(prepared.output, 2);
  if (prepared.inherited == 3) {
    ::fcntl(3, F_SETFD, 0);
  } else if (prepared.inherited >= 0) {
    if (failure == 3) failure = ::fcntl(failure, F_DUPFD_CLOEXEC, 10);
    ::dup2(prepared.inherited, 3);
  }
  // Nothing else of the worker's is the child's business; the failure pipe closes by itself as well.
  ::syscall(SYS_close_range, prepared.inherited >= 0 ? 4U : 3U, ~0U, 1U << 2 /* CLOSE_RANGE_CLOEXEC */);
  ::execve(prepared.arguments[0], prepared.arguments.data(), prepared.environment.data());
  const int why = errno;
  static_cast<void>(!::write(failure, &why, sizeof(why)));
  ::_exit(127);
}

Result<int> start(const SpawnSpec& spec) {
  Prepared prepared;
  TROUPE_RETURN_IF_ERROR(prepare(spec, prepared));
  int failure[2];
  if (::pipe2(failure, O_CLOEXEC) != 0) return internal_error(std::string("pipe2: ") + std::strerror(errno));
  const int parent = ::getpid();
  const int pid = ::fork();
  if (pid == 0) become_child(prepared, parent, failure[1]);
  const int fork_error = errno;
  ::close(failure[1]);
  if (pid < 0) {
    ::close(failure[0]);
    return make_error(ErrorCode::kResourceExhausted, std::string("fork: ") + std::strerror(fork_error));
  }
  ::setpgid(pid, pid);
  int why = 0;
  ssize_t got;
  while ((got = ::read(failure[0], &why, sizeof(why))) < 0 && errno == EINTR) {
  }
  ::close(failure[0]);
  if (got == sizeof(why)) {
    ::waitpid(pid, nullptr, 0);
    return not_found("cannot start " + spec.arguments[0] + ": " + std::strerror(why));
  }
  return pid;
}

}  // namespace

struct Spawner::Request {
  const SpawnSpec* spec;
  std::promise<Result<int>> answer;
};

Result<std::unique_ptr<Spawner>> Spawner::create(Reaped reaped) {
  const int wake = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake < 0) return internal_error(std::string("eventfd: ") + std::strerror(errno));
  std::unique_ptr<Spawner> spawner(new Spawner(std::move(reaped), wake));
  spawner->thread_ = std::thread([raw = spawner.get()] { raw->run(); });
  return spawner;
}

Spawner::~Spawner() {
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
  }
  const uint64_t one = 1;
  static_cast<void>(!::write(wake_, &one, sizeof(one)));
  thread_.join();
  ::close(wake_);
}

Result<int> Spawner::spawn(const SpawnSpec& spec) {
  Request request{&spec, {}};
  auto answer = request.answer.get_future();
  {
    std::lock_guard lock(mutex_);
    requests_.push_back(&request);
  }
  const uint64_t one = 1;
  static_cast<void>(!::write(wake_, &one, sizeof(one)));
  return answer.get();
}

void Spawner::signal(int pid, int number) {
  std::lock_guard lock(mutex_);
  if (!children_.contains(pid)) return;
  if (::kill(-pid, number) != 0) ::kill(pid, number);
}

void Spawner::run() {
  for (;;) {
    std::vector<Request*> requests;
    bool closing;
    {
      std::lock_guard lock(mutex_);
      requests.swap(requests_);
      closing = closing_;
    }
    for (Request* request : requests) {
      Result<int> pid = start(*request->spec);
      if (pid) {
        const int fd = static_cast<int>(::syscall(SYS_pidfd_open, *pid, 0));
        std::lock_guard lock(mutex_);
        children_[*pid] = fd;
      }
      request->answer.set_value(std::move(pid));
    }
    if (closing) break;
    watch();
    reap_ended();
  }
  std::map<int, int> left;
  {
    std::lock_guard lock(mutex_);
    left.swap(children_);
  }
  for (const auto& [pid, fd] : left) ::kill(-pid, SIGKILL);
  for (const auto& [pid, fd] : left) {
    ::waitpid(pid, nullptr, 0);
    ::close(fd);
  }
}

void Spawner::watch() {
  std::vector<pollfd> watched{{wake_, POLLIN, 0}};
  {
    std::lock_guard lock(mutex_);
    if (!requests_.empty() || closing_) return;
    for (const auto& [pid, fd] : children_) watched.push_back({fd, POLLIN, 0});
  }
  ::poll(watched.data(), watched.size(), -1);
  uint64_t count;
  static_cast<void>(!::read(wake_, &count, sizeof(count)));
}

void Spawner::reap_ended() {
  struct Ended {
    int pid, status;
  };
  std::vector<Ended> ended;
  {
    std::lock_guard lock(mutex_);
    for (auto at = children_.begin(); at != children_.end();) {
      int status = 0;
      if (::waitpid(at->first, &status, WNOHANG) == at->first) {
        // Whatever it may have started itself shares its process group.
        ::kill(-at->first, SIGKILL);
        ended.push_back({at->first, status});
        ::close(at->second);
        at = children_.erase(at);
      } else {
        ++at;
      }
    }
  }
  for (const auto& [pid, status] : ended)
    reaped_(pid, WIFEXITED(status) ? WEXITSTATUS(status) : 0, WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}

Status check_program(const std::string& path, const std::string& what) {
  if (::access(path.c_str(), X_OK) == 0) return {};
  return not_found("the " + what + " " + path + " cannot be executed: " + std::strerror(errno));
}

}  // namespace troupe::worker
