#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

/// What a driver must remember across its own death: its term, its jobs, their generations and grants.
namespace troupe::driver {

struct JournalledJob {
  std::string id, name, run_folder, state;
  uint32_t generation = 1;
  int64_t run_through = 0;
};

/// Writes are queued and carried out in order; the completion is called on a thread of the journal's and is meant to
/// post to the owner loop: nothing that a write allows may happen before, or at all when it failed. Thread-safe.
class Journal {
 public:
  using Done = std::function<void(Status)>;
  /// A SQLite file (or ":memory:"): opens or creates it, takes it for this process alone and begins a new term.
  /// FailedPrecondition, and no new term, when another driver holds it (asked for 2 s).
  static Result<std::unique_ptr<Journal>> open(const std::string& path);
  /// Carries out what is queued.
  virtual ~Journal() = default;

  virtual Term term() const = 0;
  virtual void record_job(JournalledJob job, Done done) = 0;
  virtual void record_grant(const std::string& job, Generation generation, int64_t run_through, Done done) = 0;
  virtual void record_state(const std::string& job, const std::string& state, Done done) = 0;
  /// All jobs ever journalled, oldest first; reads what was queued before the call.
  virtual Result<std::vector<JournalledJob>> jobs() = 0;
};

}  // namespace troupe::driver
