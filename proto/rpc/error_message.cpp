#include "proto/rpc/error_message.h"

namespace troupe {
namespace {

constexpr int kLongestChain = 16;

Error convert(const wire::ErrorMessage& message, int depth) {
  Error error = make_error(error_code_from_name(message.code()), message.message());
  error.origin = message.origin();
  if (message.has_cause() && depth < kLongestChain)
    error.cause = std::make_shared<const Error>(convert(message.cause(), depth + 1));
  return error;
}

}  // namespace

wire::ErrorMessage to_message(const Error& error) {
  wire::ErrorMessage message;
  message.set_code(error_code_name(error.code));
  message.set_message(error.message);
  message.set_origin(error.origin);
  if (error.cause) *message.mutable_cause() = to_message(*error.cause);
  return message;
}

Error from_message(const wire::ErrorMessage& message) { return convert(message, 1); }

}  // namespace troupe
