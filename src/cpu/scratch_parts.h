// Arrays one after the other in a context's scratch.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rbc {

class ScratchParts {
 public:
  // Over null, it only adds up the bytes.
  explicit ScratchParts(void* data) : data_(static_cast<std::byte*>(data)) {}

  template <class T>
  T* take(int64_t count) {
    void* part = data_ != nullptr ? data_ + bytes_ : nullptr;
    bytes_ += (static_cast<size_t>(count) * sizeof(T) + kAlign - 1) / kAlign * kAlign;
    return static_cast<T*>(part);
  }

  size_t bytes() const { return bytes_; }

 private:
  static constexpr size_t kAlign = 64;  // a cache line

  std::byte* data_;
  size_t bytes_ = 0;
};

}  // namespace rbc
