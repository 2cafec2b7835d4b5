#pragma once

#include <ATen/core/Tensor.h>

#include "actors/nn/parameter_store.h"
#include "base/safetensors/safetensors_file.h"

/// Where files and tensors meet: dtypes, and the part of a parameter's file that a rank holds.
namespace troupe::checkpoint {

at::ScalarType scalar_type_of(FileDType dtype);
/// The file's spelling of a tensor's dtype; kInvalidArgument for types that are never written.
Result<FileDType> file_dtype_of(at::ScalarType type);

/// A tensor over the bytes of a mapped file, nothing copied. Read only, valid as long as `file`.
at::Tensor mapped_tensor(const SafetensorsFile& file, const TensorInfo& info);

/// The rows or columns [begin, end) of the slice, without its padding: of a global tensor, and of the local one that
/// holds it.
at::Tensor global_part(const at::Tensor& global, const LocalSlice& slice, int64_t begin, int64_t end);
at::Tensor local_part(const at::Tensor& local, const LocalSlice& slice, int64_t begin, int64_t end);

}  // namespace troupe::checkpoint
