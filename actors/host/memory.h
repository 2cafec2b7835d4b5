#pragma once

#include <cstdint>
#include <functional>

/// Memory accounting: what tensors take is counted for the actor that runs, so that activations can be told apart by
/// rank although colocated actors share a process. On CPUs every allocation is counted; a GPU's allocator is read
/// whenever the actor changes.
namespace troupe {

/// Installs the counting allocator and keeps freed blocks in the process (large activations would else be mapped and
/// faulted in anew every step). Once, before any tensor exists.
void install_counting_allocator();

/// A device allocator's state: bytes in use now, and the most in use and in its hands since the last reading.
struct MemoryReading {
  int64_t live = 0, peak = 0, reserved_peak = 0;
};
using MemoryMeter = std::function<MemoryReading()>;
/// From now on owners are charged with what `meter` shows while they run, not with host allocations. Empty: host
/// allocations again. Owner thread only, while nobody is counted for.
void charge_by_meter(MemoryMeter meter);

/// Allocations from now on belong to `owner` (0..63) until the next call. Owner thread only.
void count_allocations_for(int owner);
/// Allocations of a scope belong to `owner`, those behind it to nobody (0), however it is left. Owner thread only.
class AllocationOwner {
 public:
  explicit AllocationOwner(int owner) { count_allocations_for(owner); }
  ~AllocationOwner() { count_allocations_for(0); }
  AllocationOwner(const AllocationOwner&) = delete;
  AllocationOwner& operator=(const AllocationOwner&) = delete;
};
/// Live bytes of an owner, and the most since the last call of reset_peak; read while another owner is counted for.
int64_t live_bytes(int owner);
int64_t peak_bytes(int owner);
void reset_peak(int owner);

/// Peak resident memory of this process in bytes.
int64_t peak_resident_bytes();
/// Peak memory of the device that owners are charged on: what its allocator took, or this process's peak resident
/// memory.
int64_t peak_device_bytes();

}  // namespace troupe
