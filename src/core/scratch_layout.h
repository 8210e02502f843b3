// Scratch memory divided into arrays aligned to 256 bytes: one description gives both its size and
// their addresses.
#pragma once

#include <cstddef>
#include <cstdint>

#include "status.h"

namespace rbc {

class ScratchLayout {
 public:
  // Null: only the size is needed.
  explicit ScratchLayout(void* data) : begin_(static_cast<char*>(data)) {}

  template <class T>
  T* take(int64_t count) {
    constexpr size_t kAlignment = 256;
    used_ = (used_ + kAlignment - 1) / kAlignment * kAlignment;
    void* array = begin_ != nullptr ? begin_ + used_ : nullptr;
    size_t bytes = 0;
    if (__builtin_mul_overflow(sizeof(T), static_cast<size_t>(count), &bytes) ||
        bytes > kMax - used_) {
      fail(RBC_STATUS_OUT_OF_MEMORY, "workspace: more than %zu bytes are needed", kMax);
    }
    used_ += bytes;
    return static_cast<T*>(array);
  }
  template <class T>
  void take(T** array, int64_t count) {
    *array = take<T>(count);
  }

  size_t used() const { return used_; }

 private:
  // No memory is larger; rounding this up to the alignment does not overflow.
  static constexpr size_t kMax = size_t{1} << 62;

  char* begin_;
  size_t used_ = 0;
};

}  // namespace rbc
