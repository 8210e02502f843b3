#include "fuzz/fill.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

namespace fuzz {
namespace {

uint16_t halfOf(float value) {  // rounds towards zero: any number will do
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  const int exponent = static_cast<int>((bits >> 23) & 0xFF) - 112;
  if (std::isnan(value)) return 0x7E00;
  if (exponent >= 31) return static_cast<uint16_t>(sign | 0x7C00);
  if (exponent <= 0) return sign;
  return static_cast<uint16_t>(sign | exponent << 10 | ((bits >> 13) & 0x3FF));
}

void put(uint8_t* at, rbcDType dtype, double value) {
  if (dtype.code == RBC_DTYPE_FLOAT && dtype.bits == 64) {
    std::memcpy(at, &value, sizeof value);
  } else if (support::isFloat(dtype)) {
    const auto narrow = static_cast<float>(value);
    uint32_t bits = 0;
    std::memcpy(&bits, &narrow, sizeof bits);
    const uint16_t half =
        dtype.code == RBC_DTYPE_BFLOAT ? static_cast<uint16_t>(bits >> 16) : halfOf(narrow);
    if (dtype.bits == 32) std::memcpy(at, &bits, sizeof bits);
    if (dtype.bits == 16) std::memcpy(at, &half, sizeof half);
  } else {
    // 0 if the double is not in the range of integers.
    const bool fits = value > -9e18 && value < 9e18;
    const int64_t integer = fits ? static_cast<int64_t>(value) : 0;
    const int64_t kept = dtype.code == RBC_DTYPE_BOOL ? (integer != 0) : integer;
    std::memcpy(at, &kept, static_cast<size_t>(support::sizeOf(dtype)));
  }
}

// f(address, index) of each element.
template <class F>
void eachAt(Call& call, const Tensor& t, F&& f) {
  auto& bytes = call.blocks()[static_cast<size_t>(t.block)].bytes;
  each(t, [&](int64_t at, const int64_t* index) { f(&bytes[static_cast<size_t>(at)], index); });
}

}  // namespace

rbcDType anyFloat(Choices& choices) { return choices.pick(support::kFloatDTypes); }
rbcDType anyReal(Choices& choices) { return choices.pick({support::kF32, support::kF64}); }
rbcDType anyIndex(Choices& choices) { return choices.pick({support::kI32, support::kI64}); }
rbcDType anyFlag(Choices& choices) { return choices.pick({support::kBool, support::kU8}); }

void fillReals(Call& call, Tensor& t, Choices& choices, double low, double high) {
  const bool odd = choices.chance(25);
  support::Random random(choices.bits());
  const double infinity = std::numeric_limits<double>::infinity();
  const double specials[] = {0.0, -0.0, infinity, -infinity, std::nan(""), 1e-40, 1e30, -1e300};
  eachAt(call, t, [&](uint8_t* p, const int64_t*) {
    put(p, t.raw.dtype,
        odd && random.chance(0.2) ? random.pick(specials) : random.uniform(low, high));
  });
}

void fillBits(Call& call, Tensor& t, Choices& choices) {
  support::Random random(choices.bits());
  eachAt(call, t, [&](uint8_t* p, const int64_t*) {
    const uint64_t bits = t.raw.dtype.code == RBC_DTYPE_BOOL ? random.bits() & 1 : random.bits();
    std::memcpy(p, &bits, static_cast<size_t>(support::sizeOf(t.raw.dtype)));
  });
}

void fillIntegers(Call& call, Tensor& t, Choices& choices, int64_t low, int64_t high) {
  support::Random random(choices.bits());
  const int64_t n = std::max<int64_t>(high - low + 1, 1);
  eachAt(call, t, [&](uint8_t* p, const int64_t*) {
    put(p, t.raw.dtype, static_cast<double>(low + random.below(n)));
  });
}

void fillTimes(Call& call, Tensor& t, Choices& choices) {
  const double step = choices.pick({0.1, 1.0, 1.0, 2.0, 1000.0, 1e-6});
  const double first = choices.pick({0.0, 0.0, -3.0, 1e9});
  const bool odd = choices.chance(10);
  support::Random random(choices.bits());
  double now = first;
  eachAt(call, t, [&](uint8_t* p, const int64_t* index) {
    if (t.raw.ndim == 0 || index[t.raw.ndim - 1] == 0) now = first;
    now += step * (random.chance(0.2) ? 0 : random.uniform(0, 2));
    if (odd && random.chance(0.1)) now -= 3 * step;
    put(p, t.raw.dtype, odd && random.chance(0.05) ? std::nan("") : now);
  });
}

void fillMask(Call& call, Tensor& t, Choices& choices) {
  support::Random random(choices.bits());
  const double missing = choices.pick({0.0, 0.2, 0.8, 1.0});
  eachAt(call, t, [&](uint8_t* p, const int64_t*) { *p = random.chance(missing) ? 0 : 1; });
}

void fillOffsets(Call& call, Tensor& t, Choices& choices, int64_t n) {
  support::Random random(choices.bits());
  std::vector<int64_t> cuts(static_cast<size_t>(t.extent(0)));
  for (int64_t& cut : cuts) cut = random.below(n + 1);
  std::sort(cuts.begin(), cuts.end());
  if (!cuts.empty() && choices.chance(80)) {
    cuts.front() = 0;
    cuts.back() = n;
  }
  eachAt(call, t, [&](uint8_t* p, const int64_t* index) {
    put(p, t.raw.dtype, static_cast<double>(cuts[static_cast<size_t>(index[0])]));
  });
}

void fillConstant(Call& call, Tensor& t, double value) {
  fillWhere(call, t, value, [](int64_t) { return true; });
}

void fillWhere(Call& call, Tensor& t, double value, const std::function<bool(int64_t)>& chosen) {
  int64_t n = 0;
  eachAt(call, t, [&](uint8_t* p, const int64_t*) {
    if (chosen(n++)) put(p, t.raw.dtype, value);
  });
}

}  // namespace fuzz
