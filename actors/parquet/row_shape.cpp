#include "actors/parquet/row_shape.h"

#include <parquet/types.h>

#include <optional>

#include "base/printable_text.h"

namespace troupe {
namespace {

using parquet::LogicalType;
using parquet::schema::GroupNode;
using parquet::schema::Node;
using parquet::schema::PrimitiveNode;
using MaybeShape = Result<std::optional<RowShape>>;

constexpr int kMostLevels = 64;

std::optional<LeafKind> kind_of(const PrimitiveNode& node) {
  const auto physical = node.physical_type();
  const bool whole = physical == parquet::Type::INT32 || physical == parquet::Type::INT64;
  const bool bytes = physical == parquet::Type::BYTE_ARRAY;
  switch (node.logical_type()->type()) {
    case LogicalType::Type::STRING:
    case LogicalType::Type::ENUM:
    case LogicalType::Type::JSON:
      return bytes ? std::optional(LeafKind::kText) : std::nullopt;
    case LogicalType::Type::INT: {
      const bool is_signed = static_cast<const parquet::IntLogicalType&>(*node.logical_type()).is_signed();
      return whole ? std::optional(is_signed ? LeafKind::kSigned : LeafKind::kUnsigned) : std::nullopt;
    }
    case LogicalType::Type::NIL:
    case LogicalType::Type::NONE:
      if (physical == parquet::Type::BOOLEAN) return LeafKind::kBool;
      if (physical == parquet::Type::FLOAT || physical == parquet::Type::DOUBLE) return LeafKind::kReal;
      if (whole) return LeafKind::kSigned;
      return bytes ? std::optional(LeafKind::kBytes) : std::nullopt;
    default:
      return std::nullopt;
  }
}

bool has_annotation(const Node& node, LogicalType::Type::type type) { return node.logical_type()->type() == type; }

std::string type_name(const Node& node) {
  const auto& logical = *node.logical_type();
  const std::string annotation = logical.is_none() || !logical.is_valid() ? "" : logical.ToString();
  if (node.is_group()) return annotation.empty() ? "group" : annotation;
  const std::string physical = parquet::TypeToString(static_cast<const PrimitiveNode&>(node).physical_type());
  return annotation.empty() ? physical : annotation + " in " + physical;
}

class ShapeBuilder {
 public:
  ShapeBuilder(const parquet::SchemaDescriptor& schema, const std::set<std::string>& names)
      : schema_(schema), names_(names) {}

  Result<RowShapes> run() {
    const GroupNode& root = *schema_.group_node();
    shapes_.row.kind = RowShape::Kind::kObject;
    for (int i = 0; i < root.field_count(); ++i) {
      const std::string& name = root.field(i)->name();
      const size_t leaves = shapes_.leaves.size();
      TROUPE_ASSIGN(auto shape, field(*root.field(i), {}));
      if (!shape) continue;
      if (names_.contains(name) || has_text(leaves))
        TROUPE_RETURN_IF_ERROR(add(std::move(*shape), shapes_.row, name));
      else
        shapes_.leaves.resize(leaves);  // numbers under a key that is not looked at
    }
    shapes_.row.end_leaf = shapes_.leaves.size();
    return std::move(shapes_);
  }

 private:
  /// Where a node stands.
  struct Above {
    std::string path;
    bool named = true;  // all keys down to here are such as a record is read from
    int16_t definition = 0, repetition = 0;
    int depth = 0;
  };

  bool has_text(size_t first_leaf) const {
    for (size_t i = first_leaf; i < shapes_.leaves.size(); ++i)
      if (shapes_.leaves[i].kind == LeafKind::kText || shapes_.leaves[i].kind == LeafKind::kBytes) return true;
    return false;
  }

  static Status add(RowShape shape, RowShape& object, const std::string& name) {
    for (const auto& other : object.below)
      if (other.name == name)
        return invalid_argument("has two columns or fields '" + printable(name, false) + "' in one place");
    shape.name = name;
    object.below.push_back(std::move(shape));
    return {};
  }

