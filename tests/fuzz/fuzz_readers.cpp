// fuzz_readers TARGET [--seconds N] [--seed S] [--input FILE]: feeds a reader damaged inputs for so long, in a process
// of its own; an input that ends that process, takes more than ten seconds, or drives its memory over a gigabyte is
// written to TARGET.crash, and --input reads it again. Exit code 1 then.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "tests/actors/data/fixture.h"
#include "tests/fuzz/mutation.h"
#include "tests/fuzz/targets.h"

namespace troupe::fuzz {
namespace {

using Clock = std::chrono::steady_clock;

constexpr unsigned kSecondsAnInput = 10;
constexpr long kMostKib = 1L << 20;
constexpr size_t kSlot = size_t{1} << 20;
constexpr uint64_t kBetweenClocks = 64;

/// What the child is working on, where the parent can read it after the child's end.
struct Shared {
  uint64_t inputs, bytes;
  long peak_kib;
  char input[kSlot];
};

struct Arguments {
  const Target* target = nullptr;
  int seconds = 3;
  uint64_t seed = 1;
  std::string input;
};

bool read_arguments(int argc, char** argv, Arguments& out) {
  for (const auto& target : targets())
    if (argc > 1 && std::string(argv[1]) == target.name) out.target = &target;
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string name = argv[i], value = argv[i + 1];
    if (name == "--seconds")
      out.seconds = std::stoi(value);
    else if (name == "--seed")
      out.seed = std::stoull(value);
    else if (name == "--input")
      out.input = value;
    else
      return false;
  }
  return out.target != nullptr && argc % 2 == 0;
}

long peak_kib() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

/// The child: reads inputs until the time is over.
void feed(const Arguments& a, Shared& shared) {
  Mutator mutator(a.target->seeds(), a.seed);
  const auto end = Clock::now() + std::chrono::seconds(a.seconds);
  while (shared.inputs % kBetweenClocks != 0 || Clock::now() < end) {
    const std::string input = mutator.next();
    shared.bytes = input.size();
    std::memcpy(shared.input, input.data(), input.size());
    ::alarm(kSecondsAnInput);
    a.target->read(input);
    ::alarm(0);
    ++shared.inputs;
    if (shared.inputs % kBetweenClocks == 0 && (shared.peak_kib = peak_kib()) > kMostKib) std::abort();
  }
}

int run(const Arguments& a) {
  void* memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 2;
  auto& shared = *static_cast<Shared*>(memory);
  make_scratch();  // here, so that it goes away when the child crashes
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_CORE, &none);
    feed(a, shared);
    ::_exit(0);
  }
  int status = -1;
  if (child < 0 || ::waitpid(child, &status, 0) != child) return 2;
  std::printf("%s: %llu inputs in %d s, peak %ld MiB\n", a.target->name, static_cast<unsigned long long>(shared.inputs),
              a.seconds, shared.peak_kib >> 10);
  if (status == 0) return shared.inputs > 0 ? 0 : 1;
  const std::string file = std::string(a.target->name) + ".crash";
  std::ofstream(file, std::ios::binary).write(shared.input, static_cast<std::streamsize>(shared.bytes));
  if (WIFSIGNALED(status))
    std::printf("ended by signal %d%s; the input is in %s\n", WTERMSIG(status),
                WTERMSIG(status) == SIGALRM ? " (too slow)" : "", file.c_str());
  else
    std::printf("ended with code %d; the input is in %s\n", WEXITSTATUS(status), file.c_str());
  return 1;
}

}  // namespace
}  // namespace troupe::fuzz

int main(int argc, char** argv) {
  using namespace troupe;
  fuzz::Arguments arguments;
  if (!fuzz::read_arguments(argc, argv, arguments)) {
    std::fprintf(stderr, "fuzz_readers TARGET [--seconds N] [--seed S] [--input FILE]; targets:");
    for (const auto& target : fuzz::targets()) std::fprintf(stderr, " %s", target.name);
    std::fprintf(stderr, "\n");
    return 2;
  }
  if (arguments.input.empty()) return fuzz::run(arguments);
  arguments.target->read(fixture::contents(arguments.input));
  return 0;
}
