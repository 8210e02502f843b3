// Locates a query in a row of times, and chooses the sample or pair of samples that answers it.
//
// These are the rules that resample.h states; every operation on times goes through here, on both
// backends. The search reads times[0 .. n-1] and nothing else, for any times.
//
// Where samples are missing (valid_samples.h), the search goes through all times, and its result is
// moved to the nearest samples that are not missing. The first and the last sample of a row never
// are: see trimmed().
#pragma once

#include <type_traits>

#include "hermite.h"
#include "method.h"
#include "times.h"
#include "valid_samples.h"

namespace rbc {

// Handling of a query outside of the samples, and for windows of an element outside of the episode.
enum class Outside : int32_t { kHold = 0, kFill = 1, kExtrapolate = 2, kNeutral = 3 };

// The rules for a query, in the units of one time dtype. Only steps have a tolerance, only linear
// extrapolates.
template <class Time>
struct Rules {
  using Span = typename TimeMath<Time>::Span;
  Method method;
  Outside outside;
  bool has_tolerance;
  bool has_max_gap;
  Span tolerance;
  Span max_gap;
};

// The answer: sample `index` if weight is 0, else sample `index` and its right neighbour by
// `weight`; or nothing.
template <class Time, class Index>
struct SamplePosition {
  using Ratio = typename TimeMath<Time>::Ratio;

  Index index;  // -1: invalid; write the fill value
  Ratio weight;
  bool mask;

