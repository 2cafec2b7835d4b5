#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "actors/nn/parameter_store.h"
#include "actors/optim/optimizer.h"
#include "base/config/job_spec.h"
#include "transport/world/world.h"

/// Weights in from a Hugging Face folder and out to one; plain checkpoints (weights, optimizer, position).
namespace troupe {

/// Memory-maps the folder's safetensors and copies this rank's slices into the store. Names of every known form are
/// accepted. Missing, doubled, unexpected or misshapen tensors are refused by name. With `optimizer`, fp32 masters get
/// the files' own values; without, they start as the weights in compute dtype.
Status load_pretrained(ParameterStore& store, const std::string& folder, GroupOptimizer* optimizer = nullptr);
/// Random weights from (seed, parameter name, element): equal for every layout. Normal(0, initializer_range) for
/// matrices, ones for norms, zeros for biases.
void initialise_random(ParameterStore& store, uint64_t seed);

/// Writes this rank's owned slices of the group's parameters into a file of its own in `folder`.parts (all ranks call;
/// only dp = sp = 0 replicas write).
Status write_export_parts(ParameterStore& store, World& world, const std::string& folder);
/// One process joins the parts of all groups into a Hugging Face folder: tensors in the names, dtypes, file split and
/// order of `source_folder` (if it has weights; untouched tensors byte-identical), config, processor and tokenizer
/// files carried along. The parts are removed. Renamed into place at the end.
struct ExportOptions {
  std::string source_folder, target_folder;
  std::vector<std::string> untouched_components;  // not trained: bytes copied from the source when it has weights
  int64_t min_pixels = 0, max_pixels = 0;         // written where the image processor reads them; 0: left as they are
  VideoSpec video;                                // likewise for the video processor
  bool random_init = false;  // training began at random: weights of the source folder, if any, are not looked at
  int64_t max_file_bytes = 5'000'000'000;  // of a weight file, where the source does not say the split
};
Status assemble_export(const ExportOptions& options);

/// Same-layout checkpoint of one rank: its shard of the trained weights, optimizer pieces.
/// `folder`/GROUP-RANK.safetensors. Frozen weights are not in it: load them as at the first start, then this.
/// load_rank_state is collective (it gathers the weights).
Status save_rank_state(ParameterStore& store, GroupOptimizer& optimizer, const std::string& path);
Status load_rank_state(ParameterStore& store, GroupOptimizer& optimizer, const std::string& path);
/// Bytes of the tensors in the file that save_rank_state writes; its header adds some hundred bytes a parameter.
int64_t rank_state_bytes(ParameterStore& store, GroupOptimizer& optimizer);

}  // namespace troupe
