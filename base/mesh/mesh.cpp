#include "base/mesh/mesh.h"

#include "base/result.h"

namespace troupe {

const char* axis_name(Axis axis) {
  constexpr std::array<const char*, kAxisCount> kNames = {"dp", "pp", "cp", "sp", "tp"};
  return kNames[static_cast<size_t>(axis)];
}

std::string AxisSet::to_string() const {
  std::string text;
  for (int i = 0; i < kAxisCount; ++i) {
    const Axis axis = static_cast<Axis>(i);
    if (contains(axis)) text += (text.empty() ? "" : ".") + std::string(axis_name(axis));
  }
  return text.empty() ? "none" : text;
}

Mesh& Mesh::set(Axis axis, int size) {
  TROUPE_CHECK(size >= 1);
  sizes_[static_cast<size_t>(axis)] = size;
  return *this;
}

int Mesh::ranks() const {
  int product = 1;
  for (int s : sizes_) product *= s;
  return product;
}

int Mesh::size(AxisSet axes) const {
  int product = 1;
  for (int i = 0; i < kAxisCount; ++i)
    if (axes.contains(static_cast<Axis>(i))) product *= sizes_[static_cast<size_t>(i)];
  return product;
}

int Mesh::coordinate(int rank, Axis axis) const {
  TROUPE_CHECK(rank >= 0 && rank < ranks());
  int stride = 1;
  for (int i = kAxisCount - 1; i > static_cast<int>(axis); --i) stride *= sizes_[static_cast<size_t>(i)];
  return rank / stride % size(axis);
}

int Mesh::with(int rank, Axis axis, int coordinate_on_axis) const {
  TROUPE_CHECK(coordinate_on_axis >= 0 && coordinate_on_axis < size(axis));
  int stride = 1;
  for (int i = kAxisCount - 1; i > static_cast<int>(axis); --i) stride *= sizes_[static_cast<size_t>(i)];
  return rank + (coordinate_on_axis - coordinate(rank, axis)) * stride;
}

std::vector<int> Mesh::peers(int rank, AxisSet axes) const {
  std::vector<int> result = {rank};
  for (int i = 0; i < kAxisCount; ++i) {
    const Axis axis = static_cast<Axis>(i);
    if (!axes.contains(axis)) continue;
    std::vector<int> wider;
    for (int r : result)
      for (int c = 0; c < size(axis); ++c) wider.push_back(with(r, axis, c));
    result = std::move(wider);
  }
  return result;
}

int Mesh::index_among_peers(int rank, AxisSet axes) const {
  int index = 0;
  for (int i = 0; i < kAxisCount; ++i) {
    const Axis axis = static_cast<Axis>(i);
    if (axes.contains(axis)) index = index * size(axis) + coordinate(rank, axis);
  }
  return index;
}

std::string Mesh::to_string() const {
  std::string text;
  for (int i = 0; i < kAxisCount; ++i)
    if (sizes_[static_cast<size_t>(i)] > 1)
      text += (text.empty() ? "" : " ") + std::string(axis_name(static_cast<Axis>(i))) + "=" +
              std::to_string(sizes_[static_cast<size_t>(i)]);
  return text.empty() ? "1 rank" : text;
}

}  // namespace troupe
