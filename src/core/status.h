// Errors inside the library are exceptions; guard() is the one wall where they become a status and
// a message, and past which nothing depends on how the caller's thread rounds.
#pragma once

#include <exception>
#include <new>

#include "float_environment.h"
#include "robocache/base.h"

namespace rbc {

class Error : public std::exception {
 public:
  explicit Error(rbcStatus_t status) noexcept : status_(status) {}
  rbcStatus_t status() const noexcept { return status_; }
  const char* what() const noexcept override { return rbcStatusName(status_); }

 private:
  rbcStatus_t status_;
};

// Sets the thread's last error by a printf format, and throws. The message names the argument
// first.
[[noreturn]] void fail(rbcStatus_t status, const char* format, ...)
    __attribute__((format(printf, 2, 3)));

// Sets the thread's last error without throwing.
void setLastError(const char* format, ...) noexcept __attribute__((format(printf, 1, 2)));

// Puts a text in front of the thread's last error.
void prefixLastError(const char* format, ...) noexcept __attribute__((format(printf, 1, 2)));

template <class Body>
rbcStatus_t guard(Body&& body) noexcept {
  const DefaultFloats floats;
  try {
    body();
    return RBC_STATUS_SUCCESS;
  } catch (const Error& error) {
    return error.status();  // fail() has left the message
  } catch (const std::bad_alloc&) {
    setLastError("host memory is exhausted");
    return RBC_STATUS_OUT_OF_MEMORY;
  } catch (const std::exception& error) {
    setLastError("internal error: %s", error.what());
    return RBC_STATUS_INTERNAL;
  } catch (...) {
    setLastError("internal error: unknown exception");
    return RBC_STATUS_INTERNAL;
  }
}

}  // namespace rbc
