#include "base/model/model_config.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/scratch_folder.h"

using namespace troupe;
using Json = nlohmann::json;

namespace {

Json flat() {
  return Json::parse(
      R"({"model_type": "qwen2_5_vl", "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "vocab_size": 300, "rms_norm_eps": 1e-6, "rope_theta": 500000.0, "tie_word_embeddings": true, "use_sliding_window": false,
    "rope_scaling": {"type": "mrope", "mrope_section": [2, 3, 3]}, "image_token_id": 7,
    "vision_config": {"depth": 3, "hidden_size": 48, "intermediate_size": 60, "num_heads": 6, "in_chans": 3, "out_hidden_size": 64,
                      "fullatt_block_indexes": [1], "tokens_per_second": 2}})");
}

Json nested() {
  return Json::parse(R"({"model_type": "qwen2_5_vl", "image_token_id": 7, "vision_start_token_id": 5,
    "text_config": {"model_type": "qwen2_5_vl_text", "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
                    "num_key_value_heads": 2, "vocab_size": 300, "rms_norm_eps": 1e-6, "tie_word_embeddings": true,
                    "rope_parameters": {"rope_type": "default", "rope_theta": 500000.0, "mrope_section": [2, 3, 3]}},
    "vision_config": {"depth": 3, "hidden_size": 48, "intermediate_size": 60, "num_heads": 6, "in_channels": 3, "out_hidden_size": 64,
                      "fullatt_block_indexes": [1], "tokens_per_second": 2}})");
}

/// One for all tests of the file; it goes away with the program.
std::string folder() {
  static const ScratchFolder scratch;
  return scratch.path();
}

Result<ModelConfig> read(const Json& j) {
  std::ofstream(folder() + "/config.json") << j.dump();
  return read_model_config(folder());
}

std::string complaint(const Json& j) {
  const auto c = read(j);
  if (c.ok()) return "(accepted)";
  const std::string prefix = folder() + "/config.json: ";
  CHECK(c.error().message.compare(0, prefix.size(), prefix) == 0);
  return c.error().message.substr(prefix.size());
}

}  // namespace

TEST_CASE("the flat and the nested form of a configuration give the same shapes") {
  for (const Json& form : {flat(), nested()}) {
    const auto c = read(form);
    if (!c.ok()) FAIL(c.error().message);
    CHECK(c->text.hidden == 64);
    CHECK(c->text.head_dim == 16);
    CHECK(c->text.kv_heads == 2);
    CHECK(c->text.rope_theta == 500000.0);
    CHECK(c->text.mrope_section == std::array<int64_t, 3>{2, 3, 3});
    CHECK(c->text.tied);
    CHECK(c->vision.depth == 3);
    CHECK(c->vision.head_dim() == 8);
    CHECK(c->vision.patch_dim() == 3 * 2 * 14 * 14);
    CHECK(c->vision.full_attention_blocks == std::vector<int64_t>{1});
    CHECK(c->image_token == 7);
    CHECK(c->tokens_per_second == 2);
  }
}

TEST_CASE("the tied flag is the top level's where both have one, and off where none has") {
  Json j = nested();
  j["tie_word_embeddings"] = false;
  CHECK_FALSE(read(j)->text.tied);
  j.erase("tie_word_embeddings");
  j["text_config"].erase("tie_word_embeddings");
  j["text_config"]["tie_word_embeddings"] = "yes";
  CHECK(complaint(j) == "key 'text_config.tie_word_embeddings': value \"yes\" is not valid; valid: true, false");
  j["text_config"].erase("tie_word_embeddings");
  CHECK_FALSE(read(j)->text.tied);
}

TEST_CASE("what is wrong with a configuration is named with key, value and what is valid") {
  Json j = flat();
  j["model_type"] = "llava";
  CHECK(complaint(j) == "key 'model_type': value 'llava' is not supported; valid: qwen2_5_vl");
  j = flat();
  j.erase("num_hidden_layers");
  CHECK(complaint(j) == "key 'num_hidden_layers' is missing; expected an integer from 1 to 4096");
  j = nested();
  j["text_config"]["hidden_size"] = "64";
  CHECK(complaint(j) ==
        "key 'text_config.hidden_size': value \"64\" is not valid; valid: an integer from 1 to 1048576");
  j = flat();
  j["rope_scaling"]["mrope_section"] = {2, 3, 4};
  CHECK(complaint(j) ==
        "key 'rope_scaling.mrope_section': value [2,3,4] is not valid; valid: three integers whose sum is head_dim / 2 "
        "= 8");
  j = flat();
  j["rope_scaling"]["type"] = "yarn";
  CHECK(complaint(j) == "key 'rope_scaling.type': value \"yarn\" is not supported; valid: \"mrope\", \"default\"");
  j = nested();
  j["text_config"]["rope_parameters"]["mrope_section"] = {2, 3, 4};
  CHECK(complaint(j).find("key 'text_config.rope_parameters.mrope_section': value [2,3,4] is not valid") == 0);
  j["rope_parameters"] = j["text_config"]["rope_parameters"];
  j["text_config"].erase("rope_parameters");
  j["rope_parameters"]["rope_type"] = "yarn";
  CHECK(complaint(j).find("key 'rope_parameters.rope_type': value \"yarn\" is not supported") == 0);
  j = flat();
  j["vision_config"]["fullatt_block_indexes"] = {1, 3};
  CHECK(complaint(j) ==
        "key 'vision_config.fullatt_block_indexes': value 3 is not valid; valid: blocks from 0 to depth - 1 = 2");
  j["vision_config"]["fullatt_block_indexes"] = {7, 15, 23, 31};  // what transformers saves unless told otherwise
  CHECK(complaint(j) == "(accepted)");
  j["vision_config"].erase("fullatt_block_indexes");
  CHECK(complaint(j) == "(accepted)");
  j = flat();
  j["num_key_value_heads"] = 3;
  CHECK(complaint(j) == "num_attention_heads 4 must be a multiple of num_key_value_heads 3");
  j = flat();
  j["use_sliding_window"] = true;
  CHECK(complaint(j) == "key 'use_sliding_window': value true is not supported; valid: false");
  j = flat();
  j["vision_config"]["out_hidden_size"] = 63;
  CHECK(complaint(j) ==
        "key 'vision_config.out_hidden_size': value 63 is not valid; valid: the text model's hidden_size 64");
  j = flat();
  j["quantization_config"] = {{"bits", 4}};
  CHECK(complaint(j).find("quantised weights are not supported") != std::string::npos);
}

TEST_CASE("sizes that no machine holds are refused before anything is made of them") {
  Json j = flat();
  j["num_hidden_layers"] = 1'000'000'000;
  CHECK(complaint(j) == "key 'num_hidden_layers': value 1000000000 is not valid; valid: an integer from 1 to 4096");
  j = flat();
  j["vocab_size"] = 18446744073709551615u;
  CHECK(complaint(j).find("valid: an integer from 1 to 16777216") != std::string::npos);
}

TEST_CASE("a folder without a readable configuration is refused by its path") {
  const auto none = read_model_config("/nowhere");
  REQUIRE_FALSE(none.ok());
  CHECK(none.error().code == ErrorCode::kNotFound);
  std::ofstream(folder() + "/config.json") << "{";
  CHECK(read_model_config(folder()).error().message.find(folder() + "/config.json: is not valid JSON") == 0);
}
