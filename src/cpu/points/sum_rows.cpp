#include "points/sum_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "points/sum_rows.cpp"
#include "runtime/simd_targets.h"
// clang-format off
#include "hwy/foreach_target.h"
// clang-format on
#include "hwy/highway.h"
#include "voxel_reduce.h"

HWY_BEFORE_NAMESPACE();
namespace rbc::cpu {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_STATIC_TARGET

// Without vectors, two passes over integers are as fast.
SumRows sumRowsHere() { return nullptr; }

#else

namespace hn = hwy::HWY_NAMESPACE;

using Doubles = hn::CappedTag<double, 4>;
using Floats = hn::Rebind<float, Doubles>;

// The first `count` lanes, the others 0; count >= 1.
template <class D>
hn::Vec<D> loadSome(D d, const float* from, int64_t count) {
  if (count >= static_cast<int64_t>(hn::Lanes(d))) return hn::LoadU(d, from);
  const auto some = hn::FirstN(d, static_cast<size_t>(count));
#if HWY_ARCH_X86
  return hn::MaskedLoad(some, d, from);  // reads nothing else
#else
  static_assert(hn::MaxLanes(d) <= 2, "the first lane is all there is of fewer");
  return hn::IfThenElseZero(some, hn::Set(d, *from));
#endif
}

template <class D>
void storeSome(hn::Vec<D> v, D d, float* to, int64_t count) {
  if (count >= static_cast<int64_t>(hn::Lanes(d))) {
    hn::StoreU(v, d, to);
    return;
  }
#if HWY_ARCH_X86
  hn::BlendedStore(v, hn::FirstN(d, static_cast<size_t>(count)), d, to);
#else
  *to = hn::GetLane(v);
#endif
}

// The sum of one number is the number, except for -0, as in sumOfOne. Returns false if a number is
// not finite.
bool copyRow(const SummedRows& rows, float* out) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const float* row = rows.data + rows.offsets[rows.points[0]];
  auto finite = hn::FirstN(d, static_cast<size_t>(lanes));
  for (int64_t f = 0; f < rows.features; f += lanes) {
    const auto x = loadSome(d, row + f, rows.features - f);
    finite = hn::And(finite, hn::Eq(hn::Sub(x, x), hn::Zero(d)));
    storeSome(hn::Add(x, hn::Zero(d)), d, out + f, rows.features - f);
  }
  return hn::AllTrue(d, finite);
}

// All numbers are multiples of 2^(least - 150) and less than 2^(most - 126), where least and most
// are the stored exponents of the smallest nonzero and the largest magnitude. With n <= 2^c of
// them, every partial sum is a multiple of the former and less than 2^(most - 126 + c). So a double
// holds it, in any order of additions, if the two exponents differ by at most 53 - 24 - c. The
// fixed point of FixedSum, which has 62 bits below that bound, then holds the same numbers: both
// give the exact sum.
bool sumRows(const SummedRows& rows, bool mean, float* out) {
  if (rows.count == 1) return copyRow(rows, out);
  const Doubles d;
  const Floats d32;
  const hn::Rebind<uint32_t, Doubles> u32;
  const hn::Rebind<int32_t, Doubles> i32;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int spread = 29 - ceilLog2(rows.count);
  const auto one = hn::Set(u32, 1);
  for (int64_t f = 0; f < rows.features; f += lanes) {
    const int64_t wanted = rows.features - f;
    auto sum = hn::Zero(d);
    auto most = hn::Zero(u32);
    auto least = hn::Set(u32, ~0u);
    for (int64_t i = 0; i < rows.count; ++i) {
      const auto x = loadSome(d32, rows.data + rows.offsets[rows.points[i]] + f, wanted);
      const auto magnitude = hn::And(hn::BitCast(u32, x), hn::Set(u32, 0x7fffffff));
      most = hn::Max(most, magnitude);
      least = hn::Min(least, hn::Sub(magnitude, one));  // zero is the largest
      sum = hn::Add(sum, hn::PromoteTo(d, x));
    }
    const auto top = hn::BitCast(i32, hn::ShiftRight<23>(most));
    const auto bottom = hn::BitCast(i32, hn::ShiftRight<23>(hn::Add(least, one)));
    auto bad = hn::Gt(top, hn::Set(i32, 254));
    bad = hn::Or(bad, hn::Gt(hn::Sub(top, bottom), hn::Set(i32, spread)));
    const auto some = hn::Gt(hn::BitCast(i32, most), hn::Zero(i32));
    bad = hn::Or(bad, hn::And(some, hn::Lt(bottom, hn::Set(i32, 1))));  // subnormal
    if (!hn::AllFalse(i32, bad)) return false;
    if (mean) sum = hn::Div(sum, hn::Set(d, static_cast<double>(rows.count)));
    storeSome(hn::DemoteTo(d32, sum), d32, out + f, wanted);
  }
  return true;
}

SumRows sumRowsHere() { return sumRows; }

#endif

}  // namespace HWY_NAMESPACE
}  // namespace rbc::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rbc::cpu {

SumRows sumRowsFor(SimdLevel level) { return RBC_AT_LEVEL(level, sumRowsHere)(); }

}  // namespace rbc::cpu
#endif  // HWY_ONCE
