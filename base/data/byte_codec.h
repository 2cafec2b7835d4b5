#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

/// Numbers and texts one after the other in bytes, as they lie in memory, which is little-endian on every machine that
/// Troupe runs on.
namespace troupe {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);

class ByteWriter {
 public:
  template <typename T>
  void number(T value) {
    char bytes[sizeof(T)];
    std::memcpy(bytes, &value, sizeof(T));
    out_.append(bytes, sizeof(T));
  }
  void text(std::string_view s) {
    number<uint64_t>(s.size());
    out_ += s;
  }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

/// Reads what ByteWriter wrote; after a read past the end `ok()` is false and every further value is zero.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}
  template <typename T>
  T number() {
    T value{};
    if (rest_.size() < sizeof(T)) return fail(value);
    std::memcpy(&value, rest_.data(), sizeof(T));
    rest_.remove_prefix(sizeof(T));
    return value;
  }
  std::string text() {
    const auto size = number<uint64_t>();
    if (size > rest_.size()) return fail(std::string());
    std::string s(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return s;
  }
  /// A count of elements that take at least `least_bytes` each: bounded by what is left, so that a bad count allocates
  /// nothing.
  size_t count(size_t least_bytes) {
    const auto n = number<uint64_t>();
    if (n > rest_.size() / least_bytes) return fail(size_t{0});
    return n;
  }
  bool ok() const { return ok_; }
  bool at_end() const { return rest_.empty(); }

 private:
  template <typename T>
  T fail(T value) {
    ok_ = false;
    rest_ = {};
    return value;
  }
  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace troupe
