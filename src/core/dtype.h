// The list of element types; visit_dtype.h calls functions by dtype. Besides its row here, a new dtype
// needs conversions in src/math (real.h, value_key.h, turn.h), instances of the kernels that list
// their dtypes (kernels/fuse/fuse_rows_instances.h, kernels/statistics/channel_pass_*.cu), and a name
// in the bindings (_library/dtypes.py, DType.java, DType.cs).
#pragma once

#include <cstddef>
#include <cstdint>

#include "robocache/tensor.h"

namespace rbc {

// Storage of the 16-bit floats; src/math/real.h converts them.
struct f16 {
  uint16_t bits;
};
struct bf16 {
  uint16_t bits;
};

// clang-format off
//  name    storage    DLPack code       printed as
#define RBC_FLOAT_DTYPES(X) \
  X(F16,    f16,       RBC_DTYPE_FLOAT,  "float16")  \
  X(BF16,   bf16,      RBC_DTYPE_BFLOAT, "bfloat16") \
  X(F32,    float,     RBC_DTYPE_FLOAT,  "float32")  \
  X(F64,    double,    RBC_DTYPE_FLOAT,  "float64")
#define RBC_INTEGER_DTYPES(X) \
  X(Bool,   uint8_t,   RBC_DTYPE_BOOL,   "bool")     \
  X(I8,     int8_t,    RBC_DTYPE_INT,    "int8")     \
  X(I16,    int16_t,   RBC_DTYPE_INT,    "int16")    \
  X(I32,    int32_t,   RBC_DTYPE_INT,    "int32")    \
  X(I64,    int64_t,   RBC_DTYPE_INT,    "int64")    \
  X(U8,     uint8_t,   RBC_DTYPE_UINT,   "uint8")    \
  X(U16,    uint16_t,  RBC_DTYPE_UINT,   "uint16")   \
  X(U32,    uint32_t,  RBC_DTYPE_UINT,   "uint32")   \
  X(U64,    uint64_t,  RBC_DTYPE_UINT,   "uint64")
// clang-format on
#define RBC_DTYPES(X) RBC_FLOAT_DTYPES(X) RBC_INTEGER_DTYPES(X)

enum class DType : uint8_t {
#define RBC_ENUMERATOR(name, storage, code, text) name,
  RBC_DTYPES(RBC_ENUMERATOR)
#undef RBC_ENUMERATOR
};

inline constexpr DType kFloatDTypes[] = {
#define RBC_VALUE(name, storage, code, text) DType::name,
    RBC_FLOAT_DTYPES(RBC_VALUE)};
inline constexpr DType kIntegerDTypes[] = {RBC_INTEGER_DTYPES(RBC_VALUE)};
#undef RBC_VALUE

// The storage of a dtype known at compile time.
template <DType kDType>
struct StorageOf;
#define RBC_STORAGE(name, storage, code, text) \
  template <>                                  \
  struct StorageOf<DType::name> {              \
    using type = storage;                      \
  };
RBC_DTYPES(RBC_STORAGE)
#undef RBC_STORAGE

template <class T>
struct Tag {
  using type = T;
};

namespace detail {

[[noreturn]] void failDispatch(DType dtype);
[[noreturn]] void failDType(rbcDType dtype, const char* argument);

// The sizes of all dtypes, 4 bits each. GCC would write an array to the stack in each call.
inline constexpr uint64_t kSizes = 0
#define RBC_SIZE(name, storage, code, text) \
  +(uint64_t{sizeof(storage)} << 4 * static_cast<int>(DType::name))
    RBC_DTYPES(RBC_SIZE)
#undef RBC_SIZE
    ;

inline constexpr int kCodes = 8;     // DLPack's codes, with room for unknown ones
inline constexpr int kMaxBytes = 8;  // of an element
inline constexpr uint8_t kUnknown = 255;

struct DTypesByCode {
  uint8_t dtypes[kCodes][kMaxBytes + 1] = {};  // [code][bytes of an element]

  constexpr DTypesByCode() {
    for (auto& row : dtypes) {
      for (uint8_t& dtype : row) dtype = kUnknown;
    }
#define RBC_ENTRY(name, storage, code, text) \
  dtypes[code][sizeof(storage)] = static_cast<uint8_t>(DType::name);
    RBC_DTYPES(RBC_ENTRY)
#undef RBC_ENTRY
  }
};
inline constexpr DTypesByCode kDTypesByCode;

}  // namespace detail

constexpr int sizeOf(DType dtype) noexcept {
  return static_cast<int>(detail::kSizes >> 4 * static_cast<int>(dtype) & 15);
}

constexpr bool isFloat(DType dtype) noexcept {
  return static_cast<size_t>(dtype) < sizeof kFloatDTypes / sizeof *kFloatDTypes;
}

const char* nameOf(DType dtype) noexcept;

// The dtype as the public struct.
rbcDType describe(DType dtype) noexcept;

// Returns false if the library has no such dtype.
inline bool findDType(rbcDType dtype, DType* found) noexcept {
  using namespace detail;
  if (dtype.lanes != 1 || dtype.code >= kCodes || dtype.bits % 8 != 0 ||
      dtype.bits > 8 * kMaxBytes) {
    return false;
  }
  const uint8_t entry = kDTypesByCode.dtypes[dtype.code][dtype.bits / 8];
  *found = static_cast<DType>(entry);
  return entry != kUnknown;
}

// Fails with DTYPE_MISMATCH if the library has no such dtype; the error names `argument`.
inline DType dtypeOf(rbcDType dtype, const char* argument) {
  DType found;
  if (findDType(dtype, &found)) return found;
  detail::failDType(dtype, argument);
}

}  // namespace rbc
