#pragma once

#include <compare>
#include <cstdint>
#include <functional>

/// Strong integer types for the identities that must not be mixed up. `value` is the number; comparison and hashing
/// work.
namespace troupe {

template <typename Tag, typename T = int32_t>
struct StrongId {
  T value{};
  constexpr StrongId() = default;
  constexpr explicit StrongId(T v) : value(v) {}
  auto operator<=>(const StrongId&) const = default;
};

using Rank = StrongId<struct RankTag>;                        // position of an actor in its group
using GroupId = StrongId<struct GroupTag>;                    // position of a group in the job spec
using SlotId = StrongId<struct SlotTag>;                      // position of a slot in the job's list of slots
using Step = StrongId<struct StepTag, int64_t>;               // optimizer steps; the first is 1
using Unit = StrongId<struct UnitTag>;                        // a group's unit within a step, from 0
using Generation = StrongId<struct GenerationTag, uint32_t>;  // a job's count of rebuilds; the first is 1
using Term = StrongId<struct TermTag, uint64_t>;              // a driver's incarnation; the first is 1

}  // namespace troupe

template <typename Tag, typename T>
struct std::hash<troupe::StrongId<Tag, T>> {
  size_t operator()(const troupe::StrongId<Tag, T>& id) const noexcept { return std::hash<T>()(id.value); }
};
