#include <sys/resource.h>

#include <chrono>
#include <cstdio>

#include "base/data/sample_index.h"

// Opens an index and looks at every sample: {"seconds": of opening, "samples", "tokens", "memory_mb": the most that was
// resident}.

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const auto begin = std::chrono::steady_clock::now();
  const auto index = troupe::SampleIndex::read(argv[1]);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (!index.ok()) {
    std::fprintf(stderr, "%s\n", index.error().to_string().c_str());
    return 1;
  }
  long long tokens = 0;
  for (const troupe::SampleView sample : index->samples) tokens += sample.tokens;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf("{\"seconds\": %.6f, \"samples\": %zu, \"tokens\": %lld, \"memory_mb\": %.1f}\n", seconds,
              index->samples.size(), tokens, static_cast<double>(usage.ru_maxrss) * 1024 / 1e6);
  return 0;
}
