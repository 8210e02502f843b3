// A floating-point environment that no result may depend on: of this thread, while it lives.
#pragma once

#include <cfenv>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace support {

class OddFloats {
 public:
  // How to round; on x86-64 subnormals become 0, too.
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
