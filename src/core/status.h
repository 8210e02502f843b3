// Errors inside the library are exceptions; guard.h turns them into a status and a message.
#pragma once

#include <exception>

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

// Sets the thread's last error with a printf format, and throws. The message names the argument
// first.
[[noreturn]] void fail(rbcStatus_t status, const char* format, ...)
    __attribute__((format(printf, 2, 3)));

// Sets the thread's last error without throwing.
void setLastError(const char* format, ...) noexcept __attribute__((format(printf, 1, 2)));

// Prepends a text to the thread's last error.
void prefixLastError(const char* format, ...) noexcept __attribute__((format(printf, 1, 2)));

}  // namespace rbc
