#include <ATen/ops/aminmax.h>

#include <algorithm>
#include <cmath>

#include "actors/checkpoint/model_io.h"
#include "actors/checkpoint/weight_slices.h"
#include "base/safetensors/model_folder.h"

namespace troupe {
namespace {

using checkpoint::global_part;
using checkpoint::local_part;

/// Masters keep what the file knows beyond the compute dtype. `source` is the rank's part of the file's tensor.
void fill_master(const OptimizerPiece& piece, const at::Tensor& source) {
  const at::Tensor flat = source.reshape({-1});  // a copy only where a cut along columns makes it one
  const int64_t end =
      std::min(piece.end, flat.numel());  // behind it lies the padding, zero in the master as in the weight
  if (piece.begin < end)
    at::Tensor(piece.master).narrow(0, 0, end - piece.begin).copy_(flat.narrow(0, piece.begin, end - piece.begin));
}

/// A weight that is NaN or infinite makes every loss NaN; the file is to blame, not what is trained from it.
bool all_finite(const at::Tensor& tensor) {
  if (tensor.numel() == 0) return true;
  const auto [least, largest] = at::aminmax(tensor);  // both are NaN when any element is
  return std::isfinite(least.item<double>()) && std::isfinite(largest.item<double>());
}
/// `source`: the part of the file's tensor that the weight was made of.
Status check_finite(const LocalParameter& p, const at::Tensor& source, const FolderTensor& tensor) {
  if (all_finite(p.weight)) return {};
  const std::string which = tensor.file->path() + ": tensor " + tensor.info->name;
  if (all_finite(source))
    return invalid_argument(which +
                            " has elements beyond what the compute dtype holds; valid: model.dtype: fp32, or "
                            "smaller weights");
  return invalid_argument(which +
                          " has elements that are NaN or infinite; valid: a folder whose weights are all finite");
}

}  // namespace

Status load_pretrained(ParameterStore& store, const std::string& folder, GroupOptimizer* optimizer) {
  TROUPE_ASSIGN(const ModelFolder weights, ModelFolder::open(folder));
  TROUPE_RETURN_IF_ERROR(weights.check(store.config()));
  try {
    for (LocalParameter& p : store.parameters()) {
      const FolderTensor* tensor = weights.find(p.decl.name);
      TROUPE_CHECK(tensor != nullptr && tensor->info->shape == p.decl.shape);
      const at::Tensor source =
          global_part(checkpoint::mapped_tensor(*tensor->file, *tensor->info), p.slice, p.slice.begin, p.slice.end);
      local_part(p.weight, p.slice, p.slice.begin, p.slice.end).copy_(source);
      TROUPE_RETURN_IF_ERROR(check_finite(p, source, *tensor));
    }
    if (optimizer == nullptr) return {};
    for (const OptimizerPiece& piece : optimizer->pieces()) {
      if (!piece.master.defined()) continue;
      const LocalParameter& p = store.at(piece.name);
      const FolderTensor* tensor = weights.find(piece.name);
      fill_master(piece, global_part(checkpoint::mapped_tensor(*tensor->file, *tensor->info), p.slice, p.slice.begin,
                                     p.slice.end));
    }
  } catch (const std::exception& e) {
    return internal_error(folder + ": loading weights failed: " + e.what());
  }
  return {};
}

}  // namespace troupe
