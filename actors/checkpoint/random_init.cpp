#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <algorithm>

#include "actors/checkpoint/model_io.h"
#include "actors/checkpoint/philox.h"
#include "actors/checkpoint/weight_slices.h"

namespace troupe {
namespace {

/// Rows [first, last) of the local part, as a matrix of the parameter's dimension 0 against all others.
at::Tensor normal_rows(const LocalParameter& p, uint64_t key, float deviation, int64_t first, int64_t last) {
  const int64_t global_width = p.decl.elements() / p.decl.shape[0];
  // Only matrices are cut along dimension 1, so a column of the slice is an element of the row.
  const int64_t row_begin = p.slice.dim == 0 ? p.slice.begin : 0, column_begin = p.slice.dim == 0 ? 0 : p.slice.begin;
  const int64_t width = p.slice.dim == 0 ? global_width : p.slice.end - p.slice.begin;
  at::Tensor rows = at::empty({last - first, width}, at::kFloat);
  float* out = rows.data_ptr<float>();
  at::parallel_for(first, last, 1, [&](int64_t from, int64_t to) {
    for (int64_t r = from; r < to; ++r)
      checkpoint::fill_normal(key, (row_begin + r) * global_width + column_begin, width, deviation,
                              out + (r - first) * width);
  });
  return rows;
}

void fill_matrix(LocalParameter& p, uint64_t seed, float deviation) {
  constexpr int64_t kChunk = 1 << 22;  // elements drawn at a time: bounds the buffer
  const uint64_t key = checkpoint::stream_key(seed, p.decl.name);
  at::Tensor target = checkpoint::local_part(p.weight, p.slice, p.slice.begin, p.slice.end).flatten(1);
  const int64_t rows = target.size(0), step = std::max<int64_t>(1, kChunk / std::max<int64_t>(1, target.size(1)));
  for (int64_t first = 0; first < rows; first += step) {
    const int64_t last = std::min(rows, first + step);
    target.narrow(0, first, last - first).copy_(normal_rows(p, key, deviation, first, last));
  }
}

}  // namespace

void initialise_random(ParameterStore& store, uint64_t seed) {
  const auto deviation = static_cast<float>(store.config().text.initializer_range);
  for (LocalParameter& p : store.parameters()) {
    p.weight.zero_();  // padding stays so, and biases
    if (p.decl.shape.size() > 1)
      fill_matrix(p, seed, deviation);
    else if (p.decl.name.ends_with(".weight"))
      checkpoint::local_part(p.weight, p.slice, p.slice.begin, p.slice.end).fill_(1);
  }
}

}  // namespace troupe
