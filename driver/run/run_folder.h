#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "driver/run/line_file.h"

/// The files of one run: job.yaml, metrics.jsonl, events.jsonl, result.json, logs/.
namespace troupe::driver {

/// Owner loop only. Holds the folder's lock (RUN/.lock) for as long as it lives.
class RunFolder {
 public:
  /// Creates the folder, or opens an existing one when `resume` is set. Refuses (FailedPrecondition) a folder that
  /// exists without `resume`, and always one that a live run holds. Nothing is left behind by a refusal.
  static Result<std::unique_ptr<RunFolder>> open(const std::string& path, bool resume);
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  const std::string& path() const { return path_; }
  bool fresh() const { return fresh_; }
  Status write_job(const std::string& yaml);
  /// Complete lines, each with its newline; they are in the file when the call returns Ok, else they wait (LineFile).
  Status append_metrics(const std::string& lines);
  /// Adds "time", "kind" and "generation" in front of `details`. What a full disk does not take waits.
  void append_event(const std::string& kind, uint32_t generation, const nlohmann::json& details);
  /// Makes room on a full disk for what says how the run ended: gives up the reserve that was taken when the folder was
  /// opened, removes what an unfinished save or export left, and writes the lines that wait. REQUIRES: no host writes
  /// any more.
  Status make_room_for_end();
  /// By temporary name and rename.
  Status write_result(const nlohmann::json& result);
  std::string log_path(const std::string& node, int slot) const;
  std::string index_path() const { return path_ + "/index/train.index"; }
  std::string eval_index_path() const { return path_ + "/index/eval.index"; }
  /// Where a running driver can be reached, for `troupe status RUN`; empty text removes it.
  void write_driver_address(const std::string& address);
  /// Removes a folder that this object created: a refused job leaves nothing.
  void discard();

 private:
  RunFolder(std::string path, int lock, bool fresh, bool created);

  std::string path_;
  int lock_;
  bool fresh_, created_;
  bool discarded_ = false;
  LineFile metrics_, events_;
};

/// The newest complete checkpoint (base/checkpoint) and its step; empty path when there is none. `passed_over`: why
/// newer ones are not complete, a line each.
struct LatestCheckpoint {
  std::string path;
  int64_t step = 0;
  std::vector<std::string> passed_over;
};
LatestCheckpoint latest_checkpoint_in(const std::string& run_folder);

}  // namespace troupe::driver
