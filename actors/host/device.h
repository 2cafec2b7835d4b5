#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "actors/host/control.h"
#include "actors/host/memory.h"
#include "transport/world/world.h"

/// What an actor host needs from the kind of device of its slot. device_cpu.cpp serves builds without CUDA,
/// device_cuda.cpp those with it (CPU slots included); the build takes one of the two.
namespace troupe {

/// The device that a slot names ("cpu", "cuda:3"), made current for the calling thread. InvalidArgument when this build
/// or this machine does not have it, and says which of the two.
Result<at::Device> open_device(const SlotInfo& slot);

/// A group's world on that device: NCCL on GPUs, Gloo on CPUs, nothing at all for a group of one rank. `store` outlives
/// it.
Result<std::unique_ptr<World>> create_group_world(WorldOptions options, at::Device device, KvStore& store);

/// Blocks until the device has done all that was asked of it (nothing to wait for on CPUs).
void synchronise(at::Device device);

/// Reads the device's allocator, for memory.h; empty on CPUs, whose allocations are counted one by one.
MemoryMeter memory_meter(at::Device device);

}  // namespace troupe
