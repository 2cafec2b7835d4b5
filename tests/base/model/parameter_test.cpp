#include "base/model/parameter.h"

#include <catch2/catch.hpp>
#include <map>
#include <set>

using namespace troupe;

namespace {

ModelConfig shape(const std::string& name) {
  const auto c = read_model_config(std::string(TROUPE_SOURCE_DIR) + "/configs/models/" + name);
  if (!c.ok()) FAIL(c.error().message);
  return *c;
}

ModelConfig small(int64_t heads, int64_t kv_heads, int64_t vocabulary) {
  ModelConfig c = shape("qwen2.5-vl-3b");
  c.text.layers = 1;
  c.text.heads = heads;
  c.text.kv_heads = kv_heads;
  c.text.head_dim = 4;
  c.text.hidden = heads * 4;
  c.text.intermediate = 13;
  c.text.vocabulary = vocabulary;
  c.vision.depth = 1;
  return c;
}

}  // namespace

TEST_CASE("the published sizes have the parameters that the original implementation counts") {
  struct Expected {
    const char* name;
    int64_t vision, merger, text;
    size_t tensors;
  };
  // Counted with transformers on its meta device.
  const Expected table[] = {{"qwen2.5-vl-3b", 631975680, 36708608, 3085938688, 824},
                            {"qwen2.5-vl-7b", 631975680, 44574464, 7615616512, 729},
                            {"qwen2.5-vl-32b", 636401664, 52440320, 32763876352, 1161},
                            {"qwen2.5-vl-72b", 636401664, 68172032, 72706203648, 1353}};
  for (const Expected& e : table) {
    INFO(e.name);
    std::map<std::string, int64_t> count;
    const auto parameters = model_parameters(shape(e.name), false);
    for (const ParameterDecl& p : parameters) count[p.component] += p.elements();
    CHECK(parameters.size() == e.tensors);
    CHECK(count["vision"] == e.vision);
    CHECK(count["merger"] == e.merger);
    CHECK(count["text"] == e.text);
  }
}

TEST_CASE("a tied head is the embedding and not listed, an untied one is") {
  for (const auto& [name, listed] : {std::pair("qwen2.5-vl-3b", false), std::pair("qwen2.5-vl-7b", true)}) {
    const auto parameters = model_parameters(shape(name), false);
    CHECK((parameters.back().name == "lm_head.weight") == listed);
  }
}

TEST_CASE("only parameters of more than one dimension decay, and names are unique") {
  std::set<std::string> names;
  for (const ParameterDecl& p : model_parameters(small(4, 2, 10), false)) {
    CHECK(p.decay == (p.shape.size() > 1));
    CHECK(names.insert(p.name).second);
  }
}

TEST_CASE("tensor-sequence parallelism makes the norms of the text model partial, and nothing else") {
  for (bool sequence : {false, true})
    for (const ParameterDecl& p : model_parameters(small(4, 2, 10), sequence)) {
      const bool text_norm = p.component == "text" && p.tp_layout == TpLayout::kReplicated;
      INFO(p.name);
      if (p.tp_layout != TpLayout::kReplicated)
        CHECK(p.tp_gradient == TpGradient::kOwn);
      else
        CHECK(p.tp_gradient == (text_norm && sequence ? TpGradient::kSum : TpGradient::kSame));
    }
}

TEST_CASE("queries, keys and values lie side by side, gate and up too") {
  std::map<std::string, size_t> at;
  const auto parameters = model_parameters(small(4, 2, 10), false);
  for (size_t i = 0; i < parameters.size(); ++i) at[parameters[i].name] = i;
  const std::string layer = "model.layers.0.";
  for (const char* kind : {"weight", "bias"}) {
    const std::string suffix = std::string("_proj.") + kind;
    CHECK(at[layer + "self_attn.k" + suffix] == at[layer + "self_attn.q" + suffix] + 1);
    CHECK(at[layer + "self_attn.v" + suffix] == at[layer + "self_attn.q" + suffix] + 2);
    CHECK(at["visual.blocks.0.mlp.up" + suffix] == at["visual.blocks.0.mlp.gate" + suffix] + 1);
  }
  CHECK(at[layer + "mlp.up_proj.weight"] == at[layer + "mlp.gate_proj.weight"] + 1);
}

TEST_CASE("every element of every parameter has exactly one owner over tp") {
  for (const auto& [heads, kv_heads] : {std::pair(4, 4), std::pair(4, 2), std::pair(4, 1), std::pair(6, 2),
                                        std::pair(12, 3), std::pair(12, 4), std::pair(28, 4)})
    for (int tp = 1; tp <= heads; ++tp) {
      if (heads % tp != 0) continue;
      const ModelConfig config = small(heads, kv_heads, 11);
      for (const ParameterDecl& p : model_parameters(config, false)) {
        INFO(p.name << " heads " << heads << " kv " << kv_heads << " tp " << tp);
        int64_t next = 0;
        int dim = 0;
        for (int r = 0; r < tp; ++r) {
          const LocalSlice s = local_slice(p, config, tp, r);
          dim = s.dim;
          if (s.own_begin == s.own_end) continue;
          CHECK(s.begin <= s.own_begin);
          CHECK(s.own_end <= s.end);
          CHECK(s.own_begin == next);
          next = s.own_end;
        }
        CHECK(next == p.shape[static_cast<size_t>(dim)]);
      }
    }
}

TEST_CASE("a rank holds the key-value heads that its query heads use, whole") {
  for (const auto& [heads, kv_heads] : {std::pair(4, 4), std::pair(4, 2), std::pair(4, 1), std::pair(6, 2),
                                        std::pair(12, 3), std::pair(28, 4), std::pair(64, 8)})
    for (int tp = 1; tp <= heads; ++tp) {
      if (heads % tp != 0) continue;
      const ModelConfig config = small(heads, kv_heads, 11);
      for (int r = 0; r < tp; ++r) {
        std::set<int64_t> used;
        for (int64_t q = int64_t{heads} / tp * r; q < int64_t{heads} / tp * (r + 1); ++q)
          used.insert(q / (heads / kv_heads));
        const HeadRange range = kv_heads_of_rank(config.text, tp, r);
        INFO("heads " << heads << " kv " << kv_heads << " tp " << tp << " rank " << r);
        CHECK(range.first == *used.begin());
        CHECK(range.last == *used.rbegin() + 1);
      }
    }
}

TEST_CASE("a vocabulary that tp does not divide is padded at its end, equally long on every rank") {
  const ModelConfig config = small(6, 2, 11);
  for (const ParameterDecl& p : model_parameters(config, false)) {
    if (p.tp_layout != TpLayout::kVocabulary) continue;
    for (int r = 0; r < 6; ++r) {
      const LocalSlice s = local_slice(p, config, 6, r);
      CHECK(s.end - s.begin + s.padding == 2);
      CHECK(s.padding == (r == 5 ? 1 : 0));
    }
  }
}
