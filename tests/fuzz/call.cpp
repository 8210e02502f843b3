#include "fuzz/call.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>

namespace fuzz {
namespace {

constexpr int64_t kMaxBytes = 1 << 20;  // per block
constexpr int64_t kMaxElements = 1 << 17;

std::unique_ptr<int64_t[]> exactly(const std::vector<int64_t>& numbers) {
  std::unique_ptr<int64_t[]> copy(new int64_t[numbers.size()]);
  std::copy(numbers.begin(), numbers.end(), copy.get());
  return copy;
}

}  // namespace

int64_t Tensor::count() const {
  return std::accumulate(shape.get(), shape.get() + raw.ndim, int64_t{1}, std::multiplies<>());
}

Reach reachOf(const Tensor& tensor) {
  Reach reach;
  const rbcTensor& raw = tensor.raw;
  reach.impossible = true;
  if (raw.ndim < 0 || raw.ndim > RBC_TENSOR_MAX_NDIM || !isKnown(raw.dtype)) return reach;
  if (raw.ndim > 0 && raw.shape == nullptr) return reach;
  const int64_t size = support::sizeOf(raw.dtype);
  bool empty = false;
  int64_t compact = 1;
  int64_t whole = 0;
  for (int i = raw.ndim - 1; i >= 0; --i) {
    const int64_t extent = tensor.extent(i);
    if (extent < 0) return reach;
    empty |= extent == 0;
    if (extent < 2) continue;
    const int64_t stride =
        raw.strides != nullptr ? tensor.strides[static_cast<size_t>(i)] : compact;
    int64_t bytes = 0;
    if (__builtin_mul_overflow(extent - 1, stride, &bytes) ||
        __builtin_mul_overflow(bytes, size, &bytes) || bytes == INT64_MIN ||
        __builtin_add_overflow(whole, bytes < 0 ? -bytes : bytes, &whole) ||
        __builtin_mul_overflow(compact, extent, &compact)) {
      return reach;
    }
    (bytes < 0 ? reach.low : reach.high) += bytes;
  }
  reach.impossible = false;
  reach.count = empty ? 0 : compact;
  if (empty) reach.low = reach.high = 0;
  if (!empty && __builtin_add_overflow(reach.high, size, &reach.high)) reach.impossible = true;
  if (whole > INT64_MAX - size) reach.impossible = true;  // so that high - low can be computed
  return reach;
}

Tensor* Call::make(const std::string& name, rbcDType dtype, const std::vector<int64_t>& shape,
                   Role role) {
  Tensor& t = tensors_.emplace_back();
  t.name = name;
  t.raw.dtype = dtype;
  t.raw.ndim = static_cast<int32_t>(shape.size());
  t.shape = exactly(shape);
  t.raw.shape = t.shape.get();
  t.written = role != Role::kInput;
  t.read = role != Role::kOutput;
  return &t;
}

Tensor* Call::addPlain(const std::string& name, rbcDType dtype, const std::vector<int64_t>& shape,
                       Role role, Where where) {
  Tensor* t = make(name, dtype, shape, role);
  blocks_.emplace_back().on_host = where == Where::kHost;
  t->block = static_cast<int>(blocks_.size()) - 1;
  fit(t, true);
  return t;
}

Tensor* Call::add(Choices& choices, const std::string& name, rbcDType dtype,
                  const std::vector<int64_t>& shape, Role role, Where where) {
  Tensor* t = addPlain(name, dtype, shape, role, where);
  const int64_t size = support::sizeOf(dtype);
  const auto ndim = shape.size();
  if (choices.chance(40) && ndim > 0) {
    // The axes in some order, rows further apart than necessary, some in reverse.
    std::vector<size_t> order(ndim);
    std::iota(order.begin(), order.end(), size_t{0});
    if (choices.chance(40)) {
      for (size_t i = ndim - 1; i > 0; --i) {
        std::swap(order[i], order[static_cast<size_t>(choices.below(static_cast<int64_t>(i) + 1))]);
      }
    }
    std::vector<int64_t> strides(ndim);
    int64_t next = choices.chance(20) ? choices.between(2, 4) : 1;
    for (size_t i = ndim; i-- > 0;) {
      const size_t axis = order[i];
      strides[axis] = next;
      next = std::max<int64_t>(next * std::max<int64_t>(shape[axis], 1), 1);
      if (choices.chance(30)) next += choices.between(1, 5);
      if (choices.chance(15)) strides[axis] = -strides[axis];
      if (role == Role::kInput && choices.chance(6)) strides[axis] = 0;
    }
    t->strides = exactly(strides);
    t->raw.strides = t->strides.get();
  }
  if (choices.chance(20)) t->raw.byte_offset = static_cast<uint64_t>(choices.between(1, 9) * size);
  if (!fit(t)) {  // too large with these strides
    t->raw.strides = nullptr;
    t->raw.byte_offset = 0;
    fit(t, true);
  }
  return t;
}

bool Call::fit(Tensor* t, bool whatever) {
  const Reach reach = reachOf(*t);
  if (reach.impossible) return true;
  int64_t bytes = reach.high - reach.low;
  if (!whatever && (bytes > kMaxBytes || reach.count > kMaxElements)) return false;
  const auto offset = static_cast<int64_t>(t->raw.byte_offset);
  if (reach.count > 0 && (offset < 0 || offset > 4096)) return true;  // must be refused
  if (t->block < 0) return true;
  if (reach.count == 0) {
    t->shift = 0;
    return true;
  }
  // data is byte_offset before the first element, inside of the block or before it.
  Block& block = blocks_[static_cast<size_t>(t->block)];
  t->shift = -reach.low - offset;
  const auto end = static_cast<size_t>(bytes);
  const bool shared = std::any_of(tensors_.begin(), tensors_.end(), [&](const Tensor& other) {
    return &other != t && other.block == t->block;
  });
  if (!shared || block.bytes.size() < end) block.bytes.resize(end);
  return true;
}

Struct* Call::addStruct(const char* type, const void* elements, size_t size, int32_t count) {
  Struct& s = structs_.emplace_back();
  s.type = type;
  s.count = count;
  s.own_size = s.size = size * static_cast<size_t>(count);
  s.bytes.reset(new uint8_t[s.size]);
  if (s.size > 0) std::memcpy(s.bytes.get(), elements, s.size);
  return &s;
}

std::string Call::describe() const {
  const auto list = [](const int64_t* numbers, int32_t n) {
    std::string text = "[";
    for (int32_t i = 0; i < n; ++i) text += (i > 0 ? "," : "") + std::to_string(numbers[i]);
    return text + "]";
  };
  std::string text = name_ + "\n";
  for (const Tensor& t : tensors_) {
    text += "  " + t.name;
    if (t.absent) text += " (null)";
    const rbcDType d = t.raw.dtype;
    text += " {" + std::to_string(d.code) + "," + std::to_string(d.bits) + "," +
            std::to_string(d.lanes) + "} ndim " + std::to_string(t.raw.ndim);
    if (t.raw.ndim >= 0 && t.raw.ndim <= RBC_TENSOR_MAX_NDIM && t.raw.shape != nullptr) {
      text += " shape " + list(t.raw.shape, t.raw.ndim);
      if (t.raw.strides != nullptr) text += " strides " + list(t.raw.strides, t.raw.ndim);
    }
    text += " block " + std::to_string(t.block) + "+" + std::to_string(t.shift) + " offset " +
            std::to_string(t.raw.byte_offset) + (t.written ? " written" : "") + "\n";
  }
  for (const Struct& s : structs_) {
    text += "  " + s.type + " x " + std::to_string(s.count) + (s.absent ? " (null)" : "") + "\n";
  }
  return text;
}

}  // namespace fuzz
