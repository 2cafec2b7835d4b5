#include "actors/parquet/parquet_rows.h"

namespace troupe {

Result<ParquetRows> open_parquet(const std::shared_ptr<const MappedFile>&, const std::string& path,
                                 const std::set<std::string>&) {
  return invalid_argument(path +
                          " is a Parquet file, and this program was built without Parquet; valid: a build behind "
                          "deploy/bootstrap.sh --parquet, or JSON, JSON lines or a tar archive");
}

}  // namespace troupe
