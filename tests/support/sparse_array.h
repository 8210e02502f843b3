// Arrays whose address space is mostly never touched, for sizes beyond 32 bits.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

namespace support {

// Zeros; only pages that are touched use memory.
template <class T>
class SparseArray {
 public:
  explicit SparseArray(int64_t count) : bytes_(static_cast<size_t>(count) * sizeof(T)) {
    void* mapped = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped != MAP_FAILED) data_ = static_cast<T*>(mapped);
  }
  ~SparseArray() {
    if (data_ != nullptr) munmap(data_, bytes_);
  }
  SparseArray(const SparseArray&) = delete;
  SparseArray& operator=(const SparseArray&) = delete;

  explicit operator bool() const { return data_ != nullptr; }
  T* data() const { return data_; }
  T& operator[](int64_t i) const { return data_[i]; }

 private:
  size_t bytes_;
  T* data_ = nullptr;
};

}  // namespace support
