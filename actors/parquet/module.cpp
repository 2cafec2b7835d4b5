#include <arrow/config.h>

#include "actors/parquet/arrow_rows.h"
#include "actors/parquet/parquet_module.h"

void troupe_open_parquet_rows(const std::shared_ptr<const troupe::MappedFile>& file, const std::set<std::string>& names,
                              troupe::Result<std::shared_ptr<const troupe::RowFile>>& out) {
  out = troupe::ArrowRows::open(file, names);
}

void troupe_parquet_library(std::string& out) {
  const auto& build = arrow::GetBuildInfo();
  out = build.version_string + " " + build.git_id;
}
