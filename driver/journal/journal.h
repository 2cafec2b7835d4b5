#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

struct sqlite3;

/// What a driver must remember across its own death: its term, its jobs, their generations and grants.
namespace troupe::driver {

struct JournalledJob {
  std::string id, name, run_folder, state;
  uint32_t generation = 1;
  int64_t run_through = 0;
};

/// A SQLite file (or ":memory:"). Writes are queued and carried out in order by a thread of its own; the completion is called on that
/// thread and is meant to post to the owner loop: nothing that a write allows may happen before. Thread-safe.
class Journal {
 public:
  using Done = std::function<void(Status)>;
  /// Opens or creates the file, takes it for this process alone and begins a new term. FailedPrecondition, and no new term, when another
  /// driver holds it (asked for 2 s).
  static Result<std::unique_ptr<Journal>> open(const std::string& path);
  /// Carries out what is queued.
  ~Journal();

  Term term() const { return term_; }
  void record_job(JournalledJob job, Done done);
  void record_grant(const std::string& job, Generation generation, int64_t run_through, Done done);
  void record_state(const std::string& job, const std::string& state, Done done);
  /// All jobs ever journalled, oldest first; reads what was queued before the call.
  Result<std::vector<JournalledJob>> jobs();

 private:
  struct Write {
    std::string sql;
    std::vector<std::string> values;
    Done done;
  };
  explicit Journal(sqlite3* database) : database_(database) {}
  Status execute(const std::string& sql, const std::vector<std::string>& values);
  Status begin_term();
  void enqueue(Write write);
  void run();

  sqlite3* database_;
  Term term_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Write> queue_;
  bool closing_ = false, busy_ = false;
  std::thread thread_;
};

}  // namespace troupe::driver
