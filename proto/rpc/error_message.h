#pragma once

#include "base/result.h"
#include "proto/rpc/control.pb.h"

/// How an Error crosses processes: code, message, origin and the chain of causes survive both ways.
namespace troupe {

wire::ErrorMessage to_message(const Error& error);
/// An unknown code becomes kInternal; a chain longer than 16 causes is cut (a peer's sizes are bounded before they are
/// believed).
Error from_message(const wire::ErrorMessage& message);

}  // namespace troupe
