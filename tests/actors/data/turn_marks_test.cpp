#include "actors/data/turn_marks.h"

#include <catch2/catch.hpp>

#include "tests/actors/data/parsed_record.h"

namespace troupe {
namespace {

using namespace testing;

TEST_CASE("Marks of other programs are refused where they would change what is learned") {
  for (const std::string mark : {R"(, "train": false)", R"(, "trainable": 0)", R"(, "training": false)",
                                 R"(, "mask": true)", R"(, "masked": 1)", R"(, "loss_mask": 0)", R"(, "train": "no")"})
    CHECK(says(marked("", mark), "and is not read; 'loss' says what an answer counts"));
  for (const std::string mark :
       {R"(, "ignore": false)", R"(, "mask": 0)", R"(, "mask": true)", R"(, "no_train": false)"})
    CHECK(good(marked(mark, "")).turns.size() == 2);
  for (const std::string mark : {R"(, "train": true)", R"(, "trainable": 1)", R"(, "mask": false)", R"(, "masked": 0)",
                                 R"(, "loss_mask": 1)", R"(, "train": null)"})
    CHECK(good(marked("", mark)).turns[1].weight == 1);
  CHECK(good(marked(R"(, "train": false, "loss_mask": 0, "mask": true)", "")).turns.size() == 2);
  CHECK(says(marked(R"(, "train": true)", ""), "turn 1: 'train' is 'true'"));
}

TEST_CASE("Marks in a record that would leave its answers out are refused, and what may be a label is not") {
  const auto with = [](const std::string& key) { return R"({"query": "q", "response": "a", )" + key + "}"; };
  for (const std::string key :
       {R"("train": false)", R"("loss_mask": [0, 1])", R"("compute_loss": 0)", R"("mask_history": true)",
        R"("no_loss": "true")", R"("train": "False")", R"("trainable": "0")", R"("compute_loss": "No")"})
    CHECK(says(with(key), "in the record and is not read there; valid: 'loss' beside each answer"));
  for (const std::string key : {R"("train": true)", R"("train": "split-3")", R"("mask": true)", R"("mask": "m.txt")",
                                R"("ignore": 1)", R"("loss_mask": null)", R"("mask_history": false)"})
    CHECK(good(with(key)).turns[1].weight == 1);
  CHECK(good(with(R"("train": false)"), {{{"ignored", "train"}}, {}}).turns[1].weight == 1);
  CHECK(says(marked("", R"(, "compute_loss": false)"), "and is not read; 'loss' says what an answer counts"));
  CHECK(says(marked("", R"(, "refusal": "I cannot.")"), "'refusal' is not read"));
}

TEST_CASE("Marks in a part of a turn are refused where they would change what is learned of it") {
  const auto part = [](const std::string& key) {
    return R"({"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": [{"type": "text", "text": "a")" +
           key + R"(}, {"type": "text", "text": "b"}]}]})";
  };
  for (const std::string key : {R"("loss": false)", R"("weight": 0)", R"("loss_scale": 0.5)"})
    CHECK(says(part(", " + key), "turn 2 has a part with '"));
  for (const std::string key : {R"("train": false)", R"("mask": true)", R"("loss_mask": 0)"})
    CHECK(says(part(", " + key), "turn 2 has a part: '"));
  CHECK(good(part(R"(, "loss": true, "train": 1, "mask": false, "weight": null)")).turns[1].text == "ab");
}

}  // namespace
}  // namespace troupe
