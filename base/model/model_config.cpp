#include "base/model/model_config.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/json_text.h"
#include "base/regular_file.h"

namespace troupe {
namespace {

// Sizes beyond these are slips; each layer is declared tensor by tensor before anything else looks at them.
constexpr int64_t kMaxSize = 1 << 20, kMaxLayers = 4096, kMaxVocabulary = 1 << 24;

using Json = nlohmann::json;

/// Reads typed keys from a list of objects, the first that has a key wins; remembers the first thing that was wrong.
class Reader {
 public:
  Reader(std::string file, std::string section, std::vector<const Json*> objects)
      : file_(std::move(file)), section_(std::move(section)), objects_(std::move(objects)) {}

  const Json* find(const std::string& key) const {
    for (const Json* object : objects_) {
      if (!object->is_object()) continue;
      auto it = object->find(key);
      if (it != object->end() && !it->is_null()) return &*it;
    }
    return nullptr;
  }
  /// The key as a message names it: below the section, unless another object has it.
  std::string name(const std::string& key) const {
    const Json* found = find(key);
    const bool elsewhere = found && !(objects_[0]->contains(key) && &objects_[0]->at(key) == found);
    return elsewhere ? key : section_ + key;
  }
  /// An integer from 1 to `maximum`; `fallback` < 0: the key is required.
  int64_t positive(const std::string& key, int64_t fallback = -1, int64_t maximum = kMaxSize) {
    const std::string valid = "an integer from 1 to " + std::to_string(maximum);
    const Json* j = find(key);
    if (!j) {
      if (fallback < 0) fail("key '" + name(key) + "' is missing; expected " + valid);
      return std::max<int64_t>(fallback, 0);
    }
    if (!j->is_number_integer() || *j < 1 || *j > maximum) return wrong(key, *j, valid), 0;
    return j->get<int64_t>();
  }
  double number(const std::string& key, double fallback) {
    const Json* j = find(key);
    if (!j) return fallback;
    if (!j->is_number() || j->get<double>() <= 0) return wrong(key, *j, "a positive number"), fallback;
    return j->get<double>();
  }
  /// The key must be absent or equal to one of `valid`.
  void expect(const std::string& key, const std::vector<Json>& valid) {
    const Json* j = find(key);
    if (!j || std::find(valid.begin(), valid.end(), *j) != valid.end()) return;
    std::string names;
    for (const Json& v : valid) names += (names.empty() ? "" : ", ") + v.dump();
    fail("key '" + name(key) + "': value " + j->dump() + " is not supported; valid: " + names);
  }
  void wrong(const std::string& key, const Json& value, const std::string& valid) {
    fail("key '" + name(key) + "': value " + value.dump() + " is not valid; valid: " + valid);
  }
  void fail(const std::string& message) {
    if (!error_) error_ = invalid_argument(file_ + ": " + message);
  }
  const std::optional<Error>& error() const { return error_; }

