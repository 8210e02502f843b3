#include "fuse/brackets.h"

#include <algorithm>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fuse/brackets.cpp"
#include "runtime/simd_targets.h"

#include "hwy/foreach_target.h"

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace rbc::cpu {
namespace HWY_NAMESPACE {

// Number of samples compared at once.
#if HWY_TARGET == HWY_STATIC_TARGET
template <class Time>
constexpr int64_t kWindow = 8;
constexpr int kPeriod = 4;
#else
namespace hn = hwy::HWY_NAMESPACE;
template <class Time>
constexpr int64_t kWindow = HWY_MAX(16,
                                    static_cast<int64_t>(hn::MaxLanes(hn::ScalableTag<Time>())));
constexpr int kPeriod = 8;
#endif

// Number of the window's times that are <= q. Branchless: with a jittery clock a branch would be
// mispredicted.
template <class Row, class Time>
HWY_INLINE int64_t countBefore(const Row& times, int64_t base, Time q) {
#if HWY_TARGET != HWY_STATIC_TARGET
  if constexpr (std::is_pointer_v<Row>) {
    const hn::ScalableTag<Time> d;
    constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(hn::ScalableTag<Time>()));
    int64_t after = 0;
    for (int64_t k = 0; k < kWindow<Time>; k += kLanes) {
      after += static_cast<int64_t>(
          hn::CountTrue(d, hn::Gt(hn::LoadU(d, times + base + k), hn::Set(d, q))));
    }
    return kWindow<Time> - after;
  }
#endif
  int64_t count = 0;
  for (int64_t k = 0; k < kWindow<Time>; ++k) count += times[base + k] <= q;
  return count;
}

// The pace after a whole period that ended at bracket i. It is used if it changes little.
HWY_INLINE Pace after(const Pace& before, int64_t i) {
  constexpr int64_t kSteady = 16;
  const int64_t pace = i - before.origin;
  const int64_t change = pace - before.pace;
  return {i, pace, -kSteady <= change && change <= kSteady};
}

template <class Row, class Time>
class Finder {
 public:
  Finder(const Row& times, const TimesInOrder<Time>& row, Brackets<Time>* found)
      : times_(times), row_(row), n_(row.n), first_(row.first), rate_(row.rate), found_(found) {}

  // Queries 0 .. count - 1.
  HWY_INLINE void find(int count, Pace* pace) const {
    if (n_ < kWindow<Time>) {
      for (int k = 0; k < count; ++k) search(times_, row_, k, 0, found_);
      return;
    }
    Pace now = *pace;
    int k = 0;
    for (; k + kPeriod <= count; k += kPeriod) {
      period(k, kPeriod, now);
      const int64_t last = found_->i[k + kPeriod - 1];
      if (last >= 0) now = after(now, last);
    }
    if (k < count) {
      period(k, count - k, now);
      now.origin = std::max(found_->i[count - 1], now.origin);
    }
    *pace = now;
  }

 private:
  HWY_INLINE void period(int k, int count, const Pace& pace) const {
    if (pace.steady) {
      for (int j = 0; j < count; ++j) findNear(pace.origin + pace.pace * (j + 1) / kPeriod, k + j);
    } else {
      for (int j = 0; j < count; ++j)
        findNear(evenGuess(first_, found_->q[k + j], n_, rate_), k + j);
    }
  }

  HWY_INLINE void findNear(int64_t guess, int k) const {
    constexpr int64_t kCount = kWindow<Time>;
    const int64_t base = clampIndex(guess - (kCount / 2 - 1), 0, n_ - kCount);
    const int64_t count = countBefore(times_, base, found_->q[k]);
    if (count == 0 || count == kCount) {
      search(times_, row_, k, guess, found_);
    } else {
      set(times_, base + count - 1, k, found_);
    }
  }

  HWY_INLINE static void set(const Row& times, int64_t i, int k, Brackets<Time>* found) {
    found->i[k] = i;
    found->t0[k] = times[i];
    found->t1[k] = times[i + 1];
  }

  // Static, so that the members stay in registers.
  HWY_NOINLINE static void search(Row times, const TimesInOrder<Time>& row, int k, int64_t guess,
                                  Brackets<Time>* found) {
    const Time q = found->q[k];
    int64_t i = -1;
    if (row.n > 0 && q >= row.first && q <= row.last) {
      i = bracketOf(times, row.n, q, clampIndex(guess, 0, row.n - 1), row.rate).i;
    }
    if (i >= 0 && i + 1 < row.n) return set(times, i, k, found);
    // The last sample has no bracket, unless it answers the query itself.
    found->all = false;
    found->i[k] = i >= 0 && times[i] == q ? i : -1;
    found->t0[k] = found->t1[k] = q;
  }

  const Row times_;
  const TimesInOrder<Time>& row_;
  const int64_t n_;
  const Time first_;
  const float rate_;
  Brackets<Time>* const found_;
};

template <class Time>
void findAll(const TimesInOrder<Time>& row, const TimeRow<Time>& queries, const TimeOffset& offset,
             int count, Pace* pace, Brackets<Time>* found) {
  const Time ahead = offsetAs<Time>(offset);
  for (int k = 0; k < count; ++k) found->q[k] = TimeMath<Time>::shifted(queries[k], ahead);
  found->all = TimeMath<Time>::span(row.first, row.first) == 0;  // not -inf, which has no weight
  if (row.times.stride == 1) {
    Finder(row.times.first, row, found).find(count, pace);
  } else {
    Finder(row.times, row, found).find(count, pace);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace rbc::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rbc::cpu {

template <class Time>
FindBrackets<Time> findBrackets(SimdLevel level) {
  return RBC_AT_LEVEL(level, findAll<Time>);
}

template FindBrackets<float> findBrackets(SimdLevel);
template FindBrackets<double> findBrackets(SimdLevel);
template FindBrackets<int64_t> findBrackets(SimdLevel);

}  // namespace rbc::cpu
#endif  // HWY_ONCE
