#pragma once

#include <string>
#include <vector>

namespace troupe::fuzz {

/// A reader, and sound inputs of it. `read` may refuse whatever it likes; it must not crash, hang or use memory without
/// bound.
struct Target {
  const char* name;
  std::vector<std::string> (*seeds)();
  void (*read)(const std::string& bytes);
};

const std::vector<Target>& targets();
/// Makes the folder that readers of files use; it goes away with the process that made it.
void make_scratch();

}  // namespace troupe::fuzz