 private:
  std::string file_, section_;
  std::vector<const Json*> objects_;
  std::optional<Error> error_;
};

std::vector<int64_t> integer_list(Reader& r, const std::string& key, std::vector<int64_t> fallback) {
  const Json* j = r.find(key);
  if (!j) return fallback;
  std::vector<int64_t> out;
  const bool good = j->is_array() && std::all_of(j->begin(), j->end(), [](const Json& e) {
                      return e.is_number_integer() && e.get<int64_t>() >= 0;
                    });
  if (!good) return r.wrong(key, *j, "a list of integers from 0"), fallback;
  for (const Json& e : *j) out.push_back(e.get<int64_t>());
  return out;
}

/// Those of the published model, which transformers also writes for an encoder of another depth.
const std::vector<int64_t> kPublishedBlocks{7, 15, 23, 31};

/// A block that does not exist would leave the encoder without that full-attention layer, in silence.
void check_blocks(Reader& r, const VisionConfig& v) {
  if (v.full_attention_blocks == kPublishedBlocks) return;
  for (const int64_t block : v.full_attention_blocks)
    if (block >= v.depth)
      return r.wrong("fullatt_block_indexes", block, "blocks from 0 to depth - 1 = " + std::to_string(v.depth - 1));
}

void read_vision(Reader& r, VisionConfig& v, int64_t& tokens_per_second) {
  v.depth = r.positive("depth", -1, kMaxLayers);
  v.hidden = r.positive("hidden_size");
  v.intermediate = r.positive("intermediate_size", 3420);
  v.heads = r.positive("num_heads", 16);
  v.in_channels = r.positive(r.find("in_channels") ? "in_channels" : "in_chans", 3);
  v.patch_size = r.positive("patch_size", 14);
  v.temporal_patch_size = r.positive("temporal_patch_size", 2);
  v.merge_size = r.positive("spatial_merge_size", 2);
  v.window_size = r.positive("window_size", 112);
  v.out_hidden = r.positive("out_hidden_size");
  v.full_attention_blocks = integer_list(r, "fullatt_block_indexes", kPublishedBlocks);
  check_blocks(r, v);
  tokens_per_second = r.positive("tokens_per_second", 4);
  r.expect("hidden_act", {"silu"});
  if (r.error()) return;
  if (v.hidden % v.heads != 0 || v.hidden / v.heads % 4 != 0)
    r.fail("vision hidden_size " + std::to_string(v.hidden) + " must be num_heads " + std::to_string(v.heads) +
           " times a head size that is a multiple of 4");
  if (v.window_size % (v.patch_size * v.merge_size) != 0)
    r.fail("vision window_size " + std::to_string(v.window_size) +
           " must be a multiple of patch_size x spatial_merge_size = " + std::to_string(v.patch_size * v.merge_size));
}

void read_rope(Reader& r, const std::string& file, TextConfig& t) {
  std::string key = "rope_parameters";  // as transformers 5 writes it
  const Json* rope = r.find(key);
  if (!rope) rope = r.find(key = "rope_scaling");
  t.rope_theta = r.number("rope_theta", 1e6);
  if (!rope) {
    r.fail("key 'rope_scaling' (or 'rope_parameters') is missing; it must hold mrope_section");
    return;
  }
  Reader inner(file, r.name(key) + ".", {rope});
  inner.expect("type", {"mrope", "default"});
  inner.expect("rope_type", {"mrope", "default"});
  t.rope_theta = inner.number("rope_theta", t.rope_theta);
  const std::vector<int64_t> section = integer_list(inner, "mrope_section", {});
  if (inner.error()) {
    r.fail(inner.error()->message.substr(file.size() + 2));
    return;
  }
  const int64_t half = t.head_dim / 2;
  int64_t sum = 0;
  for (int64_t s : section) sum += s;
  if (section.size() != 3 || sum != half) {
    r.fail("key '" + r.name(key) + ".mrope_section': value " + Json(section).dump() +
           " is not valid; valid: three integers whose sum is head_dim / 2 = " + std::to_string(half));
    return;
  }
  std::copy(section.begin(), section.end(), t.mrope_section.begin());
}

void read_text(Reader& r, const std::string& file, TextConfig& t) {
  t.layers = r.positive("num_hidden_layers", -1, kMaxLayers);
  t.hidden = r.positive("hidden_size");
  t.intermediate = r.positive("intermediate_size");
  t.heads = r.positive("num_attention_heads");
  t.kv_heads = r.positive("num_key_value_heads", t.heads);
  t.vocabulary = r.positive("vocab_size", -1, kMaxVocabulary);
  t.rms_eps = r.number("rms_norm_eps", 1e-5);
  t.initializer_range = r.number("initializer_range", 0.02);
  r.expect("hidden_act", {"silu"});
  r.expect("use_sliding_window", {false});
  r.expect("attention_dropout", {0, 0.0});
  if (r.error()) return;
  t.head_dim = r.positive("head_dim", t.hidden / t.heads);
  if (t.heads % t.kv_heads != 0)
    r.fail("num_attention_heads " + std::to_string(t.heads) + " must be a multiple of num_key_value_heads " +
           std::to_string(t.kv_heads));
  if (!r.find("head_dim") && t.hidden % t.heads != 0)
    r.fail("hidden_size " + std::to_string(t.hidden) + " must be a multiple of num_attention_heads " +
           std::to_string(t.heads));
  if (t.head_dim % 2 != 0) r.fail("head_dim " + std::to_string(t.head_dim) + " must be even");
  if (!r.error()) read_rope(r, file, t);
}

Result<Json> parse_file(const std::string& path) {
  const Result<std::string> text = read_text_file(path);
  if (!text.ok()) return make_error(text.error().code, text.error().message + "; a model folder needs a config.json");
  Result<Json> parsed = parse_json(*text);
  if (!parsed.ok()) return invalid_argument(path + ": " + parsed.error().message);
  if (!parsed->is_object()) return invalid_argument(path + ": is not a JSON object");
  return parsed;
}

Status check_architecture(const std::string& path, const Json& root) {
  const std::string type =
      root.contains("model_type") && root["model_type"].is_string() ? root["model_type"].get<std::string>() : "";
  if (type != "qwen2_5_vl")
    return invalid_argument(path + ": key 'model_type': value '" + type + "' is not supported; valid: qwen2_5_vl");
  if (root.contains("quantization_config") && !root["quantization_config"].is_null())
    return invalid_argument(
        path +
        ": key 'quantization_config': quantised weights are not supported; use the folder of the unquantised model");
  if (!root.contains("vision_config") || !root["vision_config"].is_object())
    return invalid_argument(path + ": key 'vision_config' is missing; expected an object with depth, hidden_size, ...");
  return {};
}

Result<bool> tied_flag(const std::string& path, const Json& root, const Json& text) {
  // The top-level flag is the one that the original implementation ties by; older folders have it in text_config alone.
  for (const Json* j : {&root, &text}) {
    const auto found = j->find("tie_word_embeddings");
    if (found == j->end() || found->is_null()) continue;
    if (found->is_boolean()) return found->get<bool>();
    return invalid_argument(path + ": key '" + (j == &root ? "" : "text_config.") + "tie_word_embeddings': value " +
                            found->dump() + " is not valid; valid: true, false");
  }
  return false;
}

}  // namespace

Result<ModelConfig> read_model_config(const std::string& folder) {
  const std::string path = folder + "/config.json";
  TROUPE_ASSIGN(const Json root, parse_file(path));
  TROUPE_RETURN_IF_ERROR(check_architecture(path, root));
  const bool nested = root.contains("text_config") && root["text_config"].is_object();
  const Json& text = nested ? root["text_config"] : root;
  ModelConfig c;
  c.source = path;
  Reader vision_reader(path, "vision_config.", {&root["vision_config"]});
  int64_t tokens_per_second = 2;
  read_vision(vision_reader, c.vision, tokens_per_second);
  if (vision_reader.error()) return *vision_reader.error();
  c.tokens_per_second = static_cast<double>(tokens_per_second);
  Reader text_reader(path, nested ? "text_config." : "", {&text, &root});
  read_text(text_reader, path, c.text);
  if (text_reader.error()) return *text_reader.error();
  TROUPE_ASSIGN(c.text.tied, tied_flag(path, root, text));
  Reader top(path, "", {&root, &text});
  c.image_token = top.positive("image_token_id", 151655, kMaxVocabulary);
  c.video_token = top.positive("video_token_id", 151656, kMaxVocabulary);
  c.vision_start_token = top.positive("vision_start_token_id", 151652, kMaxVocabulary);
  c.vision_end_token = top.positive("vision_end_token_id", 151653, kMaxVocabulary);
  if (c.vision.out_hidden != c.text.hidden)
    top.fail("key 'vision_config.out_hidden_size': value " + std::to_string(c.vision.out_hidden) +
             " is not valid; valid: the text model's hidden_size " + std::to_string(c.text.hidden));
  if (top.error()) return *top.error();
  return c;
}

}  // namespace troupe
