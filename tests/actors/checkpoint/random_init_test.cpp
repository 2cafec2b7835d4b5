#include <ATen/TensorOperators.h>

#include <catch2/catch.hpp>

#include "actors/checkpoint/model_io.h"
#include "tests/actors/checkpoint/tiny_folder.h"
#include "tests/actors/nn/tiny_model.h"

using namespace troupe;
using namespace troupe::testing;

namespace {

ParameterStore random_text(int tp, int rank, uint64_t seed) {
  ParameterStore store(tiny_model(), store_options({"text"}, tp, rank));
  store.buffers()[0].weights.fill_(77);  // what was there before must not shine through
  initialise_random(store, seed);
  return store;
}

}  // namespace

TEST_CASE("random weights are the same for every tensor parallel size, padding zero") {
  ParameterStore whole = random_text(1, 0, 11);
  for (const int tp : {2, 3, 4, 12}) {
    for (int rank = 0; rank < tp; ++rank) {
      ParameterStore store = random_text(tp, rank, 11);
      for (const LocalParameter& p : store.parameters()) {
        const int64_t held = p.slice.end - p.slice.begin;
        INFO(p.decl.name << " on rank " << rank << " of " << tp);
        CHECK(p.weight.narrow(p.slice.dim, 0, held)
                  .equal(whole.at(p.decl.name).weight.narrow(p.slice.dim, p.slice.begin, held)));
        CHECK_FALSE(p.weight.narrow(p.slice.dim, held, p.slice.padding).any().item<bool>());
      }
    }
  }
}

TEST_CASE("matrices are normal, norms one, biases zero, and the seed decides") {
  ParameterStore store = random_text(1, 0, 11), other = random_text(1, 0, 12);
  const std::string embedding = "model.embed_tokens.weight";
  CHECK(store.at(embedding).weight.std().item<double>() == Approx(0.02).epsilon(0.1));
  CHECK_FALSE(store.at(embedding).weight.equal(other.at(embedding).weight));
  CHECK_FALSE(store.at("model.layers.0.mlp.up_proj.weight")
                  .weight.equal(store.at("model.layers.0.mlp.gate_proj.weight").weight));
  CHECK(store.at("model.norm.weight").weight.eq(1).all().item<bool>());
  CHECK_FALSE(store.at("model.layers.1.self_attn.k_proj.bias").weight.any().item<bool>());
}
