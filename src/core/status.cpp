#include "status.h"

#include <locale.h>

#include <cerrno>
#include <cfenv>
#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace rbc {
namespace {

// Trivially constructed, so that it needs no initialization order and no destructor at thread exit.
thread_local char last_error[512];

// Writes numbers the same way regardless of the caller's settings, within a scope. The locale is
// "C":
// 1.5 and never 1,5; without memory for that locale the thread's own stays. Rounding is to nearest:
//   the C library reads it from the x87 unit, which DefaultFloats does not change.
class PlainNumbers {
 public:
  PlainNumbers() noexcept : errno_(errno), rounds_oddly_(std::fegetround() != FE_TONEAREST) {
    static const locale_t made = newlocale(LC_ALL_MASK, "C", static_cast<locale_t>(nullptr));
    before_ = uselocale(made);
    if (rounds_oddly_) {
      std::fegetenv(&floats_);
      std::fesetround(FE_TONEAREST);
    }
  }
  ~PlainNumbers() {
    if (rounds_oddly_) std::fesetenv(&floats_);  // SSE's may differ from x87's
    uselocale(before_);
    errno = errno_;
  }
  PlainNumbers(const PlainNumbers&) = delete;
  PlainNumbers& operator=(const PlainNumbers&) = delete;

 private:
  int errno_;
  bool rounds_oddly_;
  std::fenv_t floats_;
  locale_t before_;
};

int format(const char* text, va_list arguments) noexcept {
  const PlainNumbers plain;
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
  switch (static_cast<rbcStatus>(status)) {  // no default: the compiler reports a missing name
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
    case RBC_STATUS_BUFFER_TOO_SMALL: return "RBC_STATUS_BUFFER_TOO_SMALL";
    case RBC_STATUS_NOT_FOUND: return "RBC_STATUS_NOT_FOUND";
    case RBC_STATUS_IO_ERROR: return "RBC_STATUS_IO_ERROR";
    case RBC_STATUS_DAMAGED: return "RBC_STATUS_DAMAGED";
    case RBC_STATUS_BUSY: return "RBC_STATUS_BUSY";
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
