// Arrays of any dtype and layout, in memory that detects every stray access.
//
// Inaccessible pages are before and after each array: a read or a write one byte past it faults, in
// every kind of build. Outputs are poisoned, and the gaps between their elements must stay
// poisoned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <vector>

#include "dtypes.h"

namespace support {

constexpr uint8_t kPoison = 0xA5;

// The end of the memory that touches an inaccessible page exactly.
enum class Flush { kEnd, kBegin };

class GuardedMemory {
 public:
  GuardedMemory() = default;
  GuardedMemory(size_t bytes, Flush flush);
  GuardedMemory(GuardedMemory&& other) noexcept { swap(other); }
  GuardedMemory& operator=(GuardedMemory&& other) noexcept {
    swap(other);
    return *this;
  }
  ~GuardedMemory();

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }

  // Poisons the memory and its surroundings up to the inaccessible pages.
  void poison() { std::memset(inner_, kPoison, inner_bytes_); }
  bool surroundingsArePoison() const;
  // From now on every write faults.
  void forbidWrites();
  void allowWrites();

 private:
  void swap(GuardedMemory& other) noexcept;

  size_t bytes_ = 0;
  size_t inner_bytes_ = 0;
  size_t mapped_bytes_ = 0;
  std::byte* mapped_ = nullptr;
  std::byte* inner_ = nullptr;
  std::byte* data_ = nullptr;
};

enum class Layout {
  kContiguous,  // strides null
  kPaddedRows,  // last dimension dense, rows apart by more than it
  kColumns,     // the same on 64-byte boundaries: columns of a wider matrix
  kStrided,     // every dimension with gaps
  kPermuted,    // last dimension outermost, except for the first: [B,S,D] as [B,D,S]
  kBroadcast,   // stride 0 along the first of several dimensions; inputs only
  kReversed,    // negative strides
  kMisaligned,  // contiguous, one element past an aligned address, by byte_offset
  // Not among kLayouts:
  kReversedOrder,  // the dimensions after the first in reverse: [B,X,Y,Z] stored as [B,Z,Y,X]
};
constexpr Layout kLayouts[] = {Layout::kContiguous, Layout::kPaddedRows, Layout::kColumns,
                               Layout::kStrided,    Layout::kPermuted,   Layout::kBroadcast,
                               Layout::kReversed,   Layout::kMisaligned};

const char* nameOf(Layout layout);

// The place of an array's elements in its storage.
struct Placement {
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;  // in elements
  int64_t origin = 0;            // the first element, relative to the start of the storage
  int64_t extent = 0;            // elements of storage

  int64_t count() const {
    int64_t count = 1;
    for (const int64_t n : shape) count *= n;
    return count;
  }
};

constexpr int64_t kColumns = 64;  // elements: a multiple of 64 bytes in every dtype

Placement place(std::vector<int64_t> shape, Layout layout);

class Array {
 public:
  Array() = default;
  Array(rbcDType dtype, std::vector<int64_t> shape, Layout layout = Layout::kContiguous,
        Flush flush = Flush::kEnd);

  rbcDType dtype() const { return dtype_; }
  const Placement& placement() const { return placement_; }
  GuardedMemory& memory() { return memory_; }
  const GuardedMemory& memory() const { return memory_; }
  int64_t count() const { return placement_.count(); }
  int64_t extent(int i) const { return placement_.shape[static_cast<size_t>(i)]; }
  int ndim() const { return static_cast<int>(placement_.shape.size()); }

  // Describes the array, here or in a copy of its storage elsewhere. Valid as long as the array
  // exists.
  rbcTensor tensor() const { return tensorAt(memory_.data(), {RBC_DEVICE_CPU, 0}); }
  rbcTensor tensorAt(void* storage, rbcDevice device) const;

  // Ends the array after this many rows; the rest stays in memory.
  void endAfter(int64_t rows) { placement_.shape[0] = rows; }

  // The element at a multi-index.
  std::byte* at(std::initializer_list<int64_t> index) const {
    int64_t element = placement_.origin;
    size_t i = 0;
    for (const int64_t k : index) {
      if (k != 0) element += k * placement_.strides[i];
      ++i;
    }
    return memory_.data() + element * sizeOf(dtype_);
  }
  uint64_t get(std::initializer_list<int64_t> index) const {
    uint64_t bits = 0;
    std::memcpy(&bits, at(index), static_cast<size_t>(sizeOf(dtype_)));
    return bits;
  }
  void set(std::initializer_list<int64_t> index, uint64_t bits) {
    std::memcpy(at(index), &bits, static_cast<size_t>(sizeOf(dtype_)));
  }

  // Calls visit(address) for each element in row-major order.
  template <class Visit>
  void each(Visit&& visit) const {
    if (count() == 0) return;
    const int n = ndim();
    const int64_t size = sizeOf(dtype_);
    std::vector<int64_t> index(static_cast<size_t>(n), 0);
    int64_t element = placement_.origin;
    while (true) {
      visit(memory_.data() + element * size);
      int i = n - 1;
      for (; i >= 0; --i) {
        const auto k = static_cast<size_t>(i);
        if (++index[k] < placement_.shape[k]) {
          element += placement_.strides[k];
          break;
        }
        element -= (placement_.shape[k] - 1) * placement_.strides[k];
        index[k] = 0;
      }
      if (i < 0) return;
    }
  }

  // All elements in row-major order.
  std::vector<uint64_t> elements() const;

  // Whether everything except the elements is still poison.
  bool gapsArePoison() const;
  // Whether nothing was written since the memory was poisoned.
  bool untouched() const {
    return memory_.surroundingsArePoison() && isPoison(memory_.data(), memory_.bytes());
  }
  static bool isPoison(const std::byte* data, size_t bytes);

 private:
  rbcDType dtype_ = kF32;
  Layout layout_ = Layout::kContiguous;
  Placement placement_;
  GuardedMemory memory_;
};

// A compact array of elements in row-major order.
Array arrayOf(rbcDType dtype, std::vector<int64_t> shape, const std::vector<uint64_t>& elements);

// Creates an array with the same numbers: arrays cannot be copied.
Array copyOf(const Array& array);

}  // namespace support
