// Arrays of any dtype and layout in memory that tells of every stray access.
//
// Inaccessible pages stand before and after each array: a read or a write one byte past it faults,
// in every kind of build. Outputs are poisoned, and what lies between their elements must stay so.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "dtypes.h"

namespace support {

constexpr uint8_t kPoison = 0xA5;

// Which end of the memory touches the inaccessible page exactly.
enum class Flush { kEnd, kBegin };

class GuardedMemory {
 public:
  GuardedMemory() = default;
  GuardedMemory(size_t bytes, Flush flush) : bytes_(bytes) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    inner_bytes_ = std::max<size_t>((bytes + page - 1) / page * page, page);
    mapped_bytes_ = inner_bytes_ + 2 * page;
    void* mapped =
        mmap(nullptr, mapped_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) throw std::bad_alloc();
    mapped_ = static_cast<std::byte*>(mapped);
    inner_ = mapped_ + page;
    if (mprotect(inner_, inner_bytes_, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
    data_ = flush == Flush::kEnd ? inner_ + (inner_bytes_ - bytes) : inner_;
  }
  GuardedMemory(GuardedMemory&& other) noexcept { swap(other); }
  GuardedMemory& operator=(GuardedMemory&& other) noexcept {
    swap(other);
    return *this;
  }
  ~GuardedMemory() {
    if (mapped_ != nullptr) munmap(mapped_, mapped_bytes_);
  }

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }

  // Poisons the memory and what surrounds it up to the inaccessible pages.
  void poison() { std::memset(inner_, kPoison, inner_bytes_); }
  bool surroundingsArePoison() const {
    const auto bad = [](std::byte b) { return b != std::byte{kPoison}; };
    return std::none_of(inner_, data_, bad) &&
           std::none_of(data_ + bytes_, inner_ + inner_bytes_, bad);
  }
  // From now on a write faults.
  void forbidWrites() {
    if (inner_ != nullptr) mprotect(inner_, inner_bytes_, PROT_READ);
  }
  void allowWrites() {
    if (inner_ != nullptr) mprotect(inner_, inner_bytes_, PROT_READ | PROT_WRITE);
  }

 private:
  void swap(GuardedMemory& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(inner_bytes_, other.inner_bytes_);
    std::swap(mapped_bytes_, other.mapped_bytes_);
    std::swap(mapped_, other.mapped_);
    std::swap(inner_, other.inner_);
    std::swap(data_, other.data_);
  }

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
  kColumns,     // the same on 64-byte boundaries: a range of columns of a wider matrix
  kStrided,     // every dimension with gaps
  kPermuted,    // last dimension outermost in memory, but for the first: [B,S,D] kept as [B,D,S]
  kBroadcast,   // stride 0 along the first of several dimensions; inputs only
  kReversed,    // negative strides
  kMisaligned,  // contiguous, one element past an aligned address, by byte_offset
  // Not among kLayouts:
  kReversedOrder,  // the dimensions after the first in reverse: [B,X,Y,Z] kept as [B,Z,Y,X]
};
constexpr Layout kLayouts[] = {Layout::kContiguous, Layout::kPaddedRows, Layout::kColumns,
                               Layout::kStrided,    Layout::kPermuted,   Layout::kBroadcast,
                               Layout::kReversed,   Layout::kMisaligned};

inline const char* nameOf(Layout layout) {
  constexpr const char* kNames[] = {"contiguous", "padded rows", "columns",
                                    "strided",    "permuted",    "broadcast",
                                    "reversed",   "misaligned",  "reversed order"};
  return kNames[static_cast<int>(layout)];
}

// Where the elements of an array lie in its storage.
struct Placement {
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;  // in elements
  int64_t origin = 0;            // the first element, in elements from the start of the storage
  int64_t extent = 0;            // elements of storage

