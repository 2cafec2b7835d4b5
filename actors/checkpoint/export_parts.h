#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/model/parameter.h"
#include "base/result.h"
#include "base/safetensors/safetensors_file.h"
#include "base/safetensors/safetensors_writer.h"

/// The files that ranks leave in FOLDER.parts for an export: each holds owned slices, named "PARAMETER#dim:begin:end".
namespace troupe::checkpoint {

/// Indices [begin, end) of dimension `dim` of a parameter, in a mapped part file.
struct ExportPart {
  int dim = 0;
  int64_t begin = 0, end = 0;
  std::shared_ptr<SafetensorsFile> file;  // shared: one mapping serves all parts of its file
  const TensorInfo* info = nullptr;
};

std::string part_name(const std::string& parameter, int dim, int64_t begin, int64_t end);

/// The parts of all ranks by parameter, ascending.
class ExportParts {
 public:
  /// Opens every file of FOLDER.parts. DataLoss names a file or an entry that is not what write_export_parts wrote.
  static Result<ExportParts> open(const std::string& folder);
  bool holds(const std::string& parameter) const { return parts_.contains(parameter); }
  /// The parts cover every element of `decl` exactly once. DataLoss names the parameter and what is missing or doubled.
  Status check(const ParameterDecl& decl) const;
  /// Appends the whole parameter to `writer` in dtype `dtype`. REQUIRES: check() passed. Memory: a few MiB.
  Status append(const ParameterDecl& decl, FileDType dtype, SafetensorsWriter& writer) const;
  /// The dtype that the ranks computed in: of any part. REQUIRES: holds(parameter).
  FileDType dtype(const std::string& parameter) const { return parts_.at(parameter).front().info->dtype; }

 private:
  Status add(const std::shared_ptr<SafetensorsFile>& file, const TensorInfo& info);

  std::map<std::string, std::vector<ExportPart>> parts_;
};

}  // namespace troupe::checkpoint
