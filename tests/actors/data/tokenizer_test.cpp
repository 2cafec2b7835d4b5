#include "actors/data/tokenizer.h"

#include <catch2/catch.hpp>

#include "tests/actors/data/fixture.h"

namespace troupe {
namespace {

std::unique_ptr<Tokenizer> fixture_tokenizer() {
  auto tokenizer = Tokenizer::load(fixture::path("model"));
  REQUIRE(tokenizer.ok());
  return std::move(tokenizer).value();
}

std::string refusal(const std::string& text) {
  const fixture::Scratch scratch;
  scratch.write("tokenizer.json", text);
  const auto tokenizer = Tokenizer::load(scratch.path("."));
  return tokenizer.ok() ? "" : tokenizer.error().to_string();
}

TEST_CASE(
    "D25: ids of every script and spacing equal those of the original tokenizer, control spellings included as text") {
  const auto tokenizer = fixture_tokenizer();
  for (const auto& expected : fixture::json("texts.json")) {
    const auto text = expected.at("text").get<std::string>();
    std::vector<int64_t> ids;
    INFO("text: " << text);
    REQUIRE(tokenizer->encode(text, ids).ok());
    CHECK(ids == expected.at("ids").get<std::vector<int64_t>>());
  }
}

TEST_CASE("A word gives the same ids when it comes out of the cache") {
  const auto tokenizer = fixture_tokenizer();
  std::vector<int64_t> first, second;
  REQUIRE(tokenizer->encode("picture", first).ok());
  REQUIRE(tokenizer->encode("picture", second).ok());
  CHECK_FALSE(first.empty());
  CHECK(first == second);
}

TEST_CASE("Decoding gives the text back and spells control tokens out") {
  const auto tokenizer = fixture_tokenizer();
  const std::string text = "图片里有什么？ two\n\n words 😀";
  std::vector<int64_t> ids{*tokenizer->id_of("<|im_start|>")};
  REQUIRE(tokenizer->encode(text, ids).ok());
  const auto decoded = tokenizer->decode(ids);
  REQUIRE(decoded.ok());
  CHECK(*decoded == "<|im_start|>" + text);
  CHECK_FALSE(tokenizer->decode({999999}).ok());
}

TEST_CASE("An id that is no place in a table, or that two tokens share, is refused with file and token") {
  const auto with = [](const std::string& vocabulary, const std::string& added) {
    return refusal(
        R"({"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false}, "model": {"type": "BPE", "vocab": {)" +
        vocabulary + R"(}, "merges": []}, "added_tokens": [)" + added + "]}");
  };
  CHECK(with(R"("a": 0, "b": 1)", R"({"id": 2, "content": "<x>"}, {"id": 1, "content": "b"})").empty());
  for (const char* id : {"-1", "1000000000000", "16777216", "1.5", "\"3\"", "null", "99999999999999999999"}) {
    const std::string refused = with(std::string(R"("a": 0, "b": )") + id, "");
    INFO(refused);
    CHECK(refused.find("tokenizer.json") != std::string::npos);
    CHECK(refused.find(std::string("model.vocab: token 'b' has the id ") + (id[0] == '9' ? "1e+20" : id)) !=
          std::string::npos);
    CHECK(refused.find("valid: an integer from 0 to 16777215") != std::string::npos);
  }
  CHECK(with(R"("a": 0)", R"({"id": -1, "content": "<x>"})").find("added_tokens: token '<x>' has the id -1") !=
        std::string::npos);
  CHECK(with(R"("a": 7, "b": 7)", "").find("has the id 7, which is that of '") != std::string::npos);
  CHECK(with(R"("a": 7)", R"({"id": 7, "content": "<x>"})").find("token '<x>' has the id 7, which is that of 'a'") !=
        std::string::npos);
  CHECK(with(R"("a": 7)", R"({"id": 8, "content": "a"})").find("token 'a' has the id 8 and the id 7") !=
        std::string::npos);
}

TEST_CASE("D25: text that is not UTF-8 is refused with the position of the byte") {
  std::vector<int64_t> ids;
  const auto status = fixture_tokenizer()->encode("ab\xFFz", ids);
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().message.find("position 2") != std::string::npos);
  CHECK(ids.empty());
}

TEST_CASE("A token that the file does not have is named together with the file") {
  const auto missing = fixture_tokenizer()->id_of("<|nothing|>");
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.error().message.find("<|nothing|>") != std::string::npos);
  CHECK(missing.error().message.find("tokenizer.json") != std::string::npos);
}

