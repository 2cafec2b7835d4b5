#pragma once

#include <parquet/schema.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"

namespace troupe {

/// What the values of a column become.
enum class LeafKind { kBool, kSigned, kUnsigned, kReal, kText, kBytes };

struct RowLeaf {
  int column = 0;  // in the file's schema
  LeafKind kind = LeafKind::kText;
  std::string name;  // "messages.content"
};

/// How a row's values stand in each other, with the levels of the Dremel encoding that tell null, empty and present
/// apart (Source: Melnik et al., "Dremel: Interactive Analysis of Web-Scale Datasets", 2010, section 4).
struct RowShape {
  enum class Kind { kValue, kObject, kList } kind = Kind::kObject;
  std::string name;                     // the key in the object above; empty for a list's element
  int16_t present = 0;                  // the least definition level at which it is not null
  int16_t filled = 0, repetition = 0;   // kList: the least definition level of an element, and its repetition level
  std::vector<RowShape> below;          // kObject: the fields; kList: the element
  size_t first_leaf = 0, end_leaf = 0;  // the leaves in it, which are neighbours
};

struct RowShapes {
  RowShape row;
  std::vector<RowLeaf> leaves;
};

/// The columns that are read, as open_parquet says. InvalidArgument with the reason.
Result<RowShapes> shapes_of(const parquet::SchemaDescriptor& schema, const std::set<std::string>& names);

}  // namespace troupe
