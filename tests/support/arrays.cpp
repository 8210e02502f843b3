// Arrays of any dtype and layout, and their memory.
#include "support/arrays.h"

#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

namespace support {

const char* nameOf(Layout layout) {
  constexpr const char* kNames[] = {"contiguous", "padded rows", "columns",
                                    "strided",    "permuted",    "broadcast",
                                    "reversed",   "misaligned",  "reversed order"};
  return kNames[static_cast<int>(layout)];
}

Placement place(std::vector<int64_t> shape, Layout layout) {
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
    if (p.shape[i] == 1) p.strides[i] = -12345 - static_cast<int64_t>(i);  // ignored
  }
  p.extent = empty ? 0 : high + 1;
  const int64_t lead = layout == Layout::kMisaligned ? 1
                       : layout == Layout::kColumns  ? kColumns
                                                     : 0;
  p.origin += lead;
  p.extent += lead;
  return p;
}

Array arrayOf(rbcDType dtype, std::vector<int64_t> shape, const std::vector<uint64_t>& elements) {
  Array array(dtype, std::move(shape));
  size_t next = 0;
  array.each(
      [&](std::byte* p) { std::memcpy(p, &elements[next++], static_cast<size_t>(sizeOf(dtype))); });
  return array;
}

Array copyOf(const Array& array) {
  if (array.ndim() == 0) return {};
  return arrayOf(array.dtype(), array.placement().shape, array.elements());
}

GuardedMemory::GuardedMemory(size_t bytes, Flush flush) : bytes_(bytes) {
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

GuardedMemory::~GuardedMemory() {
  if (mapped_ != nullptr) munmap(mapped_, mapped_bytes_);
}

bool GuardedMemory::surroundingsArePoison() const {
  const auto bad = [](std::byte b) { return b != std::byte{kPoison}; };
  return std::none_of(inner_, data_, bad) &&
         std::none_of(data_ + bytes_, inner_ + inner_bytes_, bad);
}

void GuardedMemory::swap(GuardedMemory& other) noexcept {
  std::swap(bytes_, other.bytes_);
  std::swap(inner_bytes_, other.inner_bytes_);
  std::swap(mapped_bytes_, other.mapped_bytes_);
  std::swap(mapped_, other.mapped_);
  std::swap(inner_, other.inner_);
  std::swap(data_, other.data_);
}

Array::Array(rbcDType dtype, std::vector<int64_t> shape, Layout layout, Flush flush)
    : dtype_(dtype),
      layout_(layout),
      placement_(place(std::move(shape), layout)),
      memory_(static_cast<size_t>(placement_.extent * sizeOf(dtype)), flush) {
  memory_.poison();
}

rbcTensor Array::tensorAt(void* storage, rbcDevice device) const {
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

std::vector<uint64_t> Array::elements() const {
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

bool Array::gapsArePoison() const {
  if (!memory_.surroundingsArePoison()) return false;
  std::vector<std::byte> storage(memory_.data(), memory_.data() + memory_.bytes());
  const auto size = static_cast<size_t>(sizeOf(dtype_));
  each([&](const std::byte* p) {
    std::memset(storage.data() + (p - memory_.data()), kPoison, size);
  });
  return isPoison(storage.data(), storage.size());
}

bool Array::isPoison(const std::byte* data, size_t bytes) {
  return std::all_of(data, data + bytes, [](std::byte b) { return b == std::byte{kPoison}; });
}

void GuardedMemory::forbidWrites() {
  if (inner_ != nullptr) mprotect(inner_, inner_bytes_, PROT_READ);
}

void GuardedMemory::allowWrites() {
  if (inner_ != nullptr) mprotect(inner_, inner_bytes_, PROT_READ | PROT_WRITE);
}

}  // namespace support
