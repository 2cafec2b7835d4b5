#include "base/shortened_file.h"

#include <errno.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstring>

#include "base/printable_text.h"

namespace troupe {
namespace {

constexpr char kSaid[] =
    " became shorter while it was read, or its disk cannot be read; "
    "valid: a file that stays as it is for as long as it is in use";
constexpr size_t kMostPathBytes = 255;
constexpr uintptr_t kFree = 0, kTaken = 1;

struct Mapping {
  std::atomic<uintptr_t> begin{kFree};  // written last, so that who sees an address sees the rest
  std::atomic<uintptr_t> end{0};
  char path[kMostPathBytes + 1];
};

// Signals belong to the process, and a handler is handed nothing: its table has to be reachable without an owner.
std::array<Mapping, kMostNamedMappings> mappings;
std::atomic<unsigned> next_slot{0};
struct sigaction handler_before {};
std::atomic<bool> told{false};

class Line {
 public:
  void add(const char* text) {
    while (*text != 0 && length_ < sizeof(bytes_)) bytes_[length_++] = *text++;
  }
  void write() const { static_cast<void>(!::write(STDERR_FILENO, bytes_, length_)); }

 private:
  char bytes_[kMostPathBytes + sizeof(kSaid) + 64];
  size_t length_ = 0;
};

const Mapping* mapping_of(uintptr_t address) {
  for (const Mapping& mapping : mappings) {
    const uintptr_t begin = mapping.begin.load(std::memory_order_acquire);
    if (begin > kTaken && address >= begin && address < mapping.end.load(std::memory_order_relaxed)) return &mapping;
  }
  return nullptr;
}

/// Async-signal-safe, as all that it calls.
void on_bus_error(int signal, siginfo_t* info, void*) {
  const bool sent = info->si_code <= 0;  // by kill and its like: there is no address
  const Mapping* mapping = sent ? nullptr : mapping_of(reinterpret_cast<uintptr_t>(info->si_addr));
  if (!mapping) {
    // A fault comes again behind this return, what was sent does not.
    ::sigaction(signal, &handler_before, nullptr);
    if (sent) ::raise(signal);
    return;
  }
  while (told.exchange(true)) ::pause();  // another thread is on its way out with the line
  Line line;
  line.add(::program_invocation_short_name);
  line.add(": ");
  line.add(mapping->path);
  line.add(kSaid);
  line.add("\n");
  line.write();
  // The cause is known: a crash reporter's backtrace would hide the line and keep the process from ending for seconds,
  // in which its peers take it for silent. What the file has by now does not matter: half of it was read.
  struct sigaction end {};
  end.sa_handler = SIG_DFL;
  ::sigaction(signal, &end, nullptr);
  ::raise(signal);
}

bool install() {
  struct sigaction ours {};
  ours.sa_sigaction = on_bus_error;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
  // Known before ours can run.
  return ::sigaction(SIGBUS, nullptr, &handler_before) == 0 && ::sigaction(SIGBUS, &ours, nullptr) == 0;
}

/// The end of a long path, which says more than its begin.
std::string shown(const std::string& path) {
  std::string text = printable(path, /*keep_lines=*/false);
  if (text.size() <= kMostPathBytes) return text;
  text.erase(0, text.size() - (kMostPathBytes - 3));
  size_t whole = 0;  // not in the middle of a character
  while (whole < text.size() && (static_cast<unsigned char>(text[whole]) & 0xc0) == 0x80) ++whole;
  return "..." + text.substr(whole);
}

}  // namespace

int name_mapping(const void* data, size_t bytes, const std::string& path) {
  static const bool installed = install();
  if (!installed || bytes == 0) return -1;
  const std::string text = shown(path);
  const unsigned first = next_slot.fetch_add(1, std::memory_order_relaxed);
  for (unsigned i = 0; i < mappings.size(); ++i) {
    const unsigned slot = (first + i) % mappings.size();
    Mapping& mapping = mappings[slot];
    uintptr_t expected = kFree;
    if (mapping.begin.load(std::memory_order_relaxed) != kFree ||
        !mapping.begin.compare_exchange_strong(expected, kTaken, std::memory_order_acquire))
      continue;
    std::memcpy(mapping.path, text.c_str(), text.size() + 1);
    const auto begin = reinterpret_cast<uintptr_t>(data);
    mapping.end.store(begin + bytes, std::memory_order_relaxed);
    mapping.begin.store(begin, std::memory_order_release);
    return static_cast<int>(slot);
  }
  return -1;
}

void forget_mapping(int slot) {
  if (slot >= 0) mappings[static_cast<size_t>(slot)].begin.store(kFree, std::memory_order_release);
}

std::string shortened_file_said_in(std::string_view log) {
  const size_t said = log.rfind(kSaid);
  if (said == std::string_view::npos) return "";
  const size_t begin = log.rfind('\n', said) + 1;  // npos + 1: the first line
  std::string_view line = log.substr(begin, said + std::strlen(kSaid) - begin);
  if (const size_t name = line.find(": "); name != std::string_view::npos) line.remove_prefix(name + 2);
  return std::string(line);
}

}  // namespace troupe
