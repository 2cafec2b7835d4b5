#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/planning.h"

namespace troupe::cli {

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
