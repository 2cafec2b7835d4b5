#include "driver/run/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/checkpoint/checkpoint_folder.h"

namespace troupe::driver {
namespace fs = std::filesystem;
namespace {

std::string utc_now() {
  const auto now = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  const auto milliseconds =
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[40];
  const size_t length = std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(text + length, sizeof(text) - length, ".%03dZ", static_cast<int>(milliseconds));
  return text;
}

constexpr off_t kReserveBytes =
    256 << 10;  // the last event and result.json, which carries a cause and what hosts reported

std::string reserve_file(const std::string& folder) { return folder + "/.reserve"; }

Status take_reserve(const std::string& folder) {
  const std::string path = reserve_file(folder);
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  const int reason = fd < 0 ? errno : ::posix_fallocate(fd, 0, kReserveBytes);
  if (fd >= 0) ::close(fd);
  if (reason == 0) return {};
  std::error_code ignored;
  fs::remove(path, ignored);
  return make_error(ErrorCode::kResourceExhausted, "run folder " + folder + ": no room for " +
                                                       std::to_string(kReserveBytes >> 10) +
                                                       " KiB to write down how the run ends: " + std::strerror(reason));
}

/// Leaves a folder that was not there, or was empty, as it was.
void remove_made(const std::string& folder, bool with_folder) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) fs::remove_all(entry.path(), ignored);
  if (!with_folder) return;
  fs::remove(folder, ignored);
  const fs::path parent = fs::path(folder).parent_path();
  if (parent.filename() == "runs") fs::remove(parent, ignored);  // only when it is empty
}

Status write_file(const std::string& path, const std::string& text) {
  const std::string temporary = path + ".tmp";
  {
    std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
    file << text;
    file.flush();
    const int reason = errno;
    std::error_code ignored;
    if (!file) fs::remove(temporary, ignored);
    if (!file) return make_error(ErrorCode::kResourceExhausted, "cannot write " + path + ": " + std::strerror(reason));
  }
  std::error_code error;
  fs::rename(temporary, path, error);
  if (error) return make_error(ErrorCode::kResourceExhausted, "cannot write " + path + ": " + error.message());
  return {};
}

}  // namespace

Result<std::unique_ptr<RunFolder>> RunFolder::open(const std::string& path, bool resume) {
  std::error_code error;
  const bool existed = fs::exists(path, error);
  if (existed && !fs::is_directory(path, error)) return invalid_argument("run folder " + path + " is a file");
  if (!existed && fs::is_symlink(path, error))
    return invalid_argument("run folder " + path + " is a link to " + fs::read_symlink(path, error).string() +
                            ", which is not there");
  const bool empty = !existed || fs::is_empty(path, error);
  // A folder that is no run's is somebody's: its files are not to be mixed with a run's, or replaced by them.
  if (!empty && resume && !fs::exists(path + "/events.jsonl") && !fs::exists(path + "/.lock"))
    return make_error(ErrorCode::kFailedPrecondition,
                      "run folder " + path +
                          " holds files but no run (no events.jsonl); valid: a run folder, or one that is "
                          "empty or not there");
  // Looked at before the lock, so that a refusal leaves the folder as it was.
  if (!empty && !resume && !fs::exists(path + "/.lock"))
    return make_error(ErrorCode::kFailedPrecondition,
                      "run folder " + path + " exists already; --resume auto continues it, --run-dir names another");
  fs::create_directories(path + "/logs", error);
  if (!error) fs::create_directories(path + "/index", error);
  if (error)
    return make_error(ErrorCode::kFailedPrecondition, "run folder " + path + " cannot be created: " + error.message());
  const int lock = ::open((path + "/.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (lock < 0)
    return make_error(ErrorCode::kFailedPrecondition,
                      "run folder " + path + " cannot be locked: " + std::strerror(errno));
  if (::flock(lock, LOCK_EX | LOCK_NB) != 0) {
    ::close(lock);
    return make_error(ErrorCode::kFailedPrecondition, "run folder " + path + " is in use by a running job");
  }
  if (!empty && !resume) {
    ::close(lock);
    return make_error(ErrorCode::kFailedPrecondition,
                      "run folder " + path + " exists already; --resume auto continues it, --run-dir names another");
  }
  Status taken = take_reserve(path);
  if (!taken.ok() && !empty) {
    // What an unfinished save or export of before left may be all that fills the disk.
    static_cast<void>(discard_unfinished(path));
    taken = take_reserve(path);
  }
  if (!taken.ok()) {
    if (empty) remove_made(path, !existed);
    ::close(lock);
    return taken.error();
  }
  return std::unique_ptr<RunFolder>(new RunFolder(path, lock, empty, !existed));
}

RunFolder::RunFolder(std::string path, int lock, bool fresh, bool created)
    : path_(std::move(path)),
      lock_(lock),
      fresh_(fresh),
      created_(created),
      metrics_(path_ + "/metrics.jsonl"),
      events_(path_ + "/events.jsonl") {
  std::error_code error;
  fs::remove(path_ + "/result.json", error);  // of the run that is being continued
}

RunFolder::~RunFolder() {
  std::error_code ignored;
  fs::remove(reserve_file(path_), ignored);
  if (!discarded_) write_driver_address("");
  ::close(lock_);
}

Status RunFolder::write_job(const std::string& yaml) { return write_file(path_ + "/job.yaml", yaml); }

Status RunFolder::make_room_for_end() {
  std::error_code ignored;
  fs::remove(reserve_file(path_), ignored);
  static_cast<void>(discard_unfinished(path_));
  const Status metrics = metrics_.flush(), events = events_.flush();
  return metrics.ok() ? events : metrics;
}

Status RunFolder::append_metrics(const std::string& lines) { return metrics_.append(lines); }

void RunFolder::append_event(const std::string& kind, uint32_t generation, const nlohmann::json& details) {
  nlohmann::ordered_json line = {{"time", utc_now()}, {"kind", kind}, {"generation", generation}};
  if (details.is_object())
    for (const auto& [key, value] : details.items()) line[key] = value;
  static_cast<void>(events_.append(line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n'));
}

Status RunFolder::write_result(const nlohmann::json& result) {
  return write_file(path_ + "/result.json",
                    result.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

std::string RunFolder::log_path(const std::string& node, int slot) const {
  return path_ + "/logs/" + node + "-" + std::to_string(slot) + ".log";
}

void RunFolder::write_driver_address(const std::string& address) {
  const std::string file = path_ + "/.driver";
  std::error_code error;
  if (address.empty())
    fs::remove(file, error);
  else
    static_cast<void>(write_file(file, address + "\n"));
}

void RunFolder::discard() {
  discarded_ = true;
  if (fresh_) remove_made(path_, created_);
}

LatestCheckpoint latest_checkpoint_in(const std::string& run_folder) {
  LatestCheckpoint latest;
  if (const Result<std::string> found = latest_checkpoint(run_folder)) {
    latest.path = *found;
    if (const auto manifest = read_checkpoint(latest.path, /*verify=*/false)) latest.step = manifest->step;
  }
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(run_folder + "/checkpoints", error)) {
    const std::string name = entry.path().filename();
    if (name.rfind("step-", 0) != 0 || (!latest.path.empty() && name <= fs::path(latest.path).filename().string()))
      continue;
    const auto manifest = read_checkpoint(entry.path(), /*verify=*/false);
    if (!manifest) latest.passed_over.push_back(manifest.error().to_string());
  }
  return latest;
}

}  // namespace troupe::driver
