#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "actors/jinja/value.h"

namespace troupe::jinja {

/// `of.name`: a method or attribute first, then the entry of a dict, else undefined.
Result<Value> attribute(const Value& of, const std::string& name, Budget& budget);
/// `of[key]`: an item first, then an attribute, else undefined.
Result<Value> item(const Value& of, const Value& key, Budget& budget);
/// `of[start:stop:step]` of a string, list or tuple.
Result<Value> slice(const Value& of, std::optional<int64_t> start, std::optional<int64_t> stop, int64_t step,
                    Budget& budget);
/// `a operation b` for + - * // and %.
Result<Value> arithmetic(std::string_view operation, const Value& a, const Value& b, Budget& budget);
/// `a operation b` for == != < <= > >= in and not in.
Result<bool> compare(std::string_view operation, const Value& a, const Value& b, Budget& budget);

}  // namespace troupe::jinja
