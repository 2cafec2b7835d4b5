#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

/// A group's mesh: how the ranks 0..size-1 factor into axes. Ranks are numbered with dp slowest and tp fastest:
/// rank = ((((dp * |pp|) + pp) * |cp| + cp) * |sp| + sp) * |tp| + tp. Pure arithmetic.
namespace troupe {

enum class Axis : uint8_t { kDp, kPp, kCp, kSp, kTp };
inline constexpr int kAxisCount = 5;
const char* axis_name(Axis axis);

/// A set of axes, as a bit mask; the key of a communicator together with the view.
struct AxisSet {
  uint8_t bits = 0;
  constexpr AxisSet() = default;
  constexpr AxisSet(std::initializer_list<Axis> axes) {
    for (Axis a : axes) bits |= static_cast<uint8_t>(1u << static_cast<unsigned>(a));
  }
  constexpr bool contains(Axis a) const { return bits & (1u << static_cast<unsigned>(a)); }
  bool operator==(const AxisSet&) const = default;
  auto operator<=>(const AxisSet&) const = default;
  /// "dp.sp", axes slowest first; "none" when empty.
  std::string to_string() const;
};

class Mesh {
 public:
  Mesh() { sizes_.fill(1); }
  Mesh& set(Axis axis, int size);
  int size(Axis axis) const { return sizes_[static_cast<size_t>(axis)]; }
  /// Number of ranks.
  int ranks() const;
  /// Product of the sizes of `axes`.
  int size(AxisSet axes) const;
  /// The coordinate of `rank` along `axis`.
  int coordinate(int rank, Axis axis) const;
  /// The rank at the coordinates of `rank`, with `axis` replaced by `coordinate`.
  int with(int rank, Axis axis, int coordinate) const;
  /// The ranks that share all coordinates with `rank` except along `axes`, ascending; the communicator over `axes` of
  /// `rank`.
  std::vector<int> peers(int rank, AxisSet axes) const;
  /// Position of `rank` in peers(rank, axes).
  int index_among_peers(int rank, AxisSet axes) const;
  /// "dp=2 sp=4", axes of size 1 left out; "1 rank" when all are 1.
  std::string to_string() const;
  bool operator==(const Mesh&) const = default;

 private:
  std::array<int, kAxisCount> sizes_{};
};

/// Cuts n items into `parts` contiguous pieces whose sizes differ by at most one: piece i is [cut_begin(i), cut_begin(i
/// + 1)).
constexpr int64_t cut_begin(int64_t n, int64_t parts, int64_t i) {
  return n / parts * i + (n % parts < i ? n % parts : i);
}

}  // namespace troupe
