#include "actors/checkpoint/weight_slices.h"

#include <ATen/ops/from_blob.h>

namespace troupe::checkpoint {

at::ScalarType scalar_type_of(FileDType dtype) {
  switch (dtype) {
    case FileDType::kF32:
      return at::kFloat;
    case FileDType::kBf16:
      return at::kBFloat16;
    case FileDType::kF16:
      return at::kHalf;
    case FileDType::kI64:
      break;
  }
  return at::kLong;
}

Result<FileDType> file_dtype_of(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return FileDType::kF32;
    case at::kBFloat16:
      return FileDType::kBf16;
    case at::kHalf:
      return FileDType::kF16;
    case at::kLong:
      return FileDType::kI64;
    default:
      return invalid_argument(std::string("tensors of dtype ") + c10::toString(type) +
                              " are not written; valid: float, bfloat16, half, int64");
  }
}

at::Tensor mapped_tensor(const SafetensorsFile& file, const TensorInfo& info) {
  // from_blob has no read-only form; nothing here writes into the mapping.
  auto* data = const_cast<std::byte*>(file.data(info));
  return at::from_blob(data, info.shape, at::TensorOptions().dtype(scalar_type_of(info.dtype)));
}

at::Tensor global_part(const at::Tensor& global, const LocalSlice& slice, int64_t begin, int64_t end) {
  return global.narrow(slice.dim, begin, end - begin);
}

at::Tensor local_part(const at::Tensor& local, const LocalSlice& slice, int64_t begin, int64_t end) {
  return local.narrow(slice.dim, begin - slice.begin, end - begin);
}

}  // namespace troupe::checkpoint
