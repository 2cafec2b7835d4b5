#pragma once

#include <string>

#include "proto/rpc/calls.pb.h"

/// What a method of direct calls is called in messages.
namespace troupe {

/// `method`: wire::Call::arguments_case(). "forward"; "nothing" when it is none.
inline const std::string& method_name(int method) {
  static const std::string nothing = "nothing";
  const auto* field = wire::Call::descriptor()->FindFieldByNumber(method);
  return field ? field->name() : nothing;
}

}  // namespace troupe
