// Errors are values. Folder edges return Result<T>: a value, or an Error with a code for programs
// and a message for people. The message names the input and the limit it broke.
#pragma once

#include <string>
#include <utility>
#include <variant>

#include "base/assert.h"

namespace pagoda {

enum class ErrorCode {
  kInvalidArgument,  // the caller asked for something that makes no sense
  kNotFound,         // a file, key or tensor does not exist
  kCorrupt,          // bytes do not decode to what their format promises
  kUnsupported,      // the input is well-formed, but this build cannot do it
  kOutOfRange,       // a number is beyond a stated limit
  kExhausted,        // a limit is reached for now: the same call may work later
  kIo,               // the operating system refused
};

struct Error {
  ErrorCode code;
  std::string message;
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & {
    ASSERT(ok(), "Result holds an error");
    return *std::get_if<0>(&state_);
  }
  const T& value() const& {
    ASSERT(ok(), "Result holds an error");
    return *std::get_if<0>(&state_);
  }
  T&& value() && {
    ASSERT(ok(), "Result holds an error");
    return std::move(*std::get_if<0>(&state_));
  }
  const Error& error() const {
    ASSERT(!ok(), "Result holds a value");
    return *std::get_if<1>(&state_);
  }

 private:
  std::variant<T, Error> state_;
};

// Status is the outcome of a call that yields no value but may fail.
using Status = Result<std::monostate>;
inline Status ok_status() { return std::monostate{}; }

}  // namespace pagoda

#define PAGODA_CONCAT_INNER(a, b) a##b
#define PAGODA_CONCAT(a, b) PAGODA_CONCAT_INNER(a, b)

// Evaluates a Result expression; on error returns that error from the enclosing function.
#define RETURN_IF_ERROR(expression)                               \
  do {                                                            \
    auto outcome_ = (expression);                                 \
    if (!outcome_.ok()) return ::pagoda::Error(outcome_.error()); \
  } while (false)

#define ASSIGN_OR_RETURN(target, expression) \
  ASSIGN_OR_RETURN_NAMED(PAGODA_CONCAT(outcome_, __LINE__), target, expression)
#define ASSIGN_OR_RETURN_NAMED(outcome, target, expression)   \
  auto outcome = (expression);                                \
  if (!outcome.ok()) return ::pagoda::Error(outcome.error()); \
  target = std::move(outcome).value()
