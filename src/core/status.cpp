#include "status.h"

#include <locale.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace rbc {
namespace {

// Trivially constructed, so that it needs no initialization order and no destructor at thread exit.
thread_local char last_error[512];

// The thread's locale is "C" for a while, where a number is written as 1.5 and never as 1,5. Without
// memory for that locale the thread's own stays.
class CLocale {
 public:
  CLocale() noexcept : errno_(errno) {
    static const locale_t made = newlocale(LC_ALL_MASK, "C", static_cast<locale_t>(nullptr));
    before_ = uselocale(made);
  }
  ~CLocale() {
    uselocale(before_);
    errno = errno_;
  }
  CLocale(const CLocale&) = delete;
  CLocale& operator=(const CLocale&) = delete;

 private:
  int errno_;
  locale_t before_;
};

int format(const char* text, va_list arguments) noexcept {
  const CLocale locale;
  return std::vsnprintf(last_error, sizeof last_error, text, arguments);
}

}  // namespace

void setLastError(const char* text, ...) noexcept {
  va_list arguments;
  va_start(arguments, text);
  format(text, arguments);
  va_end(arguments);
}

void prefixLastError(const char* text, ...) noexcept {
  char message[sizeof last_error];
  std::memcpy(message, last_error, sizeof message);
  va_list arguments;
  va_start(arguments, text);
  const int prefix = format(text, arguments);
  va_end(arguments);
  if (prefix >= 0 && static_cast<size_t>(prefix) < sizeof last_error) {
    std::snprintf(last_error + prefix, sizeof last_error - static_cast<size_t>(prefix), "%s",
                  message);
  }
}

void fail(rbcStatus_t status, const char* text, ...) {
  va_list arguments;
  va_start(arguments, text);
  format(text, arguments);
  va_end(arguments);
  throw Error(status);
}

}  // namespace rbc

const char* rbcGetLastError() { return rbc::last_error; }

const char* rbcStatusName(rbcStatus_t status) {
  switch (status) {  // no default: the compiler finds a missing name
    case RBC_STATUS_SUCCESS: return "RBC_STATUS_SUCCESS";
    case RBC_STATUS_INVALID_ARGUMENT: return "RBC_STATUS_INVALID_ARGUMENT";
    case RBC_STATUS_UNSUPPORTED: return "RBC_STATUS_UNSUPPORTED";
    case RBC_STATUS_DEVICE_MISMATCH: return "RBC_STATUS_DEVICE_MISMATCH";
    case RBC_STATUS_DTYPE_MISMATCH: return "RBC_STATUS_DTYPE_MISMATCH";
    case RBC_STATUS_SHAPE_MISMATCH: return "RBC_STATUS_SHAPE_MISMATCH";
    case RBC_STATUS_OUT_OF_MEMORY: return "RBC_STATUS_OUT_OF_MEMORY";
    case RBC_STATUS_WORKSPACE_TOO_SMALL: return "RBC_STATUS_WORKSPACE_TOO_SMALL";
    case RBC_STATUS_CUDA_ERROR: return "RBC_STATUS_CUDA_ERROR";
    case RBC_STATUS_NOT_AVAILABLE: return "RBC_STATUS_NOT_AVAILABLE";
    case RBC_STATUS_INTERNAL: return "RBC_STATUS_INTERNAL";
    case RBC_STATUS_CANCELLED: return "RBC_STATUS_CANCELLED";
  }
  return "RBC_STATUS_UNKNOWN";
}

rbcStatus_t rbcGetVersion(int32_t* release_version, int32_t* abi_version) {
  if (release_version != nullptr) {
    *release_version = RBC_VERSION_MAJOR * 10000 + RBC_VERSION_MINOR * 100 + RBC_VERSION_PATCH;
  }
  if (abi_version != nullptr) *abi_version = RBC_ABI_VERSION;
  return RBC_STATUS_SUCCESS;
}