  int64_t count() const {
    int64_t count = 1;
    for (const int64_t n : shape) count *= n;
    return count;
  }
};

constexpr int64_t kColumns = 64;  // elements: a multiple of 64 bytes in every dtype

inline Placement place(std::vector<int64_t> shape, Layout layout) {
  const int ndim = static_cast<int>(shape.size());
  Placement p;
  p.shape = std::move(shape);
  p.strides.assign(static_cast<size_t>(ndim), 0);
  std::vector<int> order;  // dimensions from the innermost
  for (int i = ndim - 1; i >= 0; --i) order.push_back(i);
  if (layout == Layout::kPermuted) {
    if (ndim >= 3) std::swap(order[0], order[1]);
    if (ndim == 2) std::reverse(order.begin(), order.end());
  }
  if (layout == Layout::kReversedOrder && ndim > 1) std::reverse(order.begin(), order.end() - 1);
  int64_t stride = layout == Layout::kStrided ? 3 : 1;
  for (size_t k = 0; k < order.size(); ++k) {
    const auto i = static_cast<size_t>(order[k]);
    const bool flat = layout == Layout::kBroadcast && i == 0 && ndim > 1;
    p.strides[i] = flat ? 0 : stride;
    if (!flat) stride *= std::max<int64_t>(p.shape[i], 1);
    if (layout == Layout::kPaddedRows && k == 0) stride += 5;
    if (layout == Layout::kColumns && k == 0)
      stride = (stride + 2 * kColumns - 1) / kColumns * kColumns;
    if (layout == Layout::kStrided) stride += 2;
  }
  int64_t high = 0;
  const bool empty = p.count() == 0;
  for (size_t i = 0; i < p.shape.size() && !empty; ++i) {
    const int64_t reach = (p.shape[i] - 1) * p.strides[i];
    high += reach;
    if (layout == Layout::kReversed) {
      p.origin += reach;
      p.strides[i] = -p.strides[i];
    }
    if (p.shape[i] == 1) p.strides[i] = -12345 - static_cast<int64_t>(i);  // means nothing
  }
  p.extent = empty ? 0 : high + 1;
  const int64_t lead = layout == Layout::kMisaligned ? 1
                       : layout == Layout::kColumns  ? kColumns
                                                     : 0;
  p.origin += lead;
  p.extent += lead;
  return p;
}

class Array {
 public:
  Array() = default;
  Array(rbcDType dtype, std::vector<int64_t> shape, Layout layout = Layout::kContiguous,
        Flush flush = Flush::kEnd)
      : dtype_(dtype),
        layout_(layout),
        placement_(place(std::move(shape), layout)),
        memory_(static_cast<size_t>(placement_.extent * sizeOf(dtype)), flush) {
    memory_.poison();
  }

  rbcDType dtype() const { return dtype_; }
  const Placement& placement() const { return placement_; }
  GuardedMemory& memory() { return memory_; }
  const GuardedMemory& memory() const { return memory_; }
  int64_t count() const { return placement_.count(); }
  int64_t extent(int i) const { return placement_.shape[static_cast<size_t>(i)]; }
  int ndim() const { return static_cast<int>(placement_.shape.size()); }

  // Describes the array, here or in a copy of its storage elsewhere. Valid as long as the array.
  rbcTensor tensor() const { return tensorAt(memory_.data(), {RBC_DEVICE_CPU, 0}); }
  rbcTensor tensorAt(void* storage, rbcDevice device) const {
    rbcTensor t = {};
    const auto origin = static_cast<uint64_t>(placement_.origin * sizeOf(dtype_));
    const bool by_offset = layout_ == Layout::kMisaligned;
    t.data = by_offset ? storage : static_cast<std::byte*>(storage) + origin;
    t.byte_offset = by_offset ? origin : 0;
    t.device = device;
    t.ndim = ndim();
    t.dtype = dtype_;
    t.shape = const_cast<int64_t*>(placement_.shape.data());
    const bool compact = layout_ == Layout::kContiguous || layout_ == Layout::kMisaligned;
    t.strides = compact ? nullptr : const_cast<int64_t*>(placement_.strides.data());
    return t;
  }

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
  std::vector<uint64_t> elements() const {
    std::vector<uint64_t> all;
    all.reserve(static_cast<size_t>(count()));
    const auto size = static_cast<size_t>(sizeOf(dtype_));
    each([&](const std::byte* p) {
      uint64_t bits = 0;
      std::memcpy(&bits, p, size);
      all.push_back(bits);
    });
    return all;
  }

  // Whether everything but the elements is still poison.
  bool gapsArePoison() const {
    if (!memory_.surroundingsArePoison()) return false;
    std::vector<std::byte> storage(memory_.data(), memory_.data() + memory_.bytes());
    const auto size = static_cast<size_t>(sizeOf(dtype_));
    each([&](const std::byte* p) {
      std::memset(storage.data() + (p - memory_.data()), kPoison, size);
    });
    return isPoison(storage.data(), storage.size());
  }
  // Whether nothing at all was written since the memory was poisoned.
  bool untouched() const {
    return memory_.surroundingsArePoison() && isPoison(memory_.data(), memory_.bytes());
  }
  static bool isPoison(const std::byte* data, size_t bytes) {
    return std::all_of(data, data + bytes, [](std::byte b) { return b == std::byte{kPoison}; });
  }

 private:
  rbcDType dtype_ = kF32;
  Layout layout_ = Layout::kContiguous;
  Placement placement_;
  GuardedMemory memory_;
};

// A compact array of elements in row-major order.
inline Array arrayOf(rbcDType dtype, std::vector<int64_t> shape,
                     const std::vector<uint64_t>& elements) {
  Array array(dtype, std::move(shape));
  size_t next = 0;
  array.each(
      [&](std::byte* p) { std::memcpy(p, &elements[next++], static_cast<size_t>(sizeOf(dtype))); });
  return array;
}

// Arrays cannot be copied: the same numbers anew.
inline Array copyOf(const Array& array) {
  if (array.ndim() == 0) return {};
  return arrayOf(array.dtype(), array.placement().shape, array.elements());
}

}  // namespace support
