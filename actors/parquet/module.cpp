#include "actors/parquet/arrow_rows.h"
#include "actors/parquet/parquet_module.h"

void troupe_open_parquet_rows(const std::shared_ptr<const troupe::MappedFile>& file, const std::set<std::string>& names,
                              troupe::Result<std::shared_ptr<const troupe::RowFile>>& out) {
  out = troupe::ArrowRows::open(file, names);
}
