#include "cli/console.h"

#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/printable_text.h"
#include "cli/exit_codes.h"

namespace troupe::cli {
namespace {
constexpr std::chrono::seconds kBetweenLines{3};
}

Console::Console(bool json) : out_(json ? stderr : stdout), terminal_(::isatty(::fileno(out_)) == 1) {}

void Console::settle_locked() {
  if (open_) std::fputc('\n', out_);
  open_ = false;
  if (!held_.empty()) std::fprintf(out_, "%s\n", held_.c_str());
  held_.clear();
  std::fflush(out_);
}

void Console::settle() {
  std::lock_guard lock(mutex_);
  settle_locked();
}

void Console::line(const std::string& text) {
  std::lock_guard lock(mutex_);
  settle_locked();
  std::fprintf(out_, "%s\n", printable(text, /*keep_lines=*/true).c_str());
  std::fflush(out_);
}

void Console::progress(const std::string& text) {
  std::lock_guard lock(mutex_);
  if (terminal_) {
    std::fprintf(out_, "\r%s\x1b[K", text.c_str());
    std::fflush(out_);
    open_ = true;
    return;
  }
  const auto now = std::chrono::steady_clock::now();
  if (now - last_ < kBetweenLines) {
    held_ = text;
    return;
  }
  held_.clear();
  last_ = now;
  std::fprintf(out_, "%s\n", text.c_str());
  std::fflush(out_);
}

void Console::show(const driver::JobUpdate& update) {
  if (update.kind == driver::JobUpdate::Kind::kLine) line(update.text);
  if (update.kind == driver::JobUpdate::Kind::kProgress) progress(update.text);
}

int say_end(Console& console, const driver::JobUpdate& end, bool as_json, const KeyPlaces& places) {
  if (const auto refusal = refusal_in(end.result_json)) return report(places.located(*refusal), as_json);
  console.line(summary_text(end.result_json));
  if (as_json) std::printf("%s\n", end.result_json.c_str());
  return end.exit_code;
}

std::optional<Error> refusal_in(const std::string& result_json) {
  const auto result = nlohmann::json::parse(result_json, nullptr, false);
  if (!result.is_object() || result.value("outcome", "") != "refused") return std::nullopt;
  const auto cause = result.value("cause", nlohmann::json::object());
  return invalid_argument(cause.value("message", "the job was refused"));
}

std::string summary_text(const std::string& result_json) {
  const auto result = nlohmann::json::parse(result_json, nullptr, false);
  if (!result.is_object()) return "the job ended";
  const std::string outcome = result.value("outcome", "failed");
  const std::string folder = result.value("run_folder", "");
  std::string text = "job " + outcome;
  if (result.contains("steps_done")) text += " after " + figure_text(result["steps_done"]) + " steps";
  if (result.contains("last_loss")) text += ", loss " + figure_text(result["last_loss"]);
  const auto cause = result.value("cause", nlohmann::json::object());
  if (cause.contains("message"))
    text += "\n  cause (" + cause.value("kind", "") + "): " + cause["message"].get<std::string>();
  std::error_code error;
  if (!std::filesystem::exists(folder + "/result.json", error)) return text;
  text += "\n  run folder  " + folder;
  for (const auto& [label, name] : {std::pair{"metrics", "metrics.jsonl"},
                                    {"events", "events.jsonl"},
                                    {"result", "result.json"},
                                    {"logs", "logs"},
                                    {"checkpoints", "checkpoints"},
                                    {"export", "export"}})
    if (std::filesystem::exists(folder + "/" + name, error))
      text += std::string("\n  ") + label + std::string(12 - std::string(label).size(), ' ') + folder + "/" + name;
  return text;
}

}  // namespace troupe::cli
