#pragma once

#include <cstdint>
#include <string>

namespace troupe::testing {

/// Four processes exchange numbered rows over one kind of channel with random delays and in random orders; one of them
/// is killed or stopped at a random point, also inside a 64 MiB message. Returns what went wrong, empty when nothing
/// did: a wait that hangs, a wrong row, a survivor that dies, an error that does not name the lost peer.
std::string chaos_round(uint64_t seed, int* losses = nullptr);

/// The same for a process that dies or stops while they all connect. `losses`: added to for each survivor that lost
/// one.
std::string chaos_of_connecting(uint64_t seed, int* losses);

}  // namespace troupe::testing
