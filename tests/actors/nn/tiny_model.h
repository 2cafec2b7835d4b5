#pragma once

#include "base/model/model_config.h"

namespace troupe::testing {

/// A model of a few thousand elements whose sizes divide badly: 12 query heads on 3 KV heads, an intermediate size and
/// a vocabulary that no tp above 1 divides.
inline ModelConfig tiny_model(bool tied = false) {
  ModelConfig c;
  c.vision.depth = 2;
  c.vision.hidden = 12;
  c.vision.heads = 2;
  c.vision.intermediate = 10;
  c.vision.patch_size = 2;
  c.vision.out_hidden = 24;
  c.vision.full_attention_blocks = {1};
  c.text.layers = 2;
  c.text.hidden = 24;
  c.text.intermediate = 31;
  c.text.heads = 12;
  c.text.kv_heads = 3;
  c.text.head_dim = 2;
  c.text.vocabulary = 41;
  c.text.tied = tied;
  return c;
}

}  // namespace troupe::testing
