#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "actors/parquet/leaf_reader.h"
#include "actors/parquet/row_shape.h"

namespace troupe {

/// One row's object out of what its leaves hold; a struct of nothing but nulls counts as null, and what is null is left
/// out of objects. The values are moved out of `leaves`. Nothing: the leaves contradict each other. Pure.
std::optional<nlohmann::json> assemble_row(const RowShapes& shapes, std::vector<LeafRow>& leaves);

}  // namespace troupe
