#include "support/expect.h"

#include <doctest/doctest.h>

#include <initializer_list>
#include <string>

#include "robocache/base.h"

namespace support {

namespace {

// Counts a check; one that failed, at the place of the macro.
void check(bool passed, const char* file, int line, const std::string& found) {
  if (passed) {
    CHECK(passed);
  } else {
    ADD_FAIL_CHECK_AT(file, line, found);
  }
}

}  // namespace

void checkFails(const char* file, int line, const char* call, rbcStatus_t status,
                rbcStatus_t expected, std::initializer_list<const char*> words) {
  const std::string message = rbcGetLastError();
  check(status == expected, file, line,
        std::string(call) + " gave " + nameOf(status) + ", expected " + nameOf(expected) + ": " +
            message);
  check(tells(message, words), file, line, std::string(call) + " says \"" + message + "\"");
}

void checkSucceeds(const char* file, int line, const char* call, rbcStatus_t status) {
  std::string found;
  if (status != RBC_STATUS_SUCCESS) {
    found = std::string(call) + " gave " + nameOf(status) + ": " + rbcGetLastError();
  }
  check(found.empty(), file, line, found);
}

}  // namespace support
