#include "actors/data/seen_grids.h"

namespace troupe {

std::optional<SeenGrids::Seen> SeenGrids::find(int source, const std::string& path) {
  const std::string name = name_of(source, path);
  Part& part = part_of(name);
  const std::lock_guard lock(part.mutex);
  const auto at = part.seen.find(name);
  return at == part.seen.end() ? std::nullopt : std::optional<Seen>(at->second);
}

void SeenGrids::put(int source, const std::string& path, const Seen& seen) {
  const std::string name = name_of(source, path);
  Part& part = part_of(name);
  const std::lock_guard lock(part.mutex);
  if (part.seen.size() >= kMostOfPart) part.seen.clear();
  part.seen.insert_or_assign(name, seen);
}

}  // namespace troupe
