#pragma once

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

/// Errors as values. Every fallible function of the tree returns Status or Result<T>; exceptions of libraries are
/// caught in the file that calls the library. Inside tensor code (actors/nn and models) an error travels as the
/// exception `ErrorException` up to the executor's instruction boundary, because autograd has no other way out.
namespace troupe {

/// What the caller should do about an error. A code exists only if a caller can act on it.
enum class ErrorCode {
  kInvalidArgument,     // the request is wrong: refuse it, exit code 2
  kNotFound,            // a named thing does not exist: refuse it, exit code 2
  kFailedPrecondition,  // right request, wrong moment or state: report
  kResourceExhausted,   // memory, disk, slots: report with the numbers
  kUnavailable,         // the peer or service is away: try again within the deadline
  kDeadlineExceeded,    // a wait ran out: report who was waited for
  kCancelled,           // somebody asked to stop: unwind quietly
  kAborted,             // the generation ended under us: park or unwind
  kDataLoss,            // bytes are not what they should be: never go on with them
  kUnauthenticated,     // token or certificate refused
  kUnimplemented,       // known, but not built yet: refuse by name
  kInternal,            // a bug or an unexpected library failure: report
};

/// The code's stable spelling, such as "invalid_argument"; `error_code_from_name` is its inverse (kInternal for unknown
/// names).
const char* error_code_name(ErrorCode code);
ErrorCode error_code_from_name(const std::string& name);

/// An error: what happened to which thing, with the value and what would be valid; where it came from; what caused it.
struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;
  std::string origin;  // such as "text/1 (rank 1 of group text), step 12"; empty: not known
  std::shared_ptr<const Error> cause;

  /// "origin: message; caused by ...", on one line.
  std::string to_string() const;
};

/// Builders: `return invalid_argument("key 'sp' ...");`
Error make_error(ErrorCode code, std::string message);
inline Error invalid_argument(std::string m) { return make_error(ErrorCode::kInvalidArgument, std::move(m)); }
inline Error not_found(std::string m) { return make_error(ErrorCode::kNotFound, std::move(m)); }
inline Error internal_error(std::string m) { return make_error(ErrorCode::kInternal, std::move(m)); }
inline Error data_loss(std::string m) { return make_error(ErrorCode::kDataLoss, std::move(m)); }
inline Error unavailable(std::string m) { return make_error(ErrorCode::kUnavailable, std::move(m)); }
inline Error cancelled(std::string m) { return make_error(ErrorCode::kCancelled, std::move(m)); }
inline Error deadline_exceeded(std::string m) { return make_error(ErrorCode::kDeadlineExceeded, std::move(m)); }
/// `error` with `message` put in front of it as its outer error, same code.
Error wrap(Error error, std::string message);

/// Success or an Error.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Error error) : error_(std::move(error)) {}  // NOLINT: implicit on purpose
  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const { return *error_; }

 private:
  std::optional<Error> error_;
};

/// A T or an Error.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit on purpose
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit on purpose
  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  const Error& error() const { return std::get<1>(state_); }
  Status status() const { return ok() ? Status() : Status(error()); }

 private:
  std::variant<T, Error> state_;
};

/// How an Error leaves tensor code; caught at the executor's instruction boundary and nowhere else.
struct ErrorException : std::exception {
  explicit ErrorException(Error e) : error(std::move(e)), text(error.to_string()) {}
  const char* what() const noexcept override { return text.c_str(); }
  Error error;
  std::string text;
};

[[noreturn]] void abort_on_broken_invariant(const char* expression, const char* file, int line);

}  // namespace troupe

/// Aborts with its location when an invariant of our own code is broken (never for bad input).
#define TROUPE_CHECK(expression) \
  ((expression) ? static_cast<void>(0) : ::troupe::abort_on_broken_invariant(#expression, __FILE__, __LINE__))
/// Returns the error of a Status expression from the enclosing function.
#define TROUPE_RETURN_IF_ERROR(expression)                                                       \
  do {                                                                                           \
    if (auto troupe_status_ = (expression); !troupe_status_.ok()) return troupe_status_.error(); \
  } while (0)
#define TROUPE_CONCAT_INNER(a, b) a##b
#define TROUPE_CONCAT(a, b) TROUPE_CONCAT_INNER(a, b)
#define TROUPE_ASSIGN_INNER(result, declaration, expression) \
  auto result = (expression);                                \
  if (!result.ok()) return result.error();                   \
  declaration = std::move(result).value()
/// `TROUPE_ASSIGN(auto x, f());`: x is the value, or the error is returned.
#define TROUPE_ASSIGN(declaration, expression) \
  TROUPE_ASSIGN_INNER(TROUPE_CONCAT(troupe_result_, __LINE__), declaration, expression)
