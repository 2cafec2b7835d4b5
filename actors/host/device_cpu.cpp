#include "actors/host/device.h"

namespace troupe {

Result<at::Device> open_device(const SlotInfo& slot) {
  if (slot.device == "cpu") return at::Device(at::kCPU);
  return invalid_argument(
      "slot " + slot.node + ":" + std::to_string(slot.index) + " is device '" + slot.device +
      "', but this troupe-actor was built without CUDA; valid: device: cpu, or a build by `cmake --preset cuda`");
}

Result<std::unique_ptr<World>> create_group_world(WorldOptions options, at::Device, KvStore& store) {
  if (options.mesh.ranks() == 1) return create_solo_world();
  return create_gloo_world(options, store);
}

void synchronise(at::Device) {}

MemoryMeter memory_meter(at::Device) { return {}; }

}  // namespace troupe
