// parquet_speed FILE ordered|shuffled ROWS: reads so many rows of a Parquet file as the data loader does, one thread;
// prints milliseconds a row.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>

#include "actors/data/record_table.h"
#include "actors/parquet/parquet_rows.h"
#include "actors/parquet/row_pool.h"

namespace troupe {
namespace {

int run(const std::string& path, bool shuffled, int64_t most) {
  const auto file = MappedFile::open(path);
  if (!file.ok()) return std::fprintf(stderr, "%s\n", file.error().message.c_str()), 2;
  const auto opened = open_parquet(*file, path, known_keys({}));
  if (!opened.ok()) return std::fprintf(stderr, "%s\n", opened.error().message.c_str()), 2;
  const int64_t rows = opened->file->rows(), count = std::min(rows, most);
  RowPool pool({opened->file});
  std::mt19937_64 draw(1);
  const auto begin = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < count; ++i) {
    const auto row = pool.row(0, shuffled ? static_cast<int64_t>(draw() % static_cast<uint64_t>(rows)) : i);
    if (!row.ok()) return std::fprintf(stderr, "%s\n", row.error().message.c_str()), 1;
  }
  const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - begin;
  std::printf("%.4f\n", taken.count() / static_cast<double>(count));
  return 0;
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) {
  if (argc != 4) return std::fprintf(stderr, "parquet_speed FILE ordered|shuffled ROWS\n"), 2;
  return troupe::run(argv[1], std::strcmp(argv[2], "shuffled") == 0, std::atoll(argv[3]));
}
