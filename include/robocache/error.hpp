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

// Code compiled without exceptions has a namespace of its own, so that a program may mix both kinds.
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

// The loaded library's release version as major * 10000 + minor * 100 + patch, and its ABI version.
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

// The name of a status, such as "RBC_STATUS_SHAPE_MISMATCH". Static storage.
inline const char* statusName(rbcStatus_t status) noexcept { return rbcStatusName(status); }

// Why a call failed.
class Error : public std::runtime_error {
 public:
  Error(rbcStatus_t status, const std::string& message)
      : std::runtime_error(message), status_(status) {}

  // The kind of failure; what() is the library's message.
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

// A T, or the Error that says why there is none. It has the members of C++23's std::expected, but
// value() throws the Error itself. It is the same class in every C++ standard, so that code for
// different standards can be linked together.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}
  Result(Error error) : state_(std::move(error)) {}

  // Whether there is a value.
  bool has_value() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }

  // The value; without one the Error is thrown. With -fno-exceptions the program aborts then.
  T& value() & { return get(*this); }
  const T& value() const& { return get(*this); }
  T&& value() && { return std::move(get(*this)); }

  // The value; there must be one.
  T& operator*() & noexcept { return *std::get_if<0>(&state_); }
  const T& operator*() const& noexcept { return *std::get_if<0>(&state_); }
  T&& operator*() && noexcept { return std::move(*std::get_if<0>(&state_)); }
  T* operator->() noexcept { return std::get_if<0>(&state_); }
  const T* operator->() const noexcept { return std::get_if<0>(&state_); }

  // Why there is no value; there must be none.
  const Error& error() const noexcept { return *std::get_if<1>(&state_); }

 private:
  template <class Self>
  static auto& get(Self& self) {
    if (!self.has_value()) detail::raise(self.error());
    return *self;
  }

  std::variant<T, Error> state_;
};

// Success, or the Error that says why the call failed.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  // Whether it succeeded.
  bool has_value() const noexcept { return !error_.has_value(); }
  explicit operator bool() const noexcept { return has_value(); }

  // Throws the Error if there is one. With -fno-exceptions the program aborts then.
  void value() const {
    if (error_) detail::raise(*error_);
  }

  // Why it failed; it must have failed.
  const Error& error() const noexcept { return *error_; }

 private:
  std::optional<Error> error_;
};

// How a function reports failures, as its template argument: as a Result.
struct Expect {
  template <class T>
  using Return = Result<T>;

  template <class T>
  static Result<T> report(Result<T> result) {
    return result;
  }
};

#if defined(__cpp_exceptions)
// As an exception of type Error: the default, except with -fno-exceptions.
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

// A T from a function that can fail: T with Throw, Result<T> with Expect.
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

// Reports that a call of the C interface failed, with that call's message.
template <class Errors = DefaultErrors>
Returned<Errors, void> check(rbcStatus_t status) {
  return Errors::report(detail::done(status));
}

ROBOCACHE_NAMESPACE_END
