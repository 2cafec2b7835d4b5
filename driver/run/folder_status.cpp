#include "driver/run/folder_status.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace troupe::driver {
namespace fs = std::filesystem;
using nlohmann::json;
namespace {

std::string file_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The last training step that metrics.jsonl speaks of; its last line may be cut.
int64_t last_step(const std::string& folder) {
  constexpr std::streamoff kTailBytes = 1 << 16;  // some hundred lines
  std::ifstream file(folder + "/metrics.jsonl", std::ios::binary | std::ios::ate);
  if (!file) return 0;
  file.seekg(std::max<std::streamoff>(0, file.tellg() - std::streampos(kTailBytes)));
  int64_t step = 0;
  for (std::string line; std::getline(file, line);) {
    const json row = json::parse(line, nullptr, false);
    if (row.is_object() && row.contains("loss") && row.contains("step")) step = row.value("step", step);
  }
  return step;
}

/// A live run holds its folder's lock.
bool is_locked(const std::string& folder) {
  const int fd = ::open((folder + "/.lock").c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool locked = ::flock(fd, LOCK_SH | LOCK_NB) != 0;
  ::close(fd);
  return locked;
}

void take_event(const json& event, json& status) {
  const std::string kind = event.value("kind", "");
  status["last_event"] = event;
  if (event.contains("job")) status["job"] = event["job"];
  if (kind == "planned")  // hosts and steps may be those of a run before
    for (const char* key : {"hosts", "total_steps"}) status.erase(key);
  if (kind == "planned" && !event.contains("total_steps")) status.erase("step");  // a loop of one's own counts them
  for (const char* key : {"name", "total_steps"})
    if (kind == "planned" && event.contains(key)) status[key] = event[key];
  if (kind == "training_plan" && event.contains("steps")) status["total_steps"] = event["steps"];  // epochs, counted
  if (kind == "spawned") status["hosts"] = event.value("hosts", json::array());
  if (kind == "phase") status["phase"] = event.value("phase", "");
  if (kind != "host_exited" || !status.contains("hosts")) return;
  for (json& host : status["hosts"])
    if (host.value("pid", 0) == event.value("pid", -1) && host.value("node", "") == event.value("node", ""))
      host["phase"] = "exited";
}

}  // namespace

Result<json> folder_status(const std::string& folder) {
  std::error_code error;
  if (!fs::exists(folder + "/events.jsonl", error))
    return not_found(folder + " is no run folder: it has no events.jsonl");
  json status = {{"run_folder", fs::absolute(folder).lexically_normal().string()}, {"phase", "unknown"}};
  status["step"] = last_step(folder);
  std::istringstream events(file_text(folder + "/events.jsonl"));
  for (std::string line; std::getline(events, line);) {
    const json event = json::parse(line, nullptr, false);
    if (event.is_object()) take_event(event, status);
  }
  const json result = json::parse(file_text(folder + "/result.json"), nullptr, false);
  if (result.is_object()) {
    status["phase"] = "ended";
    status["result"] = result;
    if (result.contains("steps_done"))
      status["step"] = result["steps_done"];
    else
      status.erase("step");
    status["name"] = result.value("name", "");
  } else if (!is_locked(folder)) {
    status["phase"] = "lost";  // no driver and no result: it was killed
  }
  for (json& host : status["hosts"])
    if (host.value("phase", "") != "exited") host["phase"] = status["phase"];
  return status;
}

}  // namespace troupe::driver