  /// A column or a field; nothing: it is left out.
  MaybeShape field(const Node& node, Above above) {
    above.path += (above.path.empty() ? "" : ".") + node.name();
    above.named = above.named && names_.contains(node.name());
    return child(node, std::move(above));
  }

  MaybeShape child(const Node& node, Above at) {
    if (++at.depth > kMostLevels) return invalid_argument("has columns that are nested more than 64 levels deep");
    if (node.is_repeated()) return list(node, at, at.definition);
    if (node.is_optional()) ++at.definition;
    return content(node, at);
  }

  /// What a node holds, its own repetition being counted in `at`.
  MaybeShape content(const Node& node, const Above& at) {
    if (node.is_primitive()) return leaf(static_cast<const PrimitiveNode&>(node), at);
    const auto& group = static_cast<const GroupNode&>(node);
    if (has_annotation(node, LogicalType::Type::LIST) && group.field_count() == 1 && group.field(0)->is_repeated())
      return list(*group.field(0), at, at.definition, &node);
    if (!node.logical_type()->is_none()) return unread(node, at);
    return object(group, at);
  }

  MaybeShape object(const GroupNode& group, const Above& at) {
    RowShape shape;
    shape.kind = RowShape::Kind::kObject;
    shape.present = at.definition;
    shape.first_leaf = shapes_.leaves.size();
    for (int i = 0; i < group.field_count(); ++i) {
      TROUPE_ASSIGN(auto below, field(*group.field(i), at));
      if (below) TROUPE_RETURN_IF_ERROR(add(std::move(*below), shape, group.field(i)->name()));
    }
    shape.end_leaf = shapes_.leaves.size();
    return shape.below.empty() ? std::optional<RowShape>() : std::optional(std::move(shape));
  }

  /// `repeated` under a LIST annotation `around`, or by itself.
  MaybeShape list(const Node& repeated, Above at, int16_t present, const Node* around = nullptr) {
    RowShape shape;
    shape.kind = RowShape::Kind::kList;
    shape.present = present;
    shape.filled = ++at.definition;
    shape.repetition = ++at.repetition;
    shape.first_leaf = shapes_.leaves.size();
    TROUPE_ASSIGN(auto element, around != nullptr && is_wrapper(repeated, *around)
                                    ? child(*static_cast<const GroupNode&>(repeated).field(0), at)
                                    : content(repeated, at));
    if (!element) return std::optional<RowShape>();
    shape.below.push_back(std::move(*element));
    shape.end_leaf = shapes_.leaves.size();
    return std::optional(std::move(shape));
  }

  /// Whether the repeated node only holds the element, or is the element, by the rules of the format's LogicalTypes.md.
  static bool is_wrapper(const Node& repeated, const Node& around) {
    if (repeated.is_primitive()) return false;
    const auto& group = static_cast<const GroupNode&>(repeated);
    return group.field_count() == 1 && !group.field(0)->is_repeated() && repeated.name() != "array" &&
           repeated.name() != around.name() + "_tuple" && repeated.logical_type()->is_none();
  }

  MaybeShape leaf(const PrimitiveNode& node, const Above& at) {
    const auto kind = kind_of(node);
    if (!kind) return unread(node, at);
    RowShape shape;
    shape.kind = RowShape::Kind::kValue;
    shape.present = at.definition;
    shape.first_leaf = shapes_.leaves.size();
    shape.end_leaf = shape.first_leaf + 1;
    shapes_.leaves.push_back({schema_.ColumnIndex(node), *kind, at.path});
    return std::optional(std::move(shape));
  }

  MaybeShape unread(const Node& node, const Above& at) const {
    if (!at.named) return std::optional<RowShape>();
    return invalid_argument(
        "has column '" + printable(at.path, false) + "' of type " + type_name(node) +
        ", which is not read; valid: strings, bytes, numbers, booleans, and lists and structs of them");
  }

  const parquet::SchemaDescriptor& schema_;
  const std::set<std::string>& names_;
  RowShapes shapes_;
};

}  // namespace

Result<RowShapes> shapes_of(const parquet::SchemaDescriptor& schema, const std::set<std::string>& names) {
  return ShapeBuilder(schema, names).run();
}

}  // namespace troupe
