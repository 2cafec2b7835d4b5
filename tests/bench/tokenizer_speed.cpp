#include <cstdint>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "actors/data/tokenizer.h"

namespace {
void write(const char* path, const std::vector<int64_t>& numbers) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(numbers.data()),
             static_cast<std::streamsize>(numbers.size() * sizeof(int64_t)));
}
}  // namespace

/// tokenizer_speed FOLDER TEXTS IDS COUNTS: encodes the texts of a file, each ended by a zero byte, on one thread;
/// writes their ids behind one another and how many each text has, as 64-bit numbers, and prints the seconds of
/// processor time that encoding took. For tests/bench/tokenizer.py.
int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const auto tokenizer = troupe::Tokenizer::load(argv[1]);
  if (!tokenizer.ok()) {
    std::fprintf(stderr, "%s\n", tokenizer.error().to_string().c_str());
    return 2;
  }
  std::ifstream in(argv[2], std::ios::binary);
  const std::string texts{std::istreambuf_iterator<char>(in), {}};
  std::vector<int64_t> ids, counts;
  const std::clock_t begin = std::clock();
  for (size_t at = 0; at < texts.size();) {
    const size_t before = ids.size();
    const size_t end = texts.find('\0', at);
    const auto status = (*tokenizer)->encode(std::string_view(texts).substr(at, end - at), ids);
    if (!status.ok()) {
      std::fprintf(stderr, "%s\n", status.error().to_string().c_str());
      return 1;
    }
    counts.push_back(static_cast<int64_t>(ids.size() - before));
    at = end + 1;
  }
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  write(argv[3], ids);
  write(argv[4], counts);
  std::printf("%.6f\n", seconds);
  return 0;
}
