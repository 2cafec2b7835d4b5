#include "base/result.h"

#include <array>

namespace troupe {
namespace {
constexpr std::array<const char*, 12> kNames = {
    "invalid_argument", "not_found", "failed_precondition", "resource_exhausted", "unavailable",   "deadline_exceeded",
    "cancelled",        "aborted",   "data_loss",           "unauthenticated",    "unimplemented", "internal"};
}

const char* error_code_name(ErrorCode code) { return kNames[static_cast<size_t>(code)]; }

ErrorCode error_code_from_name(const std::string& name) {
  for (size_t i = 0; i < kNames.size(); ++i)
    if (name == kNames[i]) return static_cast<ErrorCode>(i);
  return ErrorCode::kInternal;
}

std::string Error::to_string() const {
  std::string text = origin.empty() ? message : origin + ": " + message;
  if (cause) text += "; caused by: " + cause->to_string();
  return text;
}

Error make_error(ErrorCode code, std::string message) {
  Error error;
  error.code = code;
  error.message = std::move(message);
  return error;
}

Error wrap(Error error, std::string message) {
  Error outer = make_error(error.code, std::move(message));
  outer.cause = std::make_shared<const Error>(std::move(error));
  return outer;
}

void abort_on_broken_invariant(const char* expression, const char* file, int line) {
  std::fprintf(stderr, "troupe: broken invariant '%s' at %s:%d\n", expression, file, line);
  std::abort();
}

}  // namespace troupe