  static RBC_HD SamplePosition none() { return {-1, Ratio(0), false}; }
  static RBC_HD SamplePosition sample(Index i, bool mask) { return {i, Ratio(0), mask}; }
};

// The last i of 0 .. n-1 with times[i] <= q (or < q), or -1: gallops from `guess`, then bisects. n
// > 0.
template <bool kOrEqual, class Row, class Time, class Index>
RBC_HD Index lastBefore(const Row& times, Index n, Time q, Index guess) {
  const auto before = [&](Index i) { return kOrEqual ? times[i] <= q : times[i] < q; };
  Index low = guess;   // before(low), or -1
  Index high = guess;  // !before(high), or n
  if (before(guess)) {
    for (Index step = 1;; step *= 2) {
      high = step < n - low ? low + step : n;
      if (high == n || !before(high)) break;
      low = high;
    }
  } else {
    for (Index step = 1;; step *= 2) {
      low = step <= high ? high - step : -1;
      if (low < 0 || before(low)) break;
      high = low;
    }
  }
  while (high - low > 1) {
    const Index middle = low + (high - low) / 2;
    (before(middle) ? low : high) = middle;
  }
  return low;
}

// Samples per unit of time, if they were evenly spaced. Used only for guesses, which need not be
// exact.
template <class Time, class Index>
RBC_HD float evenRate(Time first, Time last, Index n) {
  const auto whole = static_cast<float>(TimeMath<Time>::span(last, first));
#if defined(__CUDA_ARCH__)
  return __fdividef(static_cast<float>(n - 1), whole);
#else
  return static_cast<float>(n - 1) / whole;
#endif
}

// `position` as an index in 0 .. n - 1; NaN gives the last.
template <class Index>
RBC_HD Index nearIndex(float position, Index n) {
  if (position <= 0) return 0;
  return position < static_cast<float>(n - 1) ? static_cast<Index>(position) : n - 1;
}

// Where q would be if the samples were evenly spaced, `rate` of them per unit of time: the first
// guess of a search without a better one.
template <class Time, class Index>
RBC_HD Index evenGuess(Time first, Time q, Index n, float rate) {
  return nearIndex(static_cast<float>(TimeMath<Time>::span(q, first)) * rate, n);
}

namespace detail {

template <class Row, class Valid, class Time, class Index>
RBC_HD SamplePosition<Time, Index> positionBefore(const Row& times, const Valid& samples, Index n,
                                                  Time q, Time first, const Rules<Time>& rules) {
  using Math = TimeMath<Time>;
  using SamplePosition = SamplePosition<Time, Index>;
  if (rules.has_tolerance) {
    const bool valid = rules.method != Method::kPrevious && Math::span(first, q) <= rules.tolerance;
    return valid ? SamplePosition::sample(0, true) : SamplePosition::none();
  }
  if (rules.outside == Outside::kHold) return SamplePosition::sample(0, false);
  if (rules.outside == Outside::kFill) return SamplePosition::none();
  const Index i = lastBefore<true>(times, n, first, Index{0});
  if (i < 0 || i + 1 >= n) return SamplePosition::none();
  const Index left = samples.upTo(i);
  const Index right = samples.from(i + 1, n);
  if (left < 0 || right >= n) return SamplePosition::none();
  return {left, -Math::ratio(Math::span(first, q), Math::span(times[right], first)), false};
}

template <class Row, class Valid, class Time, class Index>
RBC_HD SamplePosition<Time, Index> positionAfter(const Row& times, const Valid& samples, Index n,
                                                 Time q, Time last, const Rules<Time>& rules) {
  using Math = TimeMath<Time>;
  using SamplePosition = SamplePosition<Time, Index>;
  if (rules.has_tolerance) {
    const bool valid = rules.method != Method::kNext && Math::span(q, last) <= rules.tolerance;
    return valid ? SamplePosition::sample(n - 1, true) : SamplePosition::none();
  }
  if (rules.outside == Outside::kHold) return SamplePosition::sample(n - 1, false);
  if (rules.outside == Outside::kFill) return SamplePosition::none();
  const Index i = lastBefore<false>(times, n, last, n - 1);
  if (i < 0 || i + 1 >= n) return SamplePosition::none();
  const Index left = samples.upTo(i);
  if (left < 0) return SamplePosition::none();
  return {left, Math::ratio(Math::span(q, times[left]), Math::span(last, times[left])), false};
}

template <class Time, class Index>
RBC_HD SamplePosition<Time, Index> positionBetween(Index i, Index step, Time t0, Time t1, Time q,
                                                   const Rules<Time>& rules) {
  using Math = TimeMath<Time>;
  using SamplePosition = SamplePosition<Time, Index>;
  const auto after = Math::span(q, t0);
  const auto ahead = Math::span(t1, q);
  const auto gap = Math::span(t1, t0);
  if (isStep(rules.method)) {
    const bool earlier =
        rules.method == Method::kNearest ? after <= ahead : rules.method == Method::kPrevious;
    // Branchless: a branch could not be predicted.
    const Index sample = i + static_cast<Index>(!earlier) * step;
    if (rules.has_tolerance) {
      const bool valid = (earlier ? after : ahead) <= rules.tolerance;
      return valid ? SamplePosition::sample(sample, true) : SamplePosition::none();
    }
    if (rules.has_max_gap && gap > rules.max_gap) return SamplePosition::none();
    return SamplePosition::sample(sample, true);
  }
  if (rules.has_max_gap && gap > rules.max_gap) return SamplePosition::none();
  return {i, Math::ratio(after, gap), true};
}

}  // namespace detail

// The last sample at or before q and the one after it: i, times[i] and, unless i is the last,
// times[i + 1].
template <class Time, class Index>
struct Bracket {
  Index i;  // -1: no sample
  Time t0;
  Time t1;
};

// Looks at four samples around the guess first, all loaded at once, and if they miss, guesses again
// from there. On a GPU every dependent step of a search costs a memory latency. A clock that drifts
// at random is off by tens of samples at first, but by only one or two from nearby.
template <class Row, class Time, class Index>
RBC_HD Bracket<Time, Index> bracketOf(const Row& times, Index n, Time q, Index guess, float rate) {
  using Math = TimeMath<Time>;
  constexpr Index kWindow = 4;
  constexpr int kGuesses = 3;
  for (int attempt = 0; attempt < kGuesses && n >= kWindow; ++attempt) {
    const Index base = guess < 1 ? 0 : guess - 1 < n - kWindow ? guess - 1 : n - kWindow;
    Time t[kWindow];
    Index count = 0;
    for (Index k = 0; k < kWindow; ++k) t[k] = times[base + k];
    for (Index k = 0; k < kWindow; ++k) count += t[k] <= q ? 1 : 0;
    if (count > 0 && (count < kWindow || base + count == n)) {
      Bracket<Time, Index> bracket = {base + count - 1, t[0], t[1]};
      for (Index k = 1; k < kWindow; ++k) {
        if (count > k) {
          bracket.t0 = t[k];
          bracket.t1 = t[k + 1 < kWindow ? k + 1 : k];
        }
      }
      return bracket;
    }
    const Index edge = base + count;  // base, or the sample after the window
    const float ahead = count > 0 ? static_cast<float>(Math::span(q, t[kWindow - 1]))
                                  : -static_cast<float>(Math::span(t[0], q));
    guess = nearIndex(static_cast<float>(edge) + ahead * rate, n);
  }
  const Index i = lastBefore<true>(times, n, q, guess);
  if (i < 0) return {i, q, q};
  return {i, times[i], times[i + 1 < n ? i + 1 : i]};
}

// Moves the ends of a bracket to samples that are not missing, and returns the distance between
// them. i becomes -1 if no such sample is at or before it.
template <class Row, class Valid, class Time, class Index>
RBC_HD Index skipMissing(const Row& times, const Valid& samples, Index n,
                         Bracket<Time, Index>* bracket) {
  const Index i = bracket->i;
  const Index right = samples.from(i + 1, n);
  bracket->i = samples.upTo(i);
  if (bracket->i < 0) return 1;
  if (bracket->i != i) bracket->t0 = times[bracket->i];
  if (right > i + 1 && right < n) bracket->t1 = times[right];
  return right - bracket->i;
}

// The position of query q in the bracket that bracketOf() found, in a row of n times; the right
// sample is `step` after the left one.
template <class Time, class Index>
RBC_HD SamplePosition<Time, Index> positionIn(const Bracket<Time, Index>& bracket, Index n, Time q,
                                              const Rules<Time>& rules, Index step = 1) {
  using SamplePosition = SamplePosition<Time, Index>;
  if (bracket.t0 == q) return SamplePosition::sample(bracket.i, true);
  if (bracket.i + step >= n) return SamplePosition::none();  // times do not ascend
  return detail::positionBetween(bracket.i, step, bracket.t0, bracket.t1, q, rules);
}

// The same for a line without max_gap, and without branches.
template <class Time, class Index>
RBC_HD SamplePosition<Time, Index> positionOnLine(const Bracket<Time, Index>& bracket, Index n,
                                                  Time q) {
  using Math = TimeMath<Time>;
  const bool met = bracket.t0 == q;
  const bool valid = met | (bracket.i + 1 < n);
  const auto weight = Math::ratio(Math::span(q, bracket.t0), Math::span(bracket.t1, bracket.t0));
  return {valid ? bracket.i : Index{-1}, (met | !valid) ? 0 : weight, valid};
}

// The first and the last of a row of times.
template <class Time>
struct Ends {
  Time first;
  Time last;
};

// Whether no bracket answers a query: it is before the first time or after the last one, or NaN.
template <class Time>
RBC_HD bool isOutside(const Ends<Time>& ends, Time q) {
  // Not ||: the loads need not wait for each other.
  return (q < ends.first) | (q > ends.last) | TimeMath<Time>::isNaN(q);
}

// The position of such a query, in a row of n > 0 times.
template <class Row, class Time, class Index, class Valid>
RBC_HD SamplePosition<Time, Index> positionOutside(const Row& times, Index n,
                                                   const Ends<Time>& ends, Time q,
                                                   const Rules<Time>& rules, const Valid& samples) {
  if (q < ends.first) return detail::positionBefore(times, samples, n, q, ends.first, rules);
  return q > ends.last ? detail::positionAfter(times, samples, n, q, ends.last, rules)
                       : SamplePosition<Time, Index>::none();
}

// The position of query q in a row of n > 0 times, whose ends are known. `*guess` is where to
// search first (-1: unknown); it becomes the bracket that was found, a good guess for the next
// query. Index is int64_t, or int32_t where n fits.
template <class Row, class Time, class Index, class Valid = AllSamples>
RBC_HD SamplePosition<Time, Index> positionOf(const Row& times, Index n, const Ends<Time>& ends,
                                              Time q, const Rules<Time>& rules, Index* guess,
                                              const Valid& samples = Valid()) {
  using SamplePosition = SamplePosition<Time, Index>;
  if (isOutside(ends, q)) return positionOutside(times, n, ends, q, rules, samples);
  const float rate = evenRate(ends.first, ends.last, n);
  const Index start = *guess >= 0 && *guess < n ? *guess : evenGuess(ends.first, q, n, rate);
  Bracket<Time, Index> bracket = bracketOf(times, n, q, start, rate);
  if (bracket.i < 0) return SamplePosition::none();  // times hold a NaN
  *guess = bracket.i;
  Index step = 1;
  if constexpr (!Valid::kAll) {
    step = skipMissing(times, samples, n, &bracket);
    if (bracket.i < 0) return SamplePosition::none();
  }
  return positionIn(bracket, n, q, rules, step);
}

// The same for any row.
template <class Row, class Time, class Index, class Valid = AllSamples>
RBC_HD SamplePosition<Time, Index> positionOf(const Row& times, Index n, Time q,
                                              const Rules<Time>& rules, Index* guess,
                                              const Valid& samples = Valid()) {
  if (n <= 0) return SamplePosition<Time, Index>::none();
  return positionOf(times, n, Ends<Time>{times[0], times[n - 1]}, q, rules, guess, samples);
}

// The interval that begins at sample i, and the adjacent ones.
template <class Row, class Index>
RBC_HD Intervals intervalsAt(const Row& times, Index n, Index i,
                             const Neighbours<Index>& neighbours) {
  const auto length = [&](Index left, Index right) {
    const auto t0 = times[left];
    const auto t1 = times[right];
    using Math = TimeMath<std::remove_const_t<decltype(t0)>>;
    return t0 < t1 ? static_cast<double>(Math::span(t1, t0)) : 0.0;
  };
  return {neighbours.before >= 0 ? length(neighbours.before, i) : 0.0, length(i, neighbours.right),
          neighbours.after < n ? length(neighbours.right, neighbours.after) : 0.0};
}

// The weights of a query for the method's formula; `neighbours` has the neighbours of its sample.
// as<float>() rounds them for f32.
template <class Row, class Time, class Index>
RBC_HD Weights<double> weightsOf(Method method, const Row& times, Index n,
                                 const SamplePosition<Time, Index>& position,
                                 const Neighbours<Index>& neighbours) {
  if (position.weight != 0 && takesFour(method)) {
    const Intervals intervals = intervalsAt(times, n, position.index, neighbours);
    return method == Method::kCubic ? cubicWeights(position.weight, intervals)
                                    : pchipWeights(position.weight, intervals);
  }
  return {position.weight, {0, 0, 0, 0}, false, false};
}

// The same if no sample is missing.
template <class Row, class Time, class Index>
RBC_HD Weights<double> weightsOf(Method method, const Row& times, Index n,
                                 const SamplePosition<Time, Index>& position) {
  return weightsOf(method, times, n, position, neighboursOf(AllSamples{}, n, position.index));
}

}  // namespace rbc
