#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/config/job_spec.h"
#include "base/mesh/mesh.h"
#include "base/result.h"

/// What a checkpoint's manifest.json says: enough to refuse a resume that would not fit, before any tensor is read.
namespace troupe {

struct CheckpointGroup {
  std::string name;
  Mesh mesh;
  int zero = 0;
  bool tp_sequence = false;
  int64_t bucket_bytes = 0;  // how a sharded optimizer's state is cut; 0: it is not sharded
  bool operator==(const CheckpointGroup&) const = default;
};

struct CheckpointFile {
  std::string name;  // relative to the checkpoint
  uint64_t bytes = 0;
  std::string xxh64;  // of the content, 16 hexadecimal digits
};

/// What decides which samples a step sees: only with all of it alike does a resume go on at the next sample.
struct CheckpointData {
  uint64_t seed = 0;
  int64_t global_batch = 0;
  bool shuffle = true;
  int64_t sort_window = 0;
  double eval_split = 0;
  std::string source_weights;  // of data.sources; empty: each is 1
  std::string index;           // digest of the sample index; empty: not known yet, fits any
};

struct CheckpointManifest {
  int64_t step = 0;                     // the last one done
  int64_t skipped_steps = 0;            // of these, without an update: update numbers count the others
  int64_t samples_done = 0;             // data position: samples of all epochs taken so far
  std::string dtype;                    // of the spec: "fp32", "bf16", "bf16-pure"
  std::vector<CheckpointGroup> groups;  // in the spec's order
  CheckpointData data;
  std::vector<CheckpointFile> files;  // filled by commit_checkpoint
};

std::string manifest_to_json(const CheckpointManifest& manifest);
/// `origin` names the text in errors (DataLoss).
Result<CheckpointManifest> manifest_from_json(const std::string& text, const std::string& origin);

/// The manifest of a checkpoint that a job of this spec would write after `step` steps, as far as the spec tells: no
/// files, no index digest.
CheckpointManifest manifest_of_spec(const JobSpec& spec, int64_t step);

/// "vision: sp=2, zero 1; text: tp=2, zero 0, tp_sequence; fp32", for messages.
std::string layout_in_words(const CheckpointManifest& manifest);
/// Whether a job may go on from a checkpoint: the same groups and dtype (InvalidArgument prints both layouts) and the
/// same data in the same order (InvalidArgument names each setting that differs, saved and wanted).
Status check_resumable(const CheckpointManifest& saved, const CheckpointManifest& wanted, const std::string& folder);

}  // namespace troupe
