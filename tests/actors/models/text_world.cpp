#include "tests/actors/models/text_world.h"

#include <ATen/Parallel.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <thread>

#include "base/rendezvous/memory_kv_store.h"
#include "base/safetensors/safetensors_file.h"

namespace troupe::testing {
namespace {

std::vector<int64_t> list(const at::Tensor& tensor) {
  return {tensor.const_data_ptr<int64_t>(), tensor.const_data_ptr<int64_t>() + tensor.numel()};
}

at::Tensor copy_of(const SafetensorsFile& file, const TensorInfo& info) {
  const bool integer = info.dtype == FileDType::kI64;
  auto* bytes = const_cast<std::byte*>(file.data(info));
  return at::from_blob(bytes, info.shape, at::TensorOptions().dtype(integer ? at::kLong : at::kFloat)).clone();
}

ModelConfig config_of(const std::map<std::string, at::Tensor>& tensors) {
  ModelConfig config;
  TextConfig& text = config.text;
  const at::Tensor& embedding = tensors.at("w.model.embed_tokens.weight");
  text.vocabulary = embedding.size(0);
  text.hidden = embedding.size(1);
  text.intermediate = tensors.at("w.model.layers.0.mlp.gate_proj.weight").size(0);
  text.heads = 12;
  text.head_dim = text.hidden / text.heads;
  text.kv_heads = tensors.at("w.model.layers.0.self_attn.k_proj.weight").size(0) / text.head_dim;
  text.layers = 3;
  text.rope_theta = 1e4;
  text.mrope_section = {2, 3, 3};
  text.tied = !tensors.contains("w.lm_head.weight");
  return config;
}

void fill_weights(ParameterStore& store, const TextCase& text_case) {
  for (LocalParameter& p : store.parameters()) {
    const LocalSlice& s = p.slice;
    const at::Tensor part = text_case.at("w." + p.decl.name).narrow(s.dim, s.begin, s.end - s.begin);
    p.weight.narrow(s.dim, 0, s.end - s.begin).copy_(part);
    // Padding rows must not matter: fill them with what would be noticed.
    if (s.padding > 0) p.weight.narrow(s.dim, s.end - s.begin, s.padding).fill_(3.0);
  }
}

at::Tensor local_vision_rows(const TextCase& text_case, const TextRunOptions& options, int rank) {
  if (!options.sequence || options.tp == 1) return text_case.vision_rows;
  const int64_t tokens = text_case.batch.ids.size(0);
  const at::Tensor& positions = text_case.batch.vision_positions;
  const at::Tensor inside = positions.ge(token_cut(tokens, options.tp, rank))
                                .logical_and_(positions.lt(token_cut(tokens, options.tp, rank + 1)));
  return text_case.vision_rows.index({inside});
}

void run_rank(const TextCase& text_case, const TextRunOptions& options, ParameterStore& store, World& world,
              TextRankRun& run) {
  const auto decoder = create_text_decoder(text_case.config, store, world);
  const at::Tensor vision = local_vision_rows(text_case, options, world.rank()).to(options.dtype);
  for (int i = 0; i < options.backward_runs; ++i) {
    std::unique_ptr<TextContext> context;
    run.result = decoder->forward(text_case.batch, vision, text_case.scale, options.keep_context, context);
    if (options.keep_context) run.vision_gradient = decoder->backward(std::move(context), options.want_vision_gradient);
  }
  run.next_tokens = list(decoder->next_tokens(text_case.batch, vision));
  for (const LocalParameter& p : store.parameters())
    if (p.gradient.defined()) run.gradients[p.decl.name] = p.gradient;
}

/// Adds up or compares the ranks' gradients as the declarations say.
void join_gradients(TextRun& run, std::vector<std::unique_ptr<ParameterStore>>& stores) {
  for (size_t rank = 0; rank < stores.size(); ++rank) {
    for (const LocalParameter& p : stores[rank]->parameters()) {
      if (!p.gradient.defined()) continue;
      at::Tensor& whole = run.gradients[p.decl.name];
      if (p.decl.tp_gradient == TpGradient::kSame && p.decl.tp_layout == TpLayout::kReplicated && rank > 0) {
        run.replicas_equal = run.replicas_equal && at::equal(whole, p.gradient);
        continue;
      }
      if (!whole.defined()) whole = at::zeros(p.decl.shape, p.gradient.options());
      const int64_t n = p.slice.end - p.slice.begin;
      whole.narrow(p.slice.dim, p.slice.begin, n).add_(p.gradient.narrow(p.slice.dim, 0, n));
      if (p.slice.padding > 0)
        REQUIRE(p.gradient.narrow(p.slice.dim, n, p.slice.padding).abs().max().item<double>() == 0);
    }
  }
}

}  // namespace

TextCase load_text_case(const std::string& name) {
  const std::string path =
      std::string(TROUPE_BINARY_DIR) + "/tests/actors/models/text_reference/" + name + ".safetensors";
  auto file = SafetensorsFile::open(path);
  if (!file.ok()) FAIL(file.error().to_string());
  TextCase c;
  for (const TensorInfo& info : (*file)->tensors()) c.tensors[info.name] = copy_of(**file, info);
  c.config = config_of(c.tensors);
  c.batch = {c.at("ids"),     c.at("positions"),          list(c.at("starts")),    c.at("loss_rows"),
             c.at("targets"), list(c.at("loss_samples")), c.at("vision_positions")};
  c.vision_rows = c.at("vision_rows");
  return c;
}

void run_on_ranks(int tp, const std::function<void(World&)>& work) {
  at::set_num_threads(1);
  MemoryKvStore meeting;
  std::vector<std::string> errors(static_cast<size_t>(tp));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < tp; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        WorldOptions options;
        options.name = "text";
        options.mesh.set(Axis::kTp, tp);
        options.rank = rank;
        options.axes = {{Axis::kTp}};
        const auto world = tp == 1 ? create_solo_world() : create_gloo_world(options, meeting).value();
        work(*world);
      } catch (const std::exception& e) {
        errors[static_cast<size_t>(rank)] = e.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& error : errors)
    if (!error.empty()) FAIL(error);
}

