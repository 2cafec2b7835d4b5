#include "actors/nn/parameter_store.h"

#include <ATen/ops/zeros.h>

#include <algorithm>

namespace troupe {
namespace {

std::vector<int64_t> local_shape(const ParameterDecl& decl, const LocalSlice& slice) {
  std::vector<int64_t> shape = decl.shape;
  shape[static_cast<size_t>(slice.dim)] = slice.end - slice.begin + slice.padding;
  return shape;
}

int64_t product(const std::vector<int64_t>& shape) {
  int64_t n = 1;
  for (int64_t s : shape) n *= s;
  return n;
}

bool holds(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

int64_t round_up(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

/// The view over `names` in their buffer's flat tensor: rows of all of them, one after the other.
at::Tensor fused_view(ParameterStore& store, const std::vector<std::string>& names, const at::Tensor& flat) {
  const LocalParameter& first = store.at(names.front());
  std::vector<int64_t> shape = local_shape(first.decl, first.slice);
  int64_t elements = first.elements;
  for (size_t i = 1; i < names.size(); ++i) {
    const LocalParameter& next = store.at(names[i]);
    const std::vector<int64_t> next_shape = local_shape(next.decl, next.slice);
    TROUPE_CHECK(next.buffer == first.buffer && next.offset == first.offset + elements);
    TROUPE_CHECK(std::equal(shape.begin() + 1, shape.end(), next_shape.begin() + 1, next_shape.end()));
    shape[0] += next_shape[0];
    elements += next.elements;
  }
  return flat.narrow(0, first.offset, elements).view(shape);
}

}  // namespace

ParameterStore::ParameterStore(const ModelConfig& config, const ParameterStoreOptions& options)
    : config_(config), options_(options) {
  std::vector<int64_t> filled;  // elements in use of each buffer
  for (ParameterDecl& decl : model_parameters(config, options.tp_sequence)) {
    if (!holds(options.components, decl.component)) continue;
    LocalParameter parameter;
    parameter.trained = !holds(options.frozen, decl.component);
    parameter.slice = local_slice(decl, config, options.tp, options.tp_rank);
    parameter.elements = product(local_shape(decl, parameter.slice));
    const auto same = [&](const FlatBuffer& b) {
      return b.component == decl.component && b.trained == parameter.trained;
    };
    const auto found = std::find_if(buffers_.begin(), buffers_.end(), same);
    parameter.buffer = static_cast<int>(found - buffers_.begin());
    if (found == buffers_.end()) {
      buffers_.push_back({decl.component, parameter.trained, {}, {}, {}});
      filled.push_back(0);
    }
    const auto buffer = static_cast<size_t>(parameter.buffer);
    // No gap between parameters: neighbours such as q, k, v must be usable as one matrix.
    parameter.offset = filled[buffer];
    filled[buffer] += parameter.elements;
    const int index = static_cast<int>(parameters_.size());
    buffers_[buffer].parameters.push_back(index);
    TROUPE_CHECK(by_name_.emplace(decl.name, index).second);
    parameter.decl = std::move(decl);
    parameters_.push_back(std::move(parameter));
  }
  const auto weight_options = at::TensorOptions().dtype(options.compute_dtype).device(options.device);
  const auto gradient_options =
      weight_options.dtype(options.gradients_in_compute_dtype ? options.compute_dtype : at::kFloat);
  for (size_t b = 0; b < buffers_.size(); ++b) {
    const int64_t n = round_up(filled[b], std::max<int64_t>(options.pad_to, 1));
    buffers_[b].weights = at::zeros({n}, weight_options);
    if (buffers_[b].trained) buffers_[b].gradients = at::zeros({n}, gradient_options);
  }
  for (LocalParameter& parameter : parameters_) {
    const FlatBuffer& buffer = buffers_[static_cast<size_t>(parameter.buffer)];
    const std::vector<int64_t> shape = local_shape(parameter.decl, parameter.slice);
    parameter.weight = buffer.weights.narrow(0, parameter.offset, parameter.elements).view(shape);
    if (parameter.trained)
      parameter.gradient = buffer.gradients.narrow(0, parameter.offset, parameter.elements).view(shape);
  }
}

int ParameterStore::index_of(const std::string& name) const {
  const auto found = by_name_.find(name);
  TROUPE_CHECK(found != by_name_.end());
  return found->second;
}

LocalParameter& ParameterStore::at(const std::string& name) { return parameters_[static_cast<size_t>(index_of(name))]; }

at::Tensor ParameterStore::fused_weight(const std::vector<std::string>& names) {
  return fused_view(*this, names, buffers_[static_cast<size_t>(at(names.front()).buffer)].weights);
}

at::Tensor ParameterStore::fused_gradient(const std::vector<std::string>& names) {
  const LocalParameter& first = at(names.front());
  if (!first.trained) return {};
  return fused_view(*this, names, buffers_[static_cast<size_t>(first.buffer)].gradients);
}

void ParameterStore::zero_gradients() {
  for (FlatBuffer& buffer : buffers_)
    if (buffer.trained) buffer.gradients.zero_();
}

}  // namespace troupe
