// Values as unsigned integers in the same order, to compare, count and sort them.
#pragma once

#include <cstdint>
#include <type_traits>

#include "number.h"
#include "platform.h"
#include "real.h"

namespace rbc {

template <class Number>
using ValueKey = std::conditional_t<sizeof(Number) == 4, uint32_t, uint64_t>;

// The key of a finite number; -0 has the key of +0.
template <class Number>
RBC_HD ValueKey<Number> valueKey(Number x) {
  using Key = ValueKey<Number>;
  constexpr int kSignBit = 8 * static_cast<int>(sizeof(Key)) - 1;
  const Key bits = bitCast<Key>(x + Number(0));  // -0 + 0 is +0
  return bits >> kSignBit != 0 ? static_cast<Key>(~bits) : bits | Key{1} << kSignBit;
}

template <class Number>
RBC_HD Number fromValueKey(ValueKey<Number> key) {
  using Key = ValueKey<Number>;
  constexpr int kSignBit = 8 * static_cast<int>(sizeof(Key)) - 1;
  return bitCast<Number>(key >> kSignBit != 0 ? static_cast<Key>(key ^ Key{1} << kSignBit)
                                              : static_cast<Key>(~key));
}

// Whether x is finite.
RBC_HD bool isFinite(float x) { return (bitCast<uint32_t>(x) & 0x7f800000u) != 0x7f800000u; }
RBC_HD bool isFinite(double x) { return (bitCast<uint64_t>(x) >> 52 & 0x7ff) != 0x7ff; }

// The number of leading bits of a key that distinguish the values of a dtype; the lower bits follow
// from the sign. For integers these are a sign, the exponent, and one bit less than the integer
// has, as the first is implied.
RBC_HD int keyBits(DType dtype) {
  switch (dtype) {
    case DType::F16: return 19;
    case DType::BF16: return 16;
    case DType::F32: return 32;
    case DType::Bool:
    case DType::I8:
    case DType::U8: return 16;
    case DType::I16:
    case DType::U16: return 24;
    case DType::I32:
    case DType::U32: return 43;
    default: return 64;
  }
}

// Bits of the whole key: 32 for f32, 64 for f64.
RBC_HD int keyWidth(DType dtype) { return computesInDouble(dtype) ? 64 : 32; }

}  // namespace rbc
