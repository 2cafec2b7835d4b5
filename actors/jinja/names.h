#pragma once

#include <string_view>

namespace troupe::jinja {

/// What Jinja and Python know by these names, whether or not this evaluator can do it: another name is an error of the
/// template, a known one that is not built is refused when it is reached.
bool is_jinja_filter(std::string_view name);
bool is_jinja_test(std::string_view name);
bool is_jinja_function(std::string_view name);
bool is_dict_method(std::string_view name);
bool is_list_method(std::string_view name);
bool is_tuple_method(std::string_view name);
bool is_string_method(std::string_view name);
bool is_integer_attribute(std::string_view name);

}  // namespace troupe::jinja
