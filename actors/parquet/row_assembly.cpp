#include "actors/parquet/row_assembly.h"

namespace troupe {
namespace {

using Json = nlohmann::json;

class Assembly {
 public:
  Assembly(const RowShapes& shapes, std::vector<LeafRow>& leaves)
      : shapes_(shapes), leaves_(leaves), places_(leaves.size()) {}

  std::optional<Json> run() {
    Json row = object(shapes_.row);
    for (size_t i = 0; i < leaves_.size(); ++i)
      sound_ =
          sound_ && places_[i].pair == leaves_[i].definitions.size() && places_[i].value == leaves_[i].values.size();
    if (!sound_) return std::nullopt;
    return row.is_null() ? Json::object() : row;
  }

 private:
  /// How far a leaf was used up.
  struct Place {
    size_t pair = 0, value = 0;
  };

  /// The levels where a shape begins are alike in all leaves below it; its first tells.
  bool has_pair(const RowShape& shape) const {
    return places_[shape.first_leaf].pair < leaves_[shape.first_leaf].definitions.size();
  }
  int16_t definition(const RowShape& shape) const {
    return leaves_[shape.first_leaf].definitions[places_[shape.first_leaf].pair];
  }

  /// Null or empty: one pair of levels in each leaf says so.
  void pass(const RowShape& shape) {
    for (size_t i = shape.first_leaf; i < shape.end_leaf; ++i) {
      sound_ = sound_ && places_[i].pair < leaves_[i].definitions.size();
      ++places_[i].pair;
    }
  }

  Json build(const RowShape& shape) {
    if (!sound_ || !has_pair(shape)) {
      sound_ = false;
      return {};
    }
    if (definition(shape) < shape.present) {
      pass(shape);
      return {};
    }
    switch (shape.kind) {
      case RowShape::Kind::kValue:
        return value(shape.first_leaf);
      case RowShape::Kind::kObject:
        return object(shape);
      case RowShape::Kind::kList:
        return list(shape);
    }
    return {};
  }

  Json value(size_t leaf) {
    Place& place = places_[leaf];
    ++place.pair;
    if (place.value < leaves_[leaf].values.size()) return std::move(leaves_[leaf].values[place.value++]);
    sound_ = false;
    return {};
  }

  Json object(const RowShape& shape) {
    Json out;
    for (const auto& below : shape.below)
      if (Json held = build(below); !held.is_null()) out[below.name] = std::move(held);
    return out;
  }

  Json list(const RowShape& shape) {
    Json out = Json::array();
    if (definition(shape) < shape.filled) {
      pass(shape);
      return out;
    }
    const LeafRow& first = leaves_[shape.first_leaf];
    const Place& place = places_[shape.first_leaf];
    do {
      out.push_back(build(shape.below[0]));
    } while (sound_ && place.pair < first.repetitions.size() && first.repetitions[place.pair] == shape.repetition);
    return out;
  }

  const RowShapes& shapes_;
  std::vector<LeafRow>& leaves_;
  std::vector<Place> places_;
  bool sound_ = true;
};

}  // namespace

std::optional<nlohmann::json> assemble_row(const RowShapes& shapes, std::vector<LeafRow>& leaves) {
  return Assembly(shapes, leaves).run();
}

}  // namespace troupe
