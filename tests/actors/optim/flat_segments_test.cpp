#include "actors/optim/flat_segments.h"

#include <catch2/catch.hpp>

#include "tests/actors/nn/tiny_model.h"

using namespace troupe;

namespace {

ParameterStore text_store(int tp, int rank, int64_t pad_to) {
  ParameterStoreOptions o;
  o.components = {"text"};
  o.tp = tp;
  o.tp_rank = rank;
  o.pad_to = pad_to;
  return ParameterStore(testing::tiny_model(), o);
}

int64_t total(const std::vector<optim::ElementRange>& ranges) {
  int64_t n = 0;
  for (const auto& r : ranges) n += r.end - r.begin;
  return n;
}

}  // namespace

TEST_CASE("over tp and shards every element of the model is owned exactly once") {
  int64_t expected = 0;
  for (const ParameterDecl& p : model_parameters(testing::tiny_model(), false))
    expected += p.component == "text" ? p.elements() : 0;
  for (const int tp : {1, 2, 3, 4, 6, 12}) {
    for (const int shards : {1, 2, 5}) {
      int64_t owned = 0;
      for (int rank = 0; rank < tp; ++rank) {
        ParameterStore store = text_store(tp, rank, shards);
        const int64_t n = store.buffers()[0].weights.numel() / shards;
        for (int s = 0; s < shards; ++s) owned += total(optim::shard_segments(store, 0, s * n, (s + 1) * n).owned);
      }
      CHECK(owned == expected);
    }
  }
}

TEST_CASE("updated elements are all weights, none of the padding, and only matrices decay") {
  ParameterStore store = text_store(3, 2, 64);
  const int64_t n = store.buffers()[0].weights.numel();
  int64_t elements = 0, matrices = 0, decayed = 0;
  for (const LocalParameter& p : store.parameters()) {
    elements += p.elements;
    if (p.decl.shape.size() > 1) matrices += p.elements;
  }
  const auto segments = optim::shard_segments(store, 0, 0, n);
  for (const auto& r : segments.update) decayed += r.decay ? r.end - r.begin : 0;
  CHECK(total(segments.update) == elements);
  CHECK(decayed == matrices);
  CHECK(elements < n);
}

TEST_CASE("a shard's parameter ranges point at the same elements from both sides") {
  ParameterStore store = text_store(2, 0, 3);
  FlatBuffer& buffer = store.buffers()[0];
  const int64_t n = buffer.weights.numel() / 3;
  const at::Tensor flat = buffer.weights;
  for (int64_t i = 0; i < flat.numel(); ++i) flat.data_ptr<float>()[i] = static_cast<float>(i);
  for (const auto& range : optim::shard_segments(store, 0, n, 2 * n).parameters) {
    const at::Tensor local = store.parameters()[static_cast<size_t>(range.parameter)].weight.view({-1});
    CHECK(local[range.begin].item<float>() == static_cast<float>(n + range.shard_begin));
    CHECK(local[range.end - 1].item<float>() ==
          static_cast<float>(n + range.shard_begin + range.end - range.begin - 1));
  }
}
