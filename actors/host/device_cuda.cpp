#include <ATen/Context.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>

#include <charconv>
#include <string_view>

#include "actors/host/device.h"

namespace troupe {
namespace {

constexpr std::string_view kPrefix = "cuda:";
constexpr auto kAllBlocks = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);

/// The number behind "cuda:"; -1 when it is none.
int device_number(std::string_view text) {
  int number = -1;
  if (!text.starts_with(kPrefix)) return -1;
  text.remove_prefix(kPrefix.size());
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? number : -1;
}

}  // namespace

Result<at::Device> open_device(const SlotInfo& slot) {
  if (slot.device == "cpu") return at::Device(at::kCPU);
  const std::string name = "slot " + slot.node + ":" + std::to_string(slot.index) + " is device '" + slot.device + "'";
  const int number = device_number(slot.device), devices = static_cast<int>(c10::cuda::device_count());
  if (number < 0) return invalid_argument(name + "; valid: cpu, cuda:0, cuda:1, ...");
  if (number >= devices)
    return invalid_argument(name + ", but CUDA finds " + std::to_string(devices) +
                            " devices here (nvidia-smi shows what the driver sees)");
  try {
    at::globalContext().lazyInitDevice(c10::DeviceType::CUDA);
    const at::Device device(at::kCUDA, static_cast<c10::DeviceIndex>(number));
    c10::cuda::set_device(device.index());
    return device;
  } catch (const std::exception& e) {
    return make_error(ErrorCode::kFailedPrecondition, name + ", which cannot be opened: " + e.what());
  }
}

Result<std::unique_ptr<World>> create_group_world(WorldOptions options, at::Device device, KvStore& store) {
  if (options.mesh.ranks() == 1) return create_solo_world();
  if (device.is_cpu()) return create_gloo_world(options, store);
  options.device_index = device.index();
  return create_nccl_world(options, store);
}

void synchronise(at::Device device) {
  if (device.is_cpu()) return;
  c10::cuda::set_device(device.index());
  c10::cuda::device_synchronize();
}

MemoryMeter memory_meter(at::Device device) {
  if (device.is_cpu()) return {};
  return [index = device.index()] {
    const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(index);
    c10::cuda::CUDACachingAllocator::resetPeakStats(index);
    return MemoryReading{stats.allocated_bytes[kAllBlocks].current, stats.allocated_bytes[kAllBlocks].peak,
                         stats.reserved_bytes[kAllBlocks].peak};
  };
}

}  // namespace troupe
