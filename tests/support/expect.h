// Checks of failures: the status, and parts of the one-line message.
#pragma once

#include <doctest/doctest.h>

#include <initializer_list>
#include <string>

#include "robocache/base.h"

namespace support {

// doctest prints a char pointer as an address.
inline std::string nameOf(rbcStatus_t status) { return rbcStatusName(status); }

// Whether the message is one line that contains the expected parts.
inline bool tells(const std::string& message, std::initializer_list<const char*> words) {
  bool all = !message.empty() && message.find('\n') == std::string::npos;
  for (const char* word : words) all = all && message.find(word) != std::string::npos;
  return all;
}

}  // namespace support

// CHECK_FAILS(call, RBC_STATUS_..., "argument", "more words"): checks that a call of the C
// interface fails with this status and message.
#define CHECK_FAILS(call, expected, ...)                                                      \
  do {                                                                                        \
    const rbcStatus_t status_ = (call);                                                       \
    const std::string message_ = rbcGetLastError();                                           \
    CHECK_MESSAGE(status_ == (expected), #call " gave ", support::nameOf(status_), ": ",      \
                  message_);                                                                  \
    CHECK_MESSAGE(support::tells(message_, {__VA_ARGS__}), #call " says \"", message_, "\""); \
  } while (false)

#define CHECK_SUCCEEDS(call)                                                                     \
  do {                                                                                           \
    const rbcStatus_t status_ = (call);                                                          \
    CHECK_MESSAGE(status_ == RBC_STATUS_SUCCESS, #call " gave ", support::nameOf(status_), ": ", \
                  std::string(rbcGetLastError()));                                               \
  } while (false)

// Prints why a case cannot run here; ctest then counts it as skipped.
#define SKIP_BECAUSE(reason)                   \
  do {                                         \
    MESSAGE("SKIPPED: ", std::string(reason)); \
    return;                                    \
  } while (false)
