// The answer to a query where samples may not exist for it, by the rules of resample.h: arrivals,
// and RBC_FLAG_CAUSAL.
#pragma once

#include "arrivals.h"
#include "locate.h"

namespace rbc {

// Whether a method looks back only, and how old its sample may be.
template <class Time>
struct AgeRule {
  using Span = typename TimeMath<Time>::Span;
  bool causal;
  bool has_max_age;
  Span max_age;
};

// A position, with the neighbours of its sample if its weight is not 0.
template <class Time, class Index>
struct Answer {
  SamplePosition<Time, Index> position;
  Neighbours<Index> neighbours;

  static RBC_HD Answer alone(const SamplePosition<Time, Index>& position) {
    return {position, {position.index, position.index, position.index}};
  }
};

namespace detail {

// A row without its first samples.
template <class Row, class Index>
struct RowFrom {
  const Row& row;
  Index begin;
  RBC_HD auto operator[](Index i) const { return row[begin + i]; }
};

template <class Row, class Time, class Index, class Samples>
RBC_HD Answer<Time, Index> lookBack(const Row& times, Index n, Time q, const Rules<Time>& rules,
                                    const AgeRule<Time>& age, const Samples& samples,
                                    Index* guess) {
  using Math = TimeMath<Time>;
  using SamplePosition = SamplePosition<Time, Index>;
  Index start = *guess;
  if (start < 0 || start >= n) {
    const Time first = times[0];
    start = evenGuess(first, q, n, evenRate(first, times[n - 1], n));
  }
  const Index i = lastBefore<true>(times, n, q, start);
  if (i >= 0) *guess = i;
  const Index left = samples.upTo(i);
  if (left < 0) return Answer<Time, Index>::alone(SamplePosition::none());
  const Time t0 = times[left];
  const auto after = Math::span(q, t0);
  const bool valid = !age.has_max_age || after <= age.max_age;
  if (!valid && rules.outside == Outside::kFill) {
    return Answer<Time, Index>::alone(SamplePosition::none());
  }
  auto answer = Answer<Time, Index>::alone(SamplePosition::sample(left, valid));
  if (t0 == q || rules.method == Method::kPrevious) return answer;
  const Index right = samples.from(i + 1, n);
  if (right >= n) return answer;
  const Time t1 = times[right];
  const auto gap = Math::span(t1, t0);
  if (rules.has_max_gap && gap > rules.max_gap) return answer;
  if (rules.method == Method::kNearest) {
    if (after > Math::span(t1, q)) answer.position.index = right;
    return answer;
  }
  answer.position.weight = Math::ratio(after, gap);
  answer.neighbours.right = right;
  if (takesFour(rules.method)) {
    answer.neighbours.before = samples.upTo(left - 1);
    answer.neighbours.after = samples.from(right + 1, n);
  }
  return answer;
}

}  // namespace detail

// The answer to query q in a row of n times. `samples` are those that exist: ArrivedSamples, or
// FirstSamples. `*guess` is as for positionOf(), but among all samples.
template <class Row, class Time, class Index, class Samples>
RBC_HD Answer<Time, Index> answerTo(const Row& times, Index n, Time q, const Rules<Time>& rules,
                                    const AgeRule<Time>& age, const Samples& samples,
                                    Index* guess) {
  using SamplePosition = SamplePosition<Time, Index>;
  if (n <= 0 || TimeMath<Time>::isNaN(q)) return Answer<Time, Index>::alone(SamplePosition::none());
  if (age.causal) return detail::lookBack(times, n, q, rules, age, samples, guess);
  // The row from the first to the last sample that exists.
  const Index begin = samples.from(0, n);
  const Index count = begin < n ? samples.upTo(n - 1) - begin + 1 : 0;
  if (count <= 0) return Answer<Time, Index>::alone(SamplePosition::none());
  const auto part = samples.shifted(begin);
  Index own = *guess - begin;
  SamplePosition position =
      positionOf(detail::RowFrom<Row, Index>{times, begin}, count, q, rules, &own, part);
  if (own >= 0) *guess = begin + own;
  if (position.index < 0) return Answer<Time, Index>::alone(position);
  Neighbours<Index> neighbours = {position.index, position.index, position.index};
  if (position.weight != 0) neighbours = neighboursOf(part, count, position.index);
  position.index += begin;
  return {position,
          {neighbours.before >= 0 ? begin + neighbours.before : -1, begin + neighbours.right,
           neighbours.after < count ? begin + neighbours.after : n}};
}

}  // namespace rbc
