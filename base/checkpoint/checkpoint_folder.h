#pragma once

#include <cstdint>
#include <string>

#include "base/checkpoint/checkpoint_manifest.h"
#include "base/ids.h"
#include "base/result.h"

/// The checkpoints of a run: RUN/checkpoints/step-00000010, each whole or not there at all. All ranks write their files
/// into a temporary folder; then one process commits it. Plain functions on the file system; no state.
namespace troupe {

/// "step-00000010".
std::string checkpoint_name(int64_t step);

/// The temporary folder that ranks write into: RUN/checkpoints/.step-00000010.g1 for generation 1. Made when missing,
/// so any rank may call first.
Result<std::string> begin_checkpoint(const std::string& run_folder, int64_t step, Generation generation);

/// Adds manifest.json with the size and checksum of every file, flushes all to disk and renames the folder into place.
/// Called once, when every rank has written; returns the final folder. A checkpoint of the same step that is there
/// already is replaced.
Result<std::string> commit_checkpoint(const std::string& temporary_folder, const std::string& run_folder,
                                      CheckpointManifest manifest);

/// The complete checkpoint with the highest step: one whose manifest can be read and whose files have the sizes that it
/// names. NotFound when there is none.
Result<std::string> latest_checkpoint(const std::string& run_folder);

/// The manifest of a checkpoint whose files are all there with the right sizes; `verify`: and the right checksums.
/// DataLoss names the file.
Result<CheckpointManifest> read_checkpoint(const std::string& folder, bool verify);

/// Where ranks leave their parts of an export, and where the folder is put together before it is renamed to
/// `export_folder`: beside it, so that it is there only when it is complete.
std::string export_parts_folder(const std::string& export_folder);
std::string export_partial_folder(const std::string& export_folder);

/// Removes what unfinished saves and an unfinished RUN/export left; a later save of the same step would take it for its
/// own. REQUIRES: no save or export under way.
Status discard_unfinished(const std::string& run_folder);

/// Removes all but the `keep` newest complete checkpoints, and what unfinished saves of before left. keep <= 0 keeps
/// all complete ones. REQUIRES: no save under way.
Status prune_checkpoints(const std::string& run_folder, int keep);

/// Free bytes of the disk that `folder` is on, or will be on.
uint64_t free_disk_bytes(const std::string& folder);

}  // namespace troupe