TextRun run_text_case(const TextCase& text_case, const TextRunOptions& options) {
  TextRun run;
  run.ranks.resize(static_cast<size_t>(options.tp));
  std::vector<std::unique_ptr<ParameterStore>> stores(run.ranks.size());
  run_on_ranks(options.tp, [&](World& world) {
    const auto rank = static_cast<size_t>(world.rank());
    ParameterStoreOptions store_options;
    store_options.components = {"text"};
    if (options.frozen) store_options.frozen = {"text"};
    store_options.tp = options.tp;
    store_options.tp_rank = world.rank();
    store_options.tp_sequence = options.sequence;
    store_options.compute_dtype = options.dtype;
    stores[rank] = std::make_unique<ParameterStore>(text_case.config, store_options);
    fill_weights(*stores[rank], text_case);
    run_rank(text_case, options, *stores[rank], world, run.ranks[rank]);
  });
  join_gradients(run, stores);
  return run;
}

at::Tensor whole_vision_gradient(const TextRun& run, bool sequence) {
  if (!sequence || run.ranks.size() == 1) return run.ranks[0].vision_gradient;
  std::vector<at::Tensor> parts;
  for (const TextRankRun& rank : run.ranks) parts.push_back(rank.vision_gradient);
  return at::cat(parts);
}

double relative_difference(const at::Tensor& actual, const at::Tensor& expected) {
  if (actual.sizes() != expected.sizes()) return 1e30;
  if (expected.numel() == 0) return 0;
  const double largest = expected.abs().max().item<double>();
  return actual.to(at::kDouble).sub(expected.to(at::kDouble)).abs().max().item<double>() / std::max(largest, 1e-20);
}

}  // namespace troupe::testing
