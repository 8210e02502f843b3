// A call of the library as data: memory blocks, tensors in them, structs, and the function. It can
// be placed repeatedly in the memory of any context.
#pragma once

#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "fuzz/choices.h"
#include "fuzz/entries.h"
#include "support/dtypes.h"

namespace fuzz {

// Memory of exactly this many bytes, with its contents before the call.
struct Block {
  std::vector<uint8_t> bytes;
  bool on_host = false;  // for any device of the context
};

struct Tensor {
  std::string name;
  rbcTensor raw = {};                // except the address, which is the block's plus `shift`
  std::unique_ptr<int64_t[]> shape;  // exactly as long as necessary
  std::unique_ptr<int64_t[]> strides;
  int block = -1;  // -1: none, the data is null
  int64_t shift = 0;
  bool written = false;
  bool read = false;
  bool absent = false;      // a null pointer is passed instead
  bool own_device = false;  // raw.device is already set, and may differ from the block's device

  bool held = false;  // a struct points to it

  const rbcTensor* get() const { return absent ? nullptr : &raw; }
  // For a field of a struct.
  const rbcTensor* hold() {
    held = true;
    return &raw;
  }
  // Size of a well-formed tensor with a known dtype; not for one that spoil() has changed.
  int64_t extent(int i) const { return shape[static_cast<size_t>(i)]; }
  int64_t count() const;
};

// One struct, or an array of structs, in memory of exactly its size.
struct Struct {
  std::string type;
  std::unique_ptr<uint8_t[]> bytes;
  size_t size = 0;
  size_t own_size = 0;  // the original size: no pointer is beyond it
  int32_t count = 1;    // number of elements
  bool absent = false;

  template <class T>
  T* get() const {
    return absent ? nullptr : reinterpret_cast<T*>(bytes.get());
  }
};

enum class Role { kInput, kOutput, kBoth };
enum class Where { kDevice, kHost };

// Handles that a machine passes to a call: they belong to its context.
struct Handles {
  std::vector<rbcAccumulator_t> accumulators;
};

class Call {
 public:
  explicit Call(std::string name) : name_(std::move(name)) {}
  Call(const Call&) = delete;

  // A tensor of zeros in any layout; nullptr for one that the call omits.
  Tensor* add(Choices& choices, const std::string& name, rbcDType dtype,
              const std::vector<int64_t>& shape, Role role, Where where = Where::kDevice);
  // A compact tensor without unusual properties.
  Tensor* addPlain(const std::string& name, rbcDType dtype, const std::vector<int64_t>& shape,
                   Role role, Where where = Where::kDevice);

  template <class T>
  Struct* add(const char* type, const T* elements, int32_t count = 1) {
    return addStruct(type, elements, sizeof(T), count);
  }

  // Fits the tensor's block to the bytes that it reaches. Returns false, without a change, if no
  // memory is large enough; a library may then access memory that does not exist.
  bool fit(Tensor* tensor) { return fit(tensor, false); }

  // The functions to call; the second may be null.
  std::function<rbcStatus_t(rbcContext_t, const Handles&)> run;
  std::function<rbcStatus_t(rbcContext_t, const Handles&, size_t*)> size;

  // Names of arguments that are neither tensors nor structs.
  std::vector<std::string> names;

  // Accumulators that a machine makes for the call; a struct refers to them by index.
  std::vector<rbcAccumulatorParams> accumulators;

  // Whether repeating the call would add to a handle's state.
  bool adds_up = false;

  // The struct whose flags may have RBC_FLAG_CHECK_TIMES: without it bad times give unspecified
  // values.
  Struct* checking = nullptr;

  const std::string& name() const { return name_; }
  std::deque<Tensor>& tensors() { return tensors_; }
  std::deque<Struct>& structs() { return structs_; }
  std::vector<Block>& blocks() { return blocks_; }
  const std::vector<Block>& blocks() const { return blocks_; }
  // Describes the tensors and the structs, for a report.
  std::string describe() const;

 private:
  bool fit(Tensor* tensor, bool whatever);
  Struct* addStruct(const char* type, const void* elements, size_t size, int32_t count);
  Tensor* make(const std::string& name, rbcDType dtype, const std::vector<int64_t>& shape,
               Role role);

  std::string name_;
  std::deque<Tensor> tensors_;
  std::deque<Struct> structs_;
  std::vector<Block> blocks_;
};

constexpr bool isKnown(rbcDType d) {
  if (d.lanes != 1) return false;
  switch (d.code) {
    case RBC_DTYPE_INT:
    case RBC_DTYPE_UINT: return d.bits == 8 || d.bits == 16 || d.bits == 32 || d.bits == 64;
    case RBC_DTYPE_FLOAT: return d.bits == 16 || d.bits == 32 || d.bits == 64;
    case RBC_DTYPE_BFLOAT: return d.bits == 16;
    case RBC_DTYPE_BOOL: return d.bits == 8;
    default: return false;
  }
}

// The bytes that the tensor's elements reach, relative to the first element; low <= 0 <= high.
struct Reach {
  int64_t low = 0;
  int64_t high = 0;
  int64_t count = 1;
  bool impossible = false;  // negative extents, an overflow, or an unknown dtype: must be refused
};
Reach reachOf(const Tensor& tensor);

// f(place in the block, index) of each element, in row-major order.
template <class F>
void each(const Tensor& tensor, F&& f) {
  const int ndim = tensor.raw.ndim;
  const int64_t size = support::sizeOf(tensor.raw.dtype);
  int64_t stride[RBC_TENSOR_MAX_NDIM] = {};
  int64_t compact = 1;
  int64_t count = 1;
  for (int i = ndim - 1; i >= 0; --i) {
    stride[i] = tensor.raw.strides != nullptr ? tensor.strides[static_cast<size_t>(i)] : compact;
    compact *= tensor.extent(i);
    count *= tensor.extent(i);
  }
  int64_t index[RBC_TENSOR_MAX_NDIM] = {};
  const int64_t first = tensor.shift + static_cast<int64_t>(tensor.raw.byte_offset);
  for (int64_t n = 0; n < count; ++n) {
    int64_t at = 0;
    for (int i = 0; i < ndim; ++i) at += tensor.extent(i) > 1 ? index[i] * stride[i] : 0;
    f(first + at * size, static_cast<const int64_t*>(index));
    for (int i = ndim - 1; i >= 0 && ++index[i] == tensor.extent(i); --i) index[i] = 0;
  }
}

}  // namespace fuzz
