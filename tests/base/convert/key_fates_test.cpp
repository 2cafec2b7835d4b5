#include "base/convert/key_fates.h"

#include <catch2/catch.hpp>
#include <set>

namespace troupe::convert {
namespace {

YamlNode scalar(const std::string& text) {
  YamlNode node;
  node.kind = YamlKind::kScalar;
  node.text = text;
  return node;
}

}  // namespace

TEST_CASE("Every key has one row in its table, with a text that says what is valid or why") {
  for (const auto* keys : {&trainer_keys(), &llama_factory_keys(), &ms_swift_keys()}) {
    std::set<std::string_view> names;
    for (const ForeignKey& key : *keys) {
      INFO(key.name);
      CHECK(names.insert(key.name).second);
      if (key.fate == Fate::kRefused) CHECK(key.text.find("; valid: ") != std::string_view::npos);
      if (key.fate == Fate::kDropped)
        CHECK((key.text.rfind("not needed: ", 0) == 0 || key.text.rfind("no counterpart", 0) == 0));
      if (key.fate != Fate::kRefused) CHECK(key.off.empty());
      CHECK(key.text.find('|') == std::string_view::npos);
    }
    CHECK(names.size() > 50);
  }
}

TEST_CASE("A project's own row goes before the trainer's") {
  CHECK(find_key(ForeignTool::kMsSwift, "learning_rate")->fate == Fate::kCarried);
  CHECK(find_key(ForeignTool::kMsSwift, "packing")->text != find_key(ForeignTool::kLlamaFactory, "packing")->text);
  CHECK(find_key(ForeignTool::kMsSwift, "cutoff_len") == nullptr);
  CHECK(find_key(ForeignTool::kLlamaFactory, "tuner_type") == nullptr);
}

TEST_CASE("A refused key is off by the values of its row, in any case, and by nothing") {
  const ForeignKey* key = find_key(ForeignTool::kLlamaFactory, "streaming");
  REQUIRE(key);
  for (const char* off : {"false", "False", "None"}) CHECK(is_off(*key, scalar(off)));
  for (const char* on : {"true", "falsex", "0"}) CHECK_FALSE(is_off(*key, scalar(on)));
  YamlNode list;
  list.kind = YamlKind::kSequence;
  CHECK(is_off(*find_key(ForeignTool::kMsSwift, "adapters"), list));
  list.items.push_back(scalar("a"));
  CHECK_FALSE(is_off(*find_key(ForeignTool::kMsSwift, "adapters"), list));
}

}  // namespace troupe::convert
