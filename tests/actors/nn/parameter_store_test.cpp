#include "actors/nn/parameter_store.h"

#include <ATen/ops/equal.h>

#include <catch2/catch.hpp>

#include "tests/actors/nn/tiny_model.h"

using namespace troupe;

namespace {

ParameterStoreOptions text_on(int tp, int rank) {
  ParameterStoreOptions o;
  o.components = {"text"};
  o.tp = tp;
  o.tp_rank = rank;
  return o;
}

const std::string kLayer = "model.layers.0.self_attn.";

}  // namespace

TEST_CASE("parameters of the group's components lie one behind the other in buffers of their component") {
  ParameterStoreOptions options;
  options.components = {"vision", "merger"};
  options.pad_to = 7;
  ParameterStore store(testing::tiny_model(), options);
  REQUIRE(store.buffers().size() == 2);
  CHECK_FALSE(store.contains("model.norm.weight"));
  for (const FlatBuffer& buffer : store.buffers()) {
    CHECK(buffer.weights.numel() % 7 == 0);
    int64_t next = 0;
    for (const int index : buffer.parameters) {
      const LocalParameter& p = store.parameters()[static_cast<size_t>(index)];
      CHECK(p.decl.component == buffer.component);
      CHECK(p.offset == next);
      CHECK(p.weight.sizes().vec() == p.decl.shape);
      next += p.elements;
    }
    CHECK(buffer.weights.numel() - next < 7);
  }
}

TEST_CASE("a view written by name is read in the flat buffer") {
  ParameterStore store(testing::tiny_model(), text_on(2, 1));
  LocalParameter& p = store.at(kLayer + "k_proj.weight");
  p.weight.fill_(3);
  p.gradient.fill_(4);
  const FlatBuffer& buffer = store.buffers()[static_cast<size_t>(p.buffer)];
  CHECK(buffer.weights.sum().item<float>() == 3.0f * static_cast<float>(p.elements));
  CHECK(buffer.gradients.narrow(0, p.offset, p.elements).eq(4).all().item<bool>());
  store.zero_gradients();
  CHECK_FALSE(buffer.gradients.any().item<bool>());
}

TEST_CASE("query, key and value are one matrix of this rank's heads") {
  for (const int rank : {0, 1}) {
    ParameterStore store(testing::tiny_model(), text_on(2, rank));
    const std::vector<std::string> names = {kLayer + "q_proj.weight", kLayer + "k_proj.weight",
                                            kLayer + "v_proj.weight"};
    const at::Tensor fused = store.fused_weight(names);
    // 6 of 12 query heads, and 2 of 3 KV heads: the middle one is held by both ranks.
    CHECK(fused.sizes().vec() == std::vector<int64_t>{(6 + 2 + 2) * 2, 24});
    store.at(names[1]).weight.fill_(5);
    CHECK(fused.narrow(0, 12, 4).eq(5).all().item<bool>());
    CHECK(fused.eq(5).sum().item<int64_t>() == 4 * 24);
    const at::Tensor bias =
        store.fused_gradient({kLayer + "q_proj.bias", kLayer + "k_proj.bias", kLayer + "v_proj.bias"});
    CHECK(bias.sizes().vec() == std::vector<int64_t>{20});
    CHECK(store.fused_weight({"model.layers.1.mlp.gate_proj.weight", "model.layers.1.mlp.up_proj.weight"}).size(0) ==
          (rank == 0 ? 32 : 30));
  }
}

TEST_CASE("vocabulary rows are padded to the same number on every rank") {
  for (const int rank : {0, 1, 2}) {
    ParameterStore store(testing::tiny_model(), text_on(3, rank));
    const LocalParameter& p = store.at("model.embed_tokens.weight");
    CHECK(p.weight.size(0) == 14);
    CHECK(p.slice.padding == (rank == 2 ? 1 : 0));
  }
}

TEST_CASE("frozen parameters have weights in a buffer of their own and no gradient") {
  ParameterStoreOptions options;
  options.components = {"vision", "merger"};
  options.frozen = {"vision"};
  ParameterStore store(testing::tiny_model(), options);
  for (const FlatBuffer& buffer : store.buffers()) {
    CHECK(buffer.trained == (buffer.component == "merger"));
    CHECK(buffer.gradients.defined() == buffer.trained);
  }
  CHECK_FALSE(store.at("visual.blocks.0.norm1.weight").gradient.defined());
  CHECK_FALSE(
      store.fused_gradient({"visual.blocks.0.mlp.gate_proj.weight", "visual.blocks.0.mlp.up_proj.weight"}).defined());
  CHECK(store.at("visual.merger.ln_q.weight").gradient.defined());
}

TEST_CASE("gradients are fp32 beside bf16 weights unless all is to be bf16") {
  ParameterStoreOptions options = text_on(1, 0);
  options.compute_dtype = at::kBFloat16;
  ParameterStore mixed(testing::tiny_model(), options);
  CHECK(mixed.at("model.norm.weight").weight.scalar_type() == at::kBFloat16);
  CHECK(mixed.at("model.norm.weight").gradient.scalar_type() == at::kFloat);
  options.gradients_in_compute_dtype = true;
  ParameterStore pure(testing::tiny_model(), options);
  CHECK(pure.at("model.norm.weight").gradient.scalar_type() == at::kBFloat16);
}

TEST_CASE("a tied head is not a parameter") {
  CHECK(ParameterStore(testing::tiny_model(false), text_on(1, 0)).contains("lm_head.weight"));
  CHECK_FALSE(ParameterStore(testing::tiny_model(true), text_on(1, 0)).contains("lm_head.weight"));
}
