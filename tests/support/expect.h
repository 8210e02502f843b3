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

// The macros call these functions: with their code in place, each of the 600 uses would take 16 ms
// to compile.
void checkFails(const char* file, int line, const char* call, rbcStatus_t status,
                rbcStatus_t expected, std::initializer_list<const char*> words);
void checkSucceeds(const char* file, int line, const char* call, rbcStatus_t status);

}  // namespace support

// CHECK_FAILS(call, RBC_STATUS_..., "argument", "more words"): checks that a call of the C
// interface fails with this status and message.
#define CHECK_FAILS(call, expected, ...) \
  ::support::checkFails(__FILE__, __LINE__, #call, (call), (expected), {__VA_ARGS__})

#define CHECK_SUCCEEDS(call) ::support::checkSucceeds(__FILE__, __LINE__, #call, (call))

// Prints why a case cannot run here; ctest then counts it as skipped.
#define SKIP_BECAUSE(reason)                   \
  do {                                         \
    MESSAGE("SKIPPED: ", std::string(reason)); \
    return;                                    \
  } while (false)
