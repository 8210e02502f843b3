// Checks of dtypes, and one element as bits.
#pragma once

#include "dtype.h"
#include "view.h"

namespace rbc {

// ---- A number as an element of a tensor.

// Returns the bits of an element, in the low bytes. Floats are rounded. For bool and integers the
// number must be representable; otherwise the call fails with INVALID_ARGUMENT.
uint64_t elementBits(double value, DType dtype, const char* argument);

// ---- What dtypes an argument may have. Each fails as "mask: dtype is float32, expected bool or
// uint8".

[[noreturn]] void failDType(const View& view, const char* argument, const char* expected);

inline void requireDType(const View& view, const char* argument, bool fits, const char* expected) {
  if (!fits) failDType(view, argument, expected);
}

inline void requireDType(const View& view, const char* argument, DType expected) {
  if (view.dtype != expected) failDType(view, argument, nameOf(expected));
}

inline void requireFloat(const View& view, const char* argument) {
  requireDType(view, argument, isFloat(view.dtype), "a float");
}

// For constants of a computation, which f16 and bf16 would round.
inline void requireF32OrF64(const View& view, const char* argument) {
  requireDType(view, argument, view.dtype == DType::F32 || view.dtype == DType::F64,
               "float32 or float64");
}

inline void requireIndexes(const View& view, const char* argument) {
  requireDType(view, argument, view.dtype == DType::I32 || view.dtype == DType::I64,
               "int32 or int64");
}

inline void requireMask(const View& view, const char* argument) {
  requireDType(view, argument, view.dtype == DType::Bool || view.dtype == DType::U8,
               "bool or uint8");
}

inline void requireTimes(const View& view, const char* argument) {
  requireDType(view, argument,
               view.dtype == DType::F32 || view.dtype == DType::F64 || view.dtype == DType::I64,
               "float32, float64 or int64");
}

}  // namespace rbc
