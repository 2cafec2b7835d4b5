#pragma once

#include <cstdint>

/// Host memory accounting: every tensor allocation on the CPU is counted for the actor that runs, so that activations can be told apart
/// by rank although colocated actors share a process.
namespace troupe {

/// Installs the counting allocator and keeps freed blocks in the process (large activations would else be mapped and faulted in anew
/// every step). Once, before any tensor exists.
void install_counting_allocator();

/// Allocations from now on belong to `owner` (0..63) until the next call. Owner thread only.
void count_allocations_for(int owner);
/// Live bytes of an owner now, and the most since the last call of reset_peak.
int64_t live_bytes(int owner);
int64_t peak_bytes(int owner);
void reset_peak(int owner);

/// Peak resident memory of this process in bytes.
int64_t peak_resident_bytes();

}  // namespace troupe
