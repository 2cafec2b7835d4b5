#include "base/config/key_places.h"

#include <catch2/catch.hpp>

#include "base/config/yaml_tree.h"

using namespace troupe;

namespace {

KeyPlaces places_in(const std::string& text) {
  Diagnostics found;
  YamlNode tree = parse_yaml(text, "j.yaml", found);
  apply_override(tree, "training.global_batch=4", found);
  REQUIRE(found.empty());
  return KeyPlaces(tree);
}

}  // namespace

TEST_CASE("a key stands where it was written, or where the nearest one above it was") {
  const KeyPlaces places = places_in(
      "groups:\n  text: {mesh: {tp: 4}}\ndata:\n  sources:\n    - {path: a}\n    - path: b\ntraining: {steps: 3}\n");
  CHECK(places.of("training.steps") == "j.yaml:7");
  CHECK(places.of("groups.text.mesh.tp") == "j.yaml:2");
  CHECK(places.of("groups.text.zero") == "j.yaml:2");
  CHECK(places.of("data.sources[1].image_root") == "j.yaml:6");
  CHECK(places.of("placement.text") == "j.yaml:1");
  CHECK(places.of("training.global_batch") == "--set training.global_batch=4");
  CHECK(KeyPlaces(places.places()).of("training.steps") == "j.yaml:7");
  KeyPlaces other = places;
  other.forget_items("data.sources");
  CHECK(other.of("data.sources[1].path") == "j.yaml:5");  // of the list
}

TEST_CASE("an error's lines that begin with a key of the spec are placed, others are left") {
  const KeyPlaces places = places_in("model: {path: m}\ntraining: {steps: 3}\n");
  const Error error = places.located(invalid_argument("key 'training.steps': no\nkey 'model.path': no\nelse"));
  CHECK(error.code == ErrorCode::kInvalidArgument);
  CHECK(error.message == "j.yaml:2: key 'training.steps': no\nj.yaml:1: key 'model.path': no\nelse");
  CHECK(places.located(invalid_argument("key 'vocab_size': of a model")).message == "key 'vocab_size': of a model");
  CHECK(places.located(invalid_argument("key 'training")).message == "key 'training");
  CHECK(KeyPlaces().located(invalid_argument("key 'training.steps': no")).message == "key 'training.steps': no");
}
