#include "actors/checkpoint/json_file.h"

#include <fstream>

namespace troupe::checkpoint {

Result<OrderedJson> read_json_object(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  OrderedJson json = OrderedJson::parse(in, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded() || !json.is_object()) return invalid_argument(path + ": is not a JSON object");
  return json;
}

Status write_json_file(const std::string& path, const OrderedJson& json) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << json.dump(2) << '\n';
  out.close();
  if (!out) return make_error(ErrorCode::kResourceExhausted, path + ": cannot be written");
  return {};
}

}  // namespace troupe::checkpoint
