#pragma once

#include <chrono>
#include <mutex>
#include <optional>
#include <string>

#include "base/config/key_places.h"
#include "base/result.h"
#include "driver/run/peers.h"

/// What a person sees of a job: lines, and one progress line that is updated in place on a terminal and repeated every
/// few seconds elsewhere.
namespace troupe::cli {

/// Thread-safe.
class Console {
 public:
  /// `json`: everything for people goes to standard error; standard output is left to the answer.
  explicit Console(bool json);
  void line(const std::string& text);
  void progress(const std::string& text);
  /// A line of a job's life, or its progress; kEnd is left to the caller.
  void show(const driver::JobUpdate& update);
  /// Ends a progress line that stands open.
  void settle();

 private:
  void settle_locked();

  std::mutex mutex_;
  std::FILE* out_;
  bool terminal_;
  bool open_ = false;  // a progress line without its newline
  std::string held_;   // progress that was not printed
  std::chrono::steady_clock::time_point last_;
};

/// What the job was refused for, if it was.
std::optional<Error> refusal_in(const std::string& result_json);

/// The job's last words for people: outcome, first cause, files.
std::string summary_text(const std::string& result_json);

/// Says the end of a job: the summary, and with `as_json` the result on standard output; a refusal like every other,
/// with the places of its keys. Returns the exit code.
int say_end(Console& console, const driver::JobUpdate& end, bool as_json, const KeyPlaces& places);

}  // namespace troupe::cli
