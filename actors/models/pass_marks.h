#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "actors/nn/parameter_store.h"

/// Where a layer's passes touch its parameters: what a model tells its store (PassHooks), so that collectives over the
/// parameters of other layers run beside it. A layer's own norm in front is computed with the layer before, as its sum
/// and norm are one kernel: it is used, and its gradient is final, one layer earlier.
namespace troupe {

/// Indices into the store's parameters.
struct LayerMarks {
  int own = 0;   // first of the layer behind its norm: final, with all that follows, when backward leaves the layer
  int used = 0;  // last that the layer's forward reads: the norm behind it
};

inline LayerMarks layer_marks(const ParameterStore& store, const std::string& own, const std::string& used) {
  return {store.index_of(own), store.index_of(used)};
}

/// `input`: the normed rows with which the layer begins; their gradient is complete when its backward has ended.
/// Reports it then. Nothing without a graph. The store outlives the graph.
inline void mark_layer(const ParameterStore& store, const LayerMarks& marks, const at::Tensor& input) {
  store.about_to_use(marks.used);
  if (input.requires_grad())
    input.register_hook([&store, own = marks.own](const at::Tensor&) { store.gradients_final_from(own); });
}

}  // namespace troupe
