#include "base/convert/spec_draft.h"

#include <catch2/catch.hpp>

namespace troupe::convert {

TEST_CASE("A draft is written in the reference page's order, with where each key comes from") {
  SpecDraft draft("Tool");
  draft.set("training.schedule.type", "cosine", {"lr_scheduler_type"});
  draft.set_default("training.optimizer.lr", "1e-5");
  draft.set("training.schedule.warmup_ratio", "0", {"lr_scheduler_type"}, "no warm-up");
  draft.set_list("data.sources", {"{path: \"a\"}", "{path: \"b\"}"}, {"dataset"});
  draft.set("model.path", "\"m\"", {}, "--model");
  CHECK(draft.to_yaml() ==
        "model:\n"
        "  path: \"m\"  # --model\n"
        "data:\n"
        "  sources:  # dataset\n"
        "    - {path: \"a\"}\n"
        "    - {path: \"b\"}\n"
        "training:\n"
        "  optimizer:\n"
        "    lr: 1e-5  # Tool's default\n"
        "  schedule:\n"
        "    type: cosine  # lr_scheduler_type\n"
        "    warmup_ratio: 0  # lr_scheduler_type: no warm-up\n");
}

}  // namespace troupe::convert
