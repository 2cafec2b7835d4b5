#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <set>

#include "cli/child_program.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/planning.h"

namespace troupe::cli {
namespace {

/// Runs a program to its end: its exit code, and what it wrote to standard error.
struct Answer {
  int exit_code = -1;
  std::string text;
};

Result<Answer> answer_of(std::vector<std::string> command) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return internal_error(std::string("pipe: ") + std::strerror(errno));
  const Result<pid_t> pid = start_program(std::move(command), ends[1]);
  ::close(ends[1]);
  Answer answer;
  std::array<char, 512> buffer;
  for (ssize_t n = 0; pid.ok() && (n = ::read(ends[0], buffer.data(), buffer.size())) > 0;)
    answer.text.append(buffer.data(), static_cast<size_t>(n));
  ::close(ends[0]);
  if (!pid.ok()) return pid.error();
  const int status = wait_for_program(*pid);
  if (WIFEXITED(status)) answer.exit_code = WEXITSTATUS(status);
  while (answer.text.ends_with('\n')) answer.text.pop_back();
  return answer;
}

}  // namespace

Status check_devices(const std::string& actor, const std::vector<driver::PlannedSlot>& slots) {
  std::set<std::string> asked{"cpu"};
  std::vector<std::string> command = {actor, "devices"};
  for (const driver::PlannedSlot& slot : slots)
    if (asked.insert(slot.device).second)
      command.push_back(slot.node + ":" + std::to_string(slot.index) + "=" + slot.device);
  if (command.size() == 2) return {};  // every actor program has a CPU
  TROUPE_ASSIGN(const Answer answer, answer_of(std::move(command)));
  return answer.exit_code == 0 ? Status() : invalid_argument("key 'device': " + answer.text);
}

int actor_command(const std::string& actor, const std::vector<std::string>& arguments) {
  const std::string program = actor_program(actor);
  std::vector<std::string> all{program};
  all.insert(all.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& argument : all) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  ::execv(program.c_str(), pointers.data());
  return report(not_found("cannot start " + program + ": " + std::strerror(errno)));
}

}  // namespace troupe::cli
