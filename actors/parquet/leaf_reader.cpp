#include "actors/parquet/leaf_reader.h"

#include <parquet/exception.h>
#include <parquet/types.h>

#include <array>
#include <string>
#include <type_traits>

namespace troupe {
namespace {

using Json = nlohmann::json;
using parquet::ParquetException;

template <typename Value>
Json json_of(const Value& value, LeafKind kind) {
  if constexpr (std::is_same_v<Value, parquet::ByteArray>) {
    if (kind == LeafKind::kBytes) return Json::binary(std::vector<uint8_t>(value.ptr, value.ptr + value.len));
    return std::string(reinterpret_cast<const char*>(value.ptr), value.len);
  } else if constexpr (std::is_same_v<Value, int32_t> || std::is_same_v<Value, int64_t>) {
    if (kind == LeafKind::kUnsigned) return static_cast<std::make_unsigned_t<Value>>(value);
    return value;
  } else {
    return value;
  }
}

template <typename Type>
class TypedLeafReader final : public LeafReader {
 public:
  TypedLeafReader(const ColumnChunk& chunk, std::unique_ptr<ChunkPager> pages)
      : kind_(chunk.kind),
        most_defined_(chunk.column->max_definition_level()),
        repeats_(chunk.column->max_repetition_level() > 0),
        pages_(*pages),
        reader_(std::static_pointer_cast<parquet::TypedColumnReader<Type>>(
            parquet::ColumnReader::Make(chunk.column, std::move(pages), chunk.properties->memory_pool()))) {}

  bool at_row() override {
    if (!fill()) return false;
    if (repetitions_[at_] != 0) throw ParquetException("a page begins in the middle of a row");
    return true;
  }
  bool at_page_begin() const override { return fresh_ && at_ == 0; }

  void next_row(LeafRow* out) override {
    do {
      take(out);
    } while (repeats_ && fill() && repetitions_[at_] != 0);
  }

 private:
  static constexpr int64_t kAtOnce = 256;

  /// Levels and values up to kAtOnce or the page's end; false at the chunk's. Values point into the page.
  bool fill() {
    if (at_ < levels_) return true;
    const int64_t before = pages_.handed_out();
    if (!reader_->HasNext()) return false;
    fresh_ = pages_.handed_out() != before;
    int64_t values = 0;
    const int64_t levels =
        reader_->ReadBatch(kAtOnce, definitions_.data(), repetitions_.data(), values_.data(), &values);
    if (levels <= 0) throw ParquetException("a page holds fewer values than it states");
    at_ = value_ = 0;
    levels_ = static_cast<size_t>(levels);
    count_ = static_cast<size_t>(values);
    return true;
  }

  void take(LeafRow* out) {
    const int16_t definition = definitions_[at_];
    const bool defined = definition == most_defined_;
    if (defined && value_ >= count_) throw ParquetException("a page holds fewer values than it states");
    if (out != nullptr) {
      if (out->definitions.size() == kMostValues) throw ParquetException("a row has more than 2^20 values in a column");
      out->definitions.push_back(definition);
      out->repetitions.push_back(repetitions_[at_]);
      if (defined) add(values_[value_], *out);
    }
    value_ += defined;
    ++at_;
  }

  template <typename Value>
  void add(const Value& value, LeafRow& out) const {
    if constexpr (std::is_same_v<Value, parquet::ByteArray>) {
      out.bytes += value.len;
      if (out.bytes > kMostBytes) throw ParquetException("a row has more than 256 MiB in a column");
    }
    out.values.push_back(json_of(value, kind_));
  }

  LeafKind kind_;
  int16_t most_defined_;
  bool repeats_;       // else a row ends with its value, whatever the next page is like
  ChunkPager& pages_;  // reader_'s
  std::shared_ptr<parquet::TypedColumnReader<Type>> reader_;  // shared as Arrow makes it
  // Of a column without such levels Arrow writes none, and they stay 0, which is right.
  std::array<int16_t, kAtOnce> definitions_{}, repetitions_{};
  std::array<typename Type::c_type, kAtOnce> values_{};
  size_t at_ = 0, levels_ = 0, value_ = 0, count_ = 0;
  bool fresh_ = false;  // the levels are the first of their page
};

}  // namespace

void LeafRow::clear() {
  definitions.clear();
  repetitions.clear();
  values.clear();
  bytes = 0;
}

std::unique_ptr<LeafReader> LeafReader::make(const ColumnChunk& chunk, std::unique_ptr<ChunkPager> pages) {
  switch (chunk.column->physical_type()) {
    case parquet::Type::BOOLEAN:
      return std::make_unique<TypedLeafReader<parquet::BooleanType>>(chunk, std::move(pages));
    case parquet::Type::INT32:
      return std::make_unique<TypedLeafReader<parquet::Int32Type>>(chunk, std::move(pages));
    case parquet::Type::INT64:
      return std::make_unique<TypedLeafReader<parquet::Int64Type>>(chunk, std::move(pages));
    case parquet::Type::FLOAT:
      return std::make_unique<TypedLeafReader<parquet::FloatType>>(chunk, std::move(pages));
    case parquet::Type::DOUBLE:
      return std::make_unique<TypedLeafReader<parquet::DoubleType>>(chunk, std::move(pages));
    case parquet::Type::BYTE_ARRAY:
      return std::make_unique<TypedLeafReader<parquet::ByteArrayType>>(chunk, std::move(pages));
    default:
      throw ParquetException("a column of a type that is not read");
  }
}

}  // namespace troupe
