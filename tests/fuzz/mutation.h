#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::fuzz {

/// Makes damaged inputs from sound ones; the same seed makes the same inputs.
class Mutator {
 public:
  Mutator(std::vector<std::string> seeds, uint64_t seed) : seeds_(std::move(seeds)), state_(seed) {}
  /// A sound input with one to some twenty faults: flipped bits, numbers that are odd, pieces left out, doubled, moved
  /// or taken from another input, an end that is cut off. At most 256 KiB.
  std::string next();

 private:
  uint64_t draw();
  size_t below(size_t count) { return count == 0 ? 0 : static_cast<size_t>(draw() % count); }
  void damage(std::string& bytes);
  void set_number(std::string& bytes);

  const std::vector<std::string> seeds_;
  uint64_t state_;
};

}  // namespace troupe::fuzz
