#include "actors/rpc/host_log.h"

#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdio>
#include <mutex>

#include "base/config/job_spec_parser.h"
#include "base/log/log_tag.h"

namespace troupe {
namespace {

std::string time_of_day() {
  const auto now = std::chrono::system_clock::now();
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 86400000;
  char text[48];
  std::snprintf(text, sizeof(text), "%02d:%02d:%02d.%03d", static_cast<int>(ms / 3600000),
                static_cast<int>(ms / 60000 % 60), static_cast<int>(ms / 1000 % 60), static_cast<int>(ms % 1000));
  return text;
}

class CallingSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit CallingSink(std::function<void(const std::string&)> call) : call_(std::move(call)) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    call_(std::string(message.payload.data(), message.payload.size()));
  }
  void flush_() override {}
  std::function<void(const std::string&)> call_;
};

}  // namespace

std::vector<std::pair<std::string, int>> actors_of(const HostAssignment& assignment) {
  const auto spec = parse_job_spec(assignment.job_yaml, assignment.run_folder + "/job.yaml");
  std::vector<std::pair<std::string, int>> actors;
  for (size_t g = 0; g < assignment.group_slots.size(); ++g) {
    const bool named = spec.ok() && g < spec->groups.size();
    const std::string name = named ? spec->groups[g].name : std::to_string(g);
    for (size_t r = 0; r < assignment.group_slots[g].size(); ++r)
      if (assignment.group_slots[g][r] == assignment.self.value) actors.emplace_back(name, static_cast<int>(r));
  }
  return actors;
}

HostLog::HostLog(const HostAssignment& assignment) {
  for (const auto& [group, rank] : actors_of(assignment)) tags_.push_back(log_tag(group, rank));
  if (tags_.empty()) tags_.emplace_back();
}

void HostLog::line(const std::string& text) const {
  std::string one_line = time_of_day() + " " + text + "\n";
  std::replace(one_line.begin(), one_line.end() - 1, '\n', ' ');
  std::string lines;
  for (const std::string& tag : tags_) lines += tag + one_line;
  std::fwrite(lines.data(), 1, lines.size(), stderr);
}

struct WarningTap::Before {
  std::shared_ptr<spdlog::logger> logger;
};

WarningTap::WarningTap(std::function<void(const std::string&)> warned) : before_(new Before{spdlog::default_logger()}) {
  auto logger = std::make_shared<spdlog::logger>("", std::make_shared<CallingSink>(std::move(warned)));
  logger->set_level(spdlog::level::warn);
  spdlog::set_default_logger(std::move(logger));
}

WarningTap::~WarningTap() { spdlog::set_default_logger(before_->logger); }

}  // namespace troupe
