// A floating-point environment that must not affect any result: set for this thread in a scope.
#pragma once

#include <cfenv>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace support {

class OddFloats {
 public:
  // The rounding mode; on x86-64 subnormals also become 0.
  explicit OddFloats(int mode) : mode_(mode) {
    std::fegetenv(&before_);
    std::fesetround(mode);
#if defined(__x86_64__)
    _mm_setcsr(_mm_getcsr() | kFlush);
#endif
  }
  ~OddFloats() { std::fesetenv(&before_); }
  OddFloats(const OddFloats&) = delete;

  bool still() const {
#if defined(__x86_64__)
    if ((_mm_getcsr() & kFlush) != kFlush) return false;
#endif
    return std::fegetround() == mode_;
  }

 private:
  static constexpr unsigned kFlush = 0x8040;  // flush-to-zero, denormals-are-zero
  int mode_;
  std::fenv_t before_;
};

}  // namespace support
