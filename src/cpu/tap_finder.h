// The taps of many queries against one row of times; best for queries in order.
#pragma once

#include <cstdint>

#include "fuse_problem.h"
#include "locate.h"

namespace rbc {

// Guesses each bracket from those of the queries before, or from even spacing where these say
// nothing, and looks at the samples around the guess without a branch that a jittery clock would
// mispredict. What this misses is left to bracketOf(). Sorted queries take 60 % of the time of
// bracketOf() alone, random ones half.
template <class Time, class Row>
class TapFinder {
 public:
  using Place = Bracket<Time, int64_t>;

  TapFinder(const Row& times, int64_t n)
      : times_(times),
        n_(n),
        first_(n > 0 ? times[0] : Time()),
        rate_(n > 0 ? evenRate(first_, times[n - 1], n) : 0) {}

  // Searches once for all the methods that tap() is then asked for.
  Place bracket(Time q) {
    if (n_ < kWindow + 2) return search(times_, n_, q, first_, rate_, 0);
    const int64_t guess =
        steady_ ? origin_ + pace_ * (since_ + 1) / kPeriod : evenGuess(first_, q, n_, rate_);
    const int64_t base = clampIndex(guess - kWindow / 2, 0, n_ - (kWindow + 2));
    int64_t i = base;
    for (int64_t k = 1; k <= kWindow; ++k) i += times_[base + k] <= q;
    const Time t0 = times_[i];
    const Time t1 = times_[i + 1];
    if (t0 <= q && q < t1) {
      note(i);
      return {i, t0, t1};
    }
    const Place found = search(times_, n_, q, first_, rate_, clampIndex(guess, 0, n_ - 1));
    note(found.i < 0 ? clampIndex(guess, 0, n_ - 1) : found.i);
    return found;
  }

  Tap tap(const Place& place, Time q, const Rules<Time>& rules) const {
    return place.i >= 0 ? tapIn(place, n_, q, rules) : outside(times_, n_, q, rules);
  }

 private:
  static constexpr int64_t kWindow = 6;
  static constexpr int64_t kPeriod =
      4;  // queries a pace is taken over: none waits for the one before
  static constexpr int64_t kSteady = 16;  // how much the pace may change

  // These two are out of line and without `this`, so that the members stay in registers. The index
  // is -1 where q is NaN or lies outside.
  __attribute__((noinline)) static Place search(Row times, int64_t n, Time q, Time first,
                                                float rate, int64_t guess) {
    if (n == 0 || !(q >= first && q <= times[n - 1])) return {-1, q, q};
    return bracketOf(times, n, q, guess, rate);
  }

  __attribute__((noinline)) static Tap outside(Row times, int64_t n, Time q,
                                               const Rules<Time>& rules) {
    int64_t guess = -1;
    return tapOf(times, n, q, rules, &guess);
  }

  void note(int64_t i) {
    if (++since_ < kPeriod) return;
    const int64_t pace = i - origin_;
    steady_ = pace - pace_ <= kSteady && pace_ - pace <= kSteady;
    pace_ = pace;
    origin_ = i;
    since_ = 0;
  }

  const Row times_;
  const int64_t n_;
  const Time first_;
  const float rate_;
  int64_t origin_ = 0;  // the bracket found `since_` queries ago
  int64_t pace_ = 0;    // brackets passed in the kPeriod queries up to there
  int64_t since_ = 0;
  bool steady_ = false;
};

}  // namespace rbc
