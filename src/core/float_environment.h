// Results must not depend on what the calling thread set: rounding mode, flush-to-zero, traps.
#pragma once

#if defined(__SSE2__)
#include <xmmintrin.h>
#else
#include <cfenv>
#endif

namespace rbc {

#if defined(__SSE2__)

// The default floating-point environment for a scope.
class DefaultFloats {
 public:
  DefaultFloats() noexcept : before_(_mm_getcsr()) {
    if ((before_ & ~kFlags) != kDefault) _mm_setcsr(kDefault);
  }
  ~DefaultFloats() {
    if ((before_ & ~kFlags) != kDefault) _mm_setcsr(before_);
  }
  DefaultFloats(const DefaultFloats&) = delete;
  DefaultFloats& operator=(const DefaultFloats&) = delete;

 private:
  static constexpr unsigned kDefault = 0x1f80;  // nearest even, subnormals kept, no traps
  static constexpr unsigned kFlags = 0x3f;      // status flags, which are not settings
  unsigned before_;
};

#else

class DefaultFloats {
 public:
  DefaultFloats() noexcept {
    std::fegetenv(&before_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultFloats() { std::fesetenv(&before_); }
  DefaultFloats(const DefaultFloats&) = delete;
  DefaultFloats& operator=(const DefaultFloats&) = delete;

 private:
  std::fenv_t before_;
};

#endif

}  // namespace rbc
