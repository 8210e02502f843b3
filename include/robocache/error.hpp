// Errors as exceptions or as results. See robocache.hpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#if __cplusplus < 201703L
#error "RoboCache needs C++17 (-std=c++17)"
#endif

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

#include "base.h"

// Code compiled without exceptions has its own namespace, so that a program may mix both kinds.
#if defined(__cpp_exceptions)
#define ROBOCACHE_NAMESPACE_BEGIN namespace robocache {
#define ROBOCACHE_NAMESPACE_END }
#else
#define ROBOCACHE_NAMESPACE_BEGIN \
  namespace robocache {           \
  inline namespace without_exceptions {
#define ROBOCACHE_NAMESPACE_END \
  }                             \
  }
#endif

ROBOCACHE_NAMESPACE_BEGIN

// Return the loaded library's release version, major * 10000 + minor * 100 + patch, and its ABI
// version.
inline int32_t version() noexcept {
  int32_t release = 0;
  rbcGetVersion(&release, nullptr);
  return release;
}
inline int32_t abiVersion() noexcept {
  int32_t abi = 0;
  rbcGetVersion(nullptr, &abi);
  return abi;
}

// Returns the name of a status, such as "RBC_STATUS_SHAPE_MISMATCH". The string is static.
inline const char* statusName(rbcStatus_t status) noexcept { return rbcStatusName(status); }

// The status and the message of a failed call.
class Error : public std::runtime_error {
 public:
  Error(rbcStatus_t status, const std::string& message)
      : std::runtime_error(message), status_(status) {}

  // The status; what() is the library's message.
  rbcStatus_t status() const noexcept { return status_; }

 private:
  rbcStatus_t status_;
};

namespace detail {

[[noreturn]] inline void raise([[maybe_unused]] const Error& error) {
#if defined(__cpp_exceptions)
  throw error;
#else
  std::abort();
#endif
}

}  // namespace detail

// A T, or the Error that explains why there is no T. It has the members of C++23's std::expected,
// but value() throws the Error itself. It is the same class in every C++ standard, so that code for
// different standards can be linked together.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}
  Result(Error error) : state_(std::move(error)) {}

  // Returns whether there is a value.
  bool has_value() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }

  // Returns the value. Throws the Error if there is no value; with -fno-exceptions the program
  // aborts instead.
  T& value() & { return get(*this); }
  const T& value() const& { return get(*this); }
  T&& value() && { return std::move(get(*this)); }

  // Returns the value. Undefined without a value.
  T& operator*() & noexcept { return *std::get_if<0>(&state_); }
  const T& operator*() const& noexcept { return *std::get_if<0>(&state_); }
  T&& operator*() && noexcept { return std::move(*std::get_if<0>(&state_)); }
  T* operator->() noexcept { return std::get_if<0>(&state_); }
  const T* operator->() const noexcept { return std::get_if<0>(&state_); }

  // Returns the Error. Undefined if there is a value.
  const Error& error() const noexcept { return *std::get_if<1>(&state_); }

 private:
  template <class Self>
  static auto& get(Self& self) {
    if (!self.has_value()) detail::raise(self.error());
    return *self;
  }

  std::variant<T, Error> state_;
};

// Success, or the Error of the failed call.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  // Returns whether the call succeeded.
  bool has_value() const noexcept { return !error_.has_value(); }
  explicit operator bool() const noexcept { return has_value(); }

  // Throws the Error if the call failed; with -fno-exceptions the program aborts instead.
  void value() const {
    if (error_) detail::raise(*error_);
  }

  // Returns the Error. Undefined if the call succeeded.
  const Error& error() const noexcept { return *error_; }

 private:
  std::optional<Error> error_;
};

// Template argument that makes a function return a Result.
struct Expect {
  template <class T>
  using Return = Result<T>;

  template <class T>
  static Result<T> report(Result<T> result) {
    return result;
  }
};

#if defined(__cpp_exceptions)
// Template argument that makes a function throw an Error. It is the default, except with
// -fno-exceptions.
struct Throw {
  template <class T>
  using Return = T;

  template <class T>
  static T report(Result<T> result) {
    return std::move(result).value();
  }
};
using DefaultErrors = Throw;
#else
using DefaultErrors = Expect;
#endif

// The return type of a function that can fail: T with Throw, Result<T> with Expect.
template <class Errors, class T>
using Returned = typename Errors::template Return<T>;

namespace detail {

inline Result<void> done(rbcStatus_t status) {
  if (status != RBC_STATUS_SUCCESS) return Error(status, rbcGetLastError());
  return {};
}

template <class T>
Result<T> done(rbcStatus_t status, T value) {
  if (status != RBC_STATUS_SUCCESS) return Error(status, rbcGetLastError());
  return value;
}

}  // namespace detail

// Converts the status of a call of the C interface that has just been made. If it failed, the Error
// has the message of that call.
template <class Errors = DefaultErrors>
Returned<Errors, void> check(rbcStatus_t status) {
  return Errors::report(detail::done(status));
}

ROBOCACHE_NAMESPACE_END