TEST_CASE("Merges are read as strings and as pairs with the same result") {
  auto root = nlohmann::json::parse(fixture::contents(fixture::path("model/tokenizer.json")));
  auto& merges = root.at("model").at("merges");
  const bool pairs = merges.at(0).is_array();
  for (auto& merge : merges) {
    if (pairs) {
      merge = merge.at(0).get<std::string>() + " " + merge.at(1).get<std::string>();
    } else {
      const auto line = merge.get<std::string>();
      const auto space = line.find(' ');
      merge = {line.substr(0, space), line.substr(space + 1)};
    }
  }
  const fixture::Scratch scratch;
  scratch.write("tokenizer.json", root.dump());
  const auto other = Tokenizer::load(scratch.path("."));
  REQUIRE(other.ok());
  std::vector<int64_t> here, there;
  REQUIRE((*other)->encode("Describe the image in detail", here).ok());
  REQUIRE(fixture_tokenizer()->encode("Describe the image in detail", there).ok());
  CHECK(here == there);
}

TEST_CASE("A tokenizer of another kind is refused by name") {
  CHECK(refusal("{").find("tokenizer.json") != std::string::npos);
  CHECK(refusal(R"({"pre_tokenizer": {"type": "Metaspace"}, "model": {}})").find("'Metaspace'") != std::string::npos);
  CHECK(refusal(R"({"normalizer": {"type": "Lowercase"}, "pre_tokenizer": {"type": "ByteLevel"}, "model": {}})")
            .find("'Lowercase'") != std::string::npos);
  CHECK(
      refusal(
          R"({"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false}, "model": {"type": "Unigram", "vocab": []}})")
          .find("'Unigram'") != std::string::npos);
  const std::string begin = R"({"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false}, "model": )";
  CHECK(refusal(begin + R"({"ignore_merges": true, "vocab": {}, "merges": []}})").find("ignore_merges") !=
        std::string::npos);
  CHECK(refusal(begin + R"({"dropout": 0.1, "vocab": {}, "merges": []}})").find("model.dropout is 0.1, ") !=
        std::string::npos);
  for (const char* none : {"null", "0", "0.0"})  // the file lacks pieces for the bytes, which are asked for later
    CHECK(refusal(begin + R"({"dropout": )" + none + R"(, "vocab": {}, "merges": []}})").find("dropout") ==
          std::string::npos);
  CHECK(
      refusal(begin + R"({"vocab": {}, "merges": []}, "added_tokens": [{"id": 0, "content": "<x>", "lstrip": true}]})")
          .find("'<x>' has lstrip") != std::string::npos);
  CHECK_FALSE(Tokenizer::load("/nowhere").ok());
}

TEST_CASE("Tokens that tokenizer_config.json adds must be those of tokenizer.json, as transformers adds them to it") {
  const fixture::Scratch scratch;
  std::filesystem::copy(fixture::path("model/tokenizer.json"), scratch.path("tokenizer.json"));
  const auto added = fixture::json("model/tokenizer.json").at("added_tokens").at(0);
  const auto refused = [&](const std::string& id, const std::string& spelling, bool special) {
    const nlohmann::json token{{"content", spelling}, {"special", special}, {"lstrip", false}};
    scratch.write("tokenizer_config.json", nlohmann::json{{"added_tokens_decoder", {{id, token}}}}.dump());
    const auto tokenizer = Tokenizer::load(scratch.path("."));
    return tokenizer.ok() ? "" : tokenizer.error().message;
  };
  const auto spelling = added.at("content").get<std::string>();
  const std::string id = added.at("id").dump();
  const bool special = added.at("special").get<bool>();
  CHECK(refused(id, spelling, special).empty());
  CHECK(refused("9999", "<zz>", false).find("has '<zz>' as number 9999, which is no added token of tokenizer.json") !=
        std::string::npos);
  scratch.write("tokenizer_config.json", R"({"added_tokens_decoder": {"5": "x"}})");
  const auto odd = Tokenizer::load(scratch.path("."));
  REQUIRE_FALSE(odd.ok());
  CHECK(odd.error().message.find("tokenizer_config.json: added_tokens_decoder is no object") != std::string::npos);
  CHECK(refused("9999", spelling, special).find("; tokenizer.json has it as number " + id) != std::string::npos);
  CHECK(refused(id, spelling, !special).find(special ? "with special false;" : "with special true;") !=
        std::string::npos);
}

}  // namespace
}  // namespace troupe
