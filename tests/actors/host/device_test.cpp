#include "actors/host/device.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <utility>

#include "base/rendezvous/memory_kv_store.h"

using namespace troupe;

namespace {

SlotInfo slot_of(const std::string& device) {
  SlotInfo slot;
  slot.node = "a";
  slot.index = 3;
  slot.device = device;
  return slot;
}

/// Lets a test play the allocator of a device.
struct FakeDevice {
  MemoryReading now;
  int64_t peak = 0;
  void allocate(int64_t bytes) {
    now.live += bytes;
    peak = std::max(peak, now.live);
    now.reserved_peak = std::max(now.reserved_peak, now.live);
  }
  MemoryMeter meter() {
    return [this] {
      MemoryReading reading = now;
      reading.peak = std::exchange(peak, now.live);
      return reading;
    };
  }
};

}  // namespace

TEST_CASE("every build has CPU slots") {
  const auto device = open_device(slot_of("cpu"));
  REQUIRE(device.ok());
  CHECK(device->is_cpu());
  CHECK_FALSE(memory_meter(*device));
}

TEST_CASE("a device that is not there is refused with the slot's name") {
  for (const char* absent : {"cuda:999", "cuda:x", "tpu"}) {
    const auto device = open_device(slot_of(absent));
    REQUIRE_FALSE(device.ok());
    CHECK(device.error().code == ErrorCode::kInvalidArgument);
    CHECK(device.error().message.find(std::string("slot a:3 is device '") + absent + "'") == 0);
  }
}

TEST_CASE("a group of one rank meets nobody") {
  MemoryKvStore store;
  WorldOptions options;
  options.name = "job/g1/text";
  const auto world = create_group_world(options, at::kCPU, store);
  REQUIRE(world.ok());
  CHECK((*world)->over({Axis::kTp}).size() == 1);
}

TEST_CASE("a metered device's memory is charged to the owner that ran") {
  FakeDevice device;
  device.allocate(1000);  // before anything is counted
  charge_by_meter(device.meter());
  count_allocations_for(1);
  device.allocate(50);
  device.allocate(-20);
  count_allocations_for(2);
  device.allocate(700);
  device.allocate(-690);
  count_allocations_for(1);
  device.allocate(5);
  count_allocations_for(0);
  CHECK(live_bytes(1) == 35);
  CHECK(peak_bytes(1) == 50);
  CHECK(live_bytes(2) == 10);
  CHECK(peak_bytes(2) == 700);
  CHECK(peak_device_bytes() == 1730);
  reset_peak(1);
  CHECK(peak_bytes(1) == 35);
  charge_by_meter({});
  CHECK(peak_device_bytes() > 1730);  // the process's own again
}
