#include <dlfcn.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <fstream>
#include <string>
#include <thread>

#include "tests/transport/channel/channel_contract.h"
#include "tests/transport/test_processes.h"
#include "transport/channel/channel.h"

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;

namespace {

enum ChildResult { kPeerLost = 0, kNotCreated = 1, kConnected = 2, kOtherError = 3, kNeverTried = 4 };

/// The notice comes when UCX has done with the call what it does.
constexpr auto kNotice = 300ms;

std::atomic<pid_t> ended_when_called{0};
std::atomic<int> calls{0};

/// Its state as Linux has it: 'T' stopped, 'Z' over but not reaped (what it had is closed); 'Z' too when it is gone.
char state_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  return std::getline(file, text) ? text[text.rfind(')') + 2] : 'Z';
}

void end_with(pid_t pid, int signal, char state) {
  ::kill(pid, signal);
  while (state_of(pid) != state) std::this_thread::sleep_for(1ms);
}

}  // namespace

/// Stands before the C library's for UCX too: a process that is called ends when its machine has taken the call and
/// before it has done so itself.
extern "C" int connect(int socket, const sockaddr* address, socklen_t bytes) {
  static const auto real = reinterpret_cast<int (*)(int, const sockaddr*, socklen_t)>(dlsym(RTLD_NEXT, "connect"));
  const pid_t pid = address->sa_family == AF_INET ? ended_when_called.exchange(0) : 0;
  if (pid > 0) end_with(pid, SIGSTOP, 'T');
  const int result = real(socket, address, bytes), error = errno;
  if (pid > 0) {
    ++calls;
    end_with(pid, SIGKILL, 'Z');
  }
  errno = error;
  return result;
}

namespace {

/// Says where this process is and never learns where others are.
class OnlyPublished final : public KvStore {
 public:
  explicit OnlyPublished(KvStore& store) : store_(store) {}
  Status set(const std::string& key, const std::string& value) override { return store_.set(key, value); }
  Result<std::string> get(const std::string&, std::chrono::milliseconds) override {
    (void)store_.set("published", "1");
    while (true) pause();
  }
  Result<int64_t> add(const std::string& key, int64_t amount) override { return store_.add(key, amount); }
  Result<std::string> compare_set(const std::string& key, const std::string& expected,
                                  const std::string& desired) override {
    return store_.compare_set(key, expected, desired);
  }
  Result<bool> check(const std::vector<std::string>& keys) override { return store_.check(keys); }
  Result<bool> erase(const std::string& key) override { return store_.erase(key); }

 private:
  KvStore& store_;
};

UcxChannelOptions over_tcp(int slot) {
  UcxChannelOptions options{"job/g1", SlotId(slot), ""};
  options.shared_segment = false;
  options.transports = "tcp";
  return options;
}

int be_called(KvStore& store) {
  auto channel = create_ucx_channel(over_tcp(1));
  if (!channel.ok()) return kNotCreated;
  OnlyPublished published(store);
  (void)(*channel)->connect({SlotId(0)}, published, 30s);
  return kConnected;
}

int call(KvStore& store, pid_t victim) {
  auto channel = create_ucx_channel(over_tcp(0));
  if (!channel.ok()) return kNotCreated;
  (void)store.get("published", 30s);
  ended_when_called = victim;
  std::thread control([&] {
    if (!store.get("lost", 30s).ok()) return;
    std::this_thread::sleep_for(kNotice);
    (*channel)->peer_lost(SlotId(1));
  });
  const Status connected = (*channel)->connect({SlotId(1)}, store, 30s);
  control.join();
  channel->reset();
  if (connected.ok()) return kConnected;
  if (calls == 0) return kNeverTried;
  return connected.error().code == ErrorCode::kUnavailable ? kPeerLost : kOtherError;
}

}  // namespace

TEST_CASE("a peer that ends between taking a TCP connection and reading from it takes nobody along") {
  SharedKvStore store;
  const int victim = fork_child([&] { return be_called(store); });
  const int survivor = fork_child([&] { return call(store, victim); });
  CHECK(wait_for_exit(victim) == -SIGKILL);
  REQUIRE(store.set("lost", "1").ok());
  CHECK(wait_for_exit(survivor) == kPeerLost);
}
