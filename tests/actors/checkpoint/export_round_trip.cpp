// export_round_trip SOURCE TARGET TP random|pretrained fp32|bf16: loads (or draws) the model as a vision group of one
// rank and a text group of TP ranks, changes nothing, and exports it. For export_loads_in_transformers.py.
#include <cstdio>
#include <cstdlib>

#include "actors/checkpoint/model_io.h"
#include "tests/actors/checkpoint/lone_world.h"

using namespace troupe;

namespace {

Status write_group(const ModelConfig& config, const ExportOptions& options, const std::vector<std::string>& components,
                   int tp, at::ScalarType dtype) {
  for (int rank = 0; rank < tp; ++rank) {
    ParameterStoreOptions store_options;
    store_options.components = components;
    store_options.tp = tp;
    store_options.tp_rank = rank;
    store_options.compute_dtype = dtype;
    ParameterStore store(config, store_options);
    if (options.random_init)
      initialise_random(store, 1);
    else
      TROUPE_RETURN_IF_ERROR(load_pretrained(store, options.source_folder));
    testing::LoneWorld world(Mesh().set(Axis::kTp, tp), rank);
    TROUPE_RETURN_IF_ERROR(write_export_parts(store, world, options.target_folder));
  }
  return {};
}

Status round_trip(const ExportOptions& options, int tp, at::ScalarType dtype) {
  TROUPE_ASSIGN(const ModelConfig config, read_model_config(options.source_folder));
  TROUPE_RETURN_IF_ERROR(write_group(config, options, {"vision", "merger"}, 1, dtype));
  TROUPE_RETURN_IF_ERROR(write_group(config, options, {"text"}, tp, dtype));
  return assemble_export(options);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  ExportOptions options;
  options.source_folder = argv[1];
  options.target_folder = argv[2];
  options.random_init = std::string(argv[4]) == "random";
  options.max_file_bytes = options.random_init ? 200'000 : options.max_file_bytes;
  const Status status =
      round_trip(options, std::atoi(argv[3]), std::string(argv[5]) == "bf16" ? at::kBFloat16 : at::kFloat);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.error().to_string().c_str());
  return 1;
}
