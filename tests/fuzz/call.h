// A call of the library as data: memory blocks, tensors that lie in them, structs, and what to call.
// It can be placed into the memory of any context, again and again.
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

// Memory of exactly this many bytes, and what is in it before the call.
struct Block {
  std::vector<uint8_t> bytes;
  bool on_host = false;  // whatever the context's device is
};

struct Tensor {
  std::string name;
  rbcTensor raw = {};                // but for the address, which is that of the block and `shift`
  std::unique_ptr<int64_t[]> shape;  // exactly as long as it has to be
  std::unique_ptr<int64_t[]> strides;
  int block = -1;  // -1: none, the data is null
  int64_t shift = 0;
  bool written = false;
  bool read = false;
  bool absent = false;      // a null pointer stands for it
  bool own_device = false;  // raw.device is as it shall be, not where the block lies

  bool held = false;  // a struct points to it

  const rbcTensor* get() const { return absent ? nullptr : &raw; }
  // For a field of a struct.
  const rbcTensor* hold() {
    held = true;
    return &raw;
  }
  // A well-formed one of known dtype; what it has been spoilt into may not be.
  int64_t extent(int i) const { return shape[static_cast<size_t>(i)]; }
  int64_t count() const;
};

// One struct, or an array of them, in memory of exactly its size.
struct Struct {
  std::string type;
  std::unique_ptr<uint8_t[]> bytes;
  size_t size = 0;
  size_t own_size = 0;  // before anything was spoilt: no pointer lies beyond
  int32_t count = 1;    // elements
  bool absent = false;

  template <class T>
  T* get() const {
    return absent ? nullptr : reinterpret_cast<T*>(bytes.get());
  }
};

enum class Role { kInput, kOutput, kBoth };
enum class Where { kDevice, kHost };

// What a machine gives a call beside memory: the handles that belong to its context.
struct Handles {
  std::vector<rbcAccumulator_t> accumulators;
};

class Call {
 public:
  explicit Call(std::string name) : name_(std::move(name)) {}
  Call(const Call&) = delete;

  // A tensor of any layout, of zeros; nullptr stands for one that the call leaves out.
  Tensor* add(Choices& choices, const std::string& name, rbcDType dtype,
              const std::vector<int64_t>& shape, Role role, Where where = Where::kDevice);
  // A compact one without oddities.
  Tensor* addPlain(const std::string& name, rbcDType dtype, const std::vector<int64_t>& shape,
                   Role role, Where where = Where::kDevice);

  template <class T>
  Struct* add(const char* type, const T* elements, int32_t count = 1) {
    return addStruct(type, elements, sizeof(T), count);
  }

  // Fits the tensor's block to what it reaches. False, and nothing is changed, if that is more memory
  // than there is, so that a library may rightly touch what is not there.
  bool fit(Tensor* tensor) { return fit(tensor, false); }

  // What to call; the second may be null.
  std::function<rbcStatus_t(rbcContext_t, const Handles&)> run;
  std::function<rbcStatus_t(rbcContext_t, const Handles&, size_t*)> size;

  // Names of arguments that are neither tensors nor structs.
  std::vector<std::string> names;

  // An accumulator that a machine makes for the call; its index among the handles.
  std::vector<rbcAccumulatorParams> accumulators;

  // Whether the same call again would add to a handle's state.
  bool adds_up = false;

  // The struct whose flags take RBC_FLAG_CHECK_TIMES: without it bad times give unspecified values.
  Struct* checking = nullptr;

  const std::string& name() const { return name_; }
  std::deque<Tensor>& tensors() { return tensors_; }
  std::deque<Struct>& structs() { return structs_; }
  std::vector<Block>& blocks() { return blocks_; }
  const std::vector<Block>& blocks() const { return blocks_; }
  // Tells what the tensors and the structs are, for a report.
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

// The bytes from the first element's that the tensor's elements reach, low <= 0 <= high.
struct Reach {
  int64_t low = 0;
  int64_t high = 0;
  int64_t count = 1;
  bool impossible = false;  // negative extents, an overflow, no such dtype: it must be refused
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
