// One stream's part in a fusion: finds the samples for a tile of queries, then computes their rows
// of channels, segment by segment.
#pragma once

#include <algorithm>
#include <cstddef>

#include "ceil_div.h"
#include "fuse/brackets.h"
#include "fuse/rows.h"
#include "fuse_problem.h"

namespace rbc::cpu {

struct Plan {
  const FuseProblem& problem;
  SimdLevel simd;
  int64_t out_size;  // bytes of an element
  bool large;        // too large for the caches
};

// Channels begin .. end - 1 of a stream.
struct ChannelRange {
  int64_t begin;
  int64_t end;
};

// About 4 KiB in flight: cold rows of 512 bytes take half the time, rows of 1 KiB in L3 two thirds.
// Beyond 32 KiB a row's first lines would be evicted before their use. Rows of a cache line are
// faster without: the processor detects their order.
inline int rowsAhead(int64_t row_bytes) {
  if (row_bytes <= 64 || row_bytes > 32 << 10) return 0;
  return static_cast<int>(std::clamp<int64_t>((4 << 10) / std::max<int64_t>(row_bytes, 1), 1, 16));
}

// The part of a segment in a range of channels. Quaternions are not split.
inline ChannelRange cutSegment(const ChannelSegment& s, const ChannelRange& range) {
  const int64_t whole = s.method == Method::kSlerp ? 4 : 1;
  const auto cut = [&](int64_t channel) {
    const int64_t inside = clampIndex(channel - s.begin, 0, s.count);
    return s.begin + ceilDiv(inside, whole) * whole;
  };
  return {cut(range.begin), cut(range.end)};
}

// Non-temporal stores must fill whole cache lines: rows that begin within a line would double the
// time.
inline bool isNontemporal(const Plan& plan, int64_t first_channel, int64_t channels) {
  constexpr int64_t kLine = 64;
  const FuseProblem& p = plan.problem;
  const auto whole = [&](int64_t elements) { return elements * plan.out_size % kLine == 0; };
  return plan.large && p.out_stride[2] == 1 && reinterpret_cast<uintptr_t>(p.out) % kLine == 0 &&
         whole(first_channel) && whole(channels) && whole(p.out_stride[0]) &&
         whole(p.out_stride[1]);
}

// Fuses a range of a stream's channels.
template <class Time>
class StreamRun {
 public:
  StreamRun(const Plan& plan, int number, const ChannelRange& channels)
      : plan_(plan),
        problem_(plan.problem),
        stream_(plan.problem.streams[number]),
        number_(number),
        in_size_(sizeOf(stream_.values_dtype)),
        mask_(problem_.valid != nullptr && channels.begin == 0
                  ? problem_.valid + number * problem_.valid_stride[2]
                  : nullptr),
        values_in_mask_(mask_ != nullptr && hasQuaternions(problem_, stream_)) {
    const bool affine = isAffine();
    const bool adjoin = stream_.values_stride[2] == 1 && problem_.out_stride[2] == 1;
    for (int i = 0; i < stream_.num_segments; ++i) {
      const ChannelSegment& s = problem_.segments[stream_.first_segment + i];
      const ChannelRange range = cutSegment(s, channels);
      if (range.begin == range.end && mask_ == nullptr) continue;
      segments_[num_segments_++] = {
          rulesOf<Time>(stream_, s.method),
          stream_.first_segment + i,
          range,
          range.begin * stream_.values_stride[2] * in_size_,
          range.begin * problem_.out_stride[2] * plan.out_size,
          rowsOf(plan.simd, {stream_.values_dtype, problem_.out_dtype, s.method, affine,
                             range.end - range.begin, range.end - range.begin == 1 || adjoin})};
    }
    if (values_in_mask_) std::fill_n(invalid_, kMaxRows, false);
    find_brackets_ = findBrackets<Time>(plan.simd);
    capacity_ = std::clamp(kTasks / std::max(num_segments_, 1), 1, kMaxRows);
    ahead_ = std::min(rowsAhead(stream_.channels * in_size_), capacity_ / 4);
  }

  // Queries first .. last - 1, counted over the whole batch.
  void run(int64_t first, int64_t last) {
    const int64_t stride = stream_.times_stride[1];
    while (first < last) {
      const int64_t b = first / problem_.queries;
      const int64_t begin = first - b * problem_.queries;
      const int64_t end = std::min(problem_.queries, begin + last - first);
      const RowRange samples = samplesOf(stream_, b);
      const auto* times = static_cast<const Time*>(stream_.times) + b * stream_.times_stride[0] +
                          samples.begin * stride;
      const ValidSamples<int64_t> valid = stream_.validOf(samples, b);
      if (problem_.causal != nullptr) {
        runExisting({times, stride}, valid, samples, b, begin, end);
      } else if (valid.first == nullptr) {
        runRow({times, stride}, AllSamples{}, samples, b, begin, end);
      } else {
        const SampleRange<int64_t> part = trimmed(valid, samples.count);
        runRow({times + part.begin * stride, stride}, valid.shifted(part.begin),
               {samples.begin + part.begin, part.count}, b, begin, end);
      }
      first += end - begin;
    }
    flush(0);
  }

 private:
  static constexpr int kTasks = 4 * kMaxRows;
  static_assert(kTasks >= kMaxSegments);

  using SamplePosition = rbc::SamplePosition<Time, int64_t>;

  struct Segment {
    Rules<Time> rules;
    int number;  // of the problem
    ChannelRange channels;
    int64_t in_bytes;  // offset of its first channel from the stream's
    int64_t out_bytes;
    Rows rows;
  };

  // The last run of missing samples that was skipped: all between `left` and `right`, which are
  // valid.
  struct Missing {
    int64_t left = 0;
    int64_t right = 0;
  };

  // A row of the batch, in bytes where elements may have any type.
  struct BatchRow {
    const std::byte* values;
    int64_t sample_bytes;
    std::byte* out;
    int64_t query_bytes;
    uint8_t* mask;
    int64_t mask_stride;
    TimeRow<Time> queries;
    TimeOffset clock_offset;
    int64_t samples;
  };

  BatchRow rowOf(const RowRange& samples, int64_t b) const {
    const FuseProblem& p = problem_;
    const FuseStream& s = stream_;
    const int64_t sample_bytes = s.values_stride[1] * in_size_;
    return {static_cast<const std::byte*>(s.values) + samples.begin * sample_bytes +
                b * s.values_stride[0] * in_size_,
            sample_bytes,
            static_cast<std::byte*>(p.out) +
                (b * p.out_stride[0] + s.out_begin * p.out_stride[2]) * plan_.out_size,
            p.out_stride[1] * plan_.out_size,
            mask_ != nullptr ? mask_ + b * p.valid_stride[0] : nullptr,
            p.valid_stride[1],
            {static_cast<const Time*>(p.query_times) + b * p.query_stride[0], p.query_stride[1]},
            s.clock_offset,
            samples.count};
  }

  // Queries first .. last - 1 of row b, given the times of its samples and which of them are valid.
  template <class Valid>
  void runRow(const TimeRow<Time>& times, const Valid& valid_samples, const RowRange& samples,
              int64_t b, int64_t first, int64_t last) {
    const BatchRow row = rowOf(samples, b);
    const int64_t valid = clampIndex(queriesOf(problem_, b), first, last);
    const TimesInOrder<Time> in_order(times, samples.count);
    Pace pace;
    Missing missing;
    while (first < valid) {
      const int64_t end = std::min(valid, first + capacity_ - count_);
      const int count = static_cast<int>(end - first);
      const int64_t stride = row.queries.stride;
      find_brackets_(in_order, {row.queries.first + first * stride, stride}, row.clock_offset,
                     count, &pace, &brackets_);
      if constexpr (!Valid::kAll) passMissing(times, valid_samples, samples.count, count, &missing);
      if (row.mask != nullptr) std::fill_n(masks_, count, true);
      for (int i = 0; i < num_segments_; ++i) {
        setTasks(row, times, valid_samples, segments_[i], first, count, i * capacity_ + count_);
      }
      if (row.mask != nullptr) {
        for (int k = 0; k < count; ++k) row.mask[(first + k) * row.mask_stride] = masks_[k];
      }
      for (int k = 0; k < count && values_in_mask_; ++k) {
        mask_at_[count_ + k] = row.mask + (first + k) * row.mask_stride;
      }
      if ((count_ += count) == capacity_) flush(ahead_);
      first = end;
    }
    fillRow(row, valid, last);
  }

  // The same where each query has samples of its own, or channels look back only. Not inlined: the
  // usual calls would need more registers.
  __attribute__((noinline)) void runExisting(const TimeRow<Time>& times,
                                             const ValidSamples<int64_t>& valid_samples,
                                             const RowRange& samples, int64_t b, int64_t first,
                                             int64_t last) {
    const BatchRow row = rowOf(samples, b);
    const int64_t valid = clampIndex(queriesOf(problem_, b), first, last);
    const CausalFuse& causal = *problem_.causal;
    const Arrivals& arrivals = causal.arrivals[number_];
    constexpr int64_t kSize = sizeof(Time);
    const char* const first_arrival = arrivals.at(b, samples.begin, kSize);
    if (first_arrival == nullptr || (causal.in_order != nullptr && causal.in_order[number_])) {
      const TimeRow<Time> arrived = {reinterpret_cast<const Time*>(first_arrival),
                                     arrivals.stride[1]};
      if (valid_samples.first == nullptr) {
        answerInOrder(row, times, arrived, AllSamples{}, first, valid);
      } else {
        answerInOrder(row, times, arrived, valid_samples, first, valid);
      }
    } else {
      ArrivedSamples<Time, int64_t> existing = {
          valid_samples, first_arrival, arrivals.stride[1] * kSize,
          Time(),        samples.begin, minimaOf<Time>(causal.lines, number_, b, stream_.samples)};
      answerRow(row, times, first, valid, [&](Time until) {
        existing.until = until;
        return existing;
      });
    }
    fillRow(row, valid, last);
  }

  // Answers queries first .. last - 1 of a row whose samples arrived in their order. If `arrivals`
  // has no memory, all of them exist.
  template <class Valid>
  void answerInOrder(const BatchRow& row, const TimeRow<Time>& times, const TimeRow<Time>& arrivals,
                     const Valid& valid, int64_t first, int64_t last) {
    const LastArrivals<Time, Valid> arrived = {arrivals, valid};
    FirstSamples<Valid, int64_t> existing = {valid, row.samples};
    const bool all = arrivals.first == nullptr || row.samples == 0;
    answerRow(row, times, first, last, [&](Time until) {
      const int64_t guess = std::max<int64_t>(existing.count - 1, 0);
      if (!all) existing.count = 1 + lastBefore<true>(arrived, row.samples, until, guess);
      return existing;
    });
  }

  // Answers queries first .. last - 1 of a row. `samplesAt` returns the samples that exist for what
  // is computed at a time.
  template <class SamplesAt>
  void answerRow(const BatchRow& row, const TimeRow<Time>& times, int64_t first, int64_t last,
                 SamplesAt&& samplesAt) {
    using Math = TimeMath<Time>;
    const CausalFuse& causal = *problem_.causal;
    const Time lag = offsetAs<Time>(causal.lag);
    const Time offset = offsetAs<Time>(row.clock_offset);
    int64_t guess = -1;
    for (int64_t t = first; t < last; ++t) {
      const Time given = row.queries[t];
      const Time q = Math::shifted(given, offset);
      const auto existing = samplesAt(Math::later(given, lag));
      bool mask = true;
      for (int i = 0; i < num_segments_; ++i) {
        const Segment& segment = segments_[i];
        const Answer<Time, int64_t> answer =
            answerTo(times, row.samples, q, segment.rules,
                     ageRuleOf<Time>(causal.ages[segment.number]), existing, &guess);
        setTask(row, times, segment, answer, t, i * capacity_ + count_);
        mask &= answer.position.mask;
      }
      if (row.mask != nullptr) row.mask[t * row.mask_stride] = mask;
      if (values_in_mask_) mask_at_[count_] = row.mask + t * row.mask_stride;
      if (++count_ == capacity_) flush(ahead_);
    }
  }

  // Sets task `at`, the answer to query t for a segment.
  void setTask(const BatchRow& row, const TimeRow<Time>& times, const Segment& segment,
               const Answer<Time, int64_t>& answer, int64_t t, int at) {
    const std::byte* values = row.values + segment.in_bytes;
    const auto sample = [&](int64_t i) { return values + i * row.sample_bytes; };
    const SamplePosition& position = answer.position;
    const Neighbours<int64_t>& around = answer.neighbours;
    const bool found = position.index >= 0;
    const bool between = found && position.weight != 0;
    tasks_[at] = {found ? sample(position.index) : nullptr,
                  found ? sample(between ? around.right : position.index) : nullptr,
                  row.out + t * row.query_bytes + segment.out_bytes, position.weight};
    if (!takesFour(segment.rules.method)) return;
    weights_[at] = weightsOf(segment.rules.method, times, row.samples, position, around);
    outer_[at] = {between && weights_[at].before ? sample(around.before) : nullptr,
                  between && weights_[at].after ? sample(around.after) : nullptr};
  }

  // Queries first .. last - 1 of a row, which are not valid.
  void fillRow(const BatchRow& row, int64_t first, int64_t last) {
    for (int64_t t = first; t < last; ++t) {
      for (int i = 0; i < num_segments_; ++i) {
        tasks_[i * capacity_ + count_] = {
            nullptr, nullptr, row.out + t * row.query_bytes + segments_[i].out_bytes, 0};
      }
      if (row.mask != nullptr) row.mask[t * row.mask_stride] = 0;
      if (values_in_mask_) mask_at_[count_] = row.mask + t * row.mask_stride;
      if (++count_ == capacity_) flush(ahead_);
    }
  }

  // Moves the brackets of `count` queries to valid samples.
  void passMissing(const TimeRow<Time>& times, const ValidSamples<int64_t>& valid, int64_t n,
                   int count, Missing* missing) {
    Brackets<Time>& found = brackets_;
    for (int k = 0; k < count; ++k) {
      const int64_t i = found.i[k];
      steps_[k] = 1;
      if (i < 0 || i + 1 >= n) continue;  // the last sample of a row is valid
      const bool left = valid.counts(i);
      const bool right = valid.counts(i + 1);
      if (left & right) continue;  // not &&: a branch on missing samples could not be predicted
      if (i < missing->left || i >= missing->right) {
        *missing = {valid.upTo(i), valid.from(i + 1, n)};
      }
      if (missing->left < 0 || missing->right >= n) {  // the mask has changed since
        found.i[k] = -1;
        found.all = false;
        continue;
      }
      found.i[k] = missing->left;
      found.t0[k] = times[missing->left];
      found.t1[k] = times[missing->right];
      steps_[k] = missing->right - missing->left;
    }
  }

  // From the left to the right sample of query k's bracket.
  template <class Valid>
  int64_t stepOf(const Valid&, int k) const {
    if constexpr (Valid::kAll) return 1;
    return steps_[k];
  }

  // Sets the tasks of queries first .. first + count - 1, whose brackets were found, starting at
  // task `at`.
  template <class Valid>
  void setTasks(const BatchRow& row, const TimeRow<Time>& times, const Valid& valid,
                const Segment& segment, int64_t first, int count, int at) {
    const Brackets<Time>& found = brackets_;
    const Rules<Time> rules = segment.rules;
    const std::byte* values = row.values + segment.in_bytes;
    const bool four = takesFour(rules.method);
    std::byte* out = row.out + first * row.query_bytes + segment.out_bytes;
    RowTask* tasks = tasks_ + at;
    if (found.all && !isStep(rules.method) && !rules.has_max_gap) {
      using Math = TimeMath<Time>;
      typename Math::Ratio w[kMaxRows];
      for (int k = 0; k < count; ++k) {  // divisions side by side
        w[k] =
            Math::ratio(Math::span(found.q[k], found.t0[k]), Math::span(found.t1[k], found.t0[k]));
      }
      for (int k = 0; k < count; ++k) {
        const int64_t right = w[k] == 0 ? found.i[k] : found.i[k] + stepOf(valid, k);
        tasks[k] = {values + found.i[k] * row.sample_bytes, values + right * row.sample_bytes,
                    out + k * row.query_bytes, w[k]};
      }
      for (int k = 0; k < count && four; ++k) {
        setFour(times, valid, row, values, rules.method, {found.i[k], w[k], true}, at + k);
      }
    } else {
      for (int k = 0; k < count; ++k) {
        const SamplePosition position = positionAt(times, valid, row.samples, k, rules);
        const std::byte* sample = nullptr;
        if (position.index >= 0) sample = values + position.index * row.sample_bytes;
        const std::byte* right = sample;
        if (position.weight != 0) {
          right = values + rightOf(valid, row.samples, position.index) * row.sample_bytes;
        }
        tasks[k] = {sample, right, out + k * row.query_bytes, position.weight};
        masks_[k] &= position.mask;
        // Uses the position: if times contain a NaN, it may exist without a bracket.
        if (four) setFour(times, valid, row, values, rules.method, position, at + k);
      }
    }
  }

  // The outer samples and weights of task `at`, for a method that uses four samples.
  template <class Valid>
  void setFour(const TimeRow<Time>& times, const Valid& valid, const BatchRow& row,
               const std::byte* values, Method method, const SamplePosition& position, int at) {
    const int64_t n = row.samples;
    if constexpr (Valid::kAll) {
      weights_[at] = weightsOf(method, times, n, position);
    } else {
      Neighbours<int64_t> neighbours = {};
      if (position.weight != 0) neighbours = neighboursOf(valid, n, position.index);
      weights_[at] = weightsOf(method, times, n, position, neighbours);
      const auto sample = [&](int64_t i) { return values + i * row.sample_bytes; };
      outer_[at] = {weights_[at].before ? sample(neighbours.before) : nullptr,
                    weights_[at].after ? sample(neighbours.after) : nullptr};
    }
  }

  template <class Valid>
  SamplePosition positionAt(const TimeRow<Time>& times, const Valid& valid, int64_t n, int k,
                            const Rules<Time>& rules) const {
    const Time q = brackets_.q[k];
    const int64_t i = brackets_.i[k];
    if (i < 0) return outside(times, valid, n, q, rules);
    return positionIn(Bracket<Time, int64_t>{i, brackets_.t0[k], brackets_.t1[k]}, n, q, rules,
                      stepOf(valid, k));
  }

  template <class Valid>
  __attribute__((noinline)) static SamplePosition outside(const TimeRow<Time>& times,
                                                          const Valid& valid, int64_t n, Time q,
                                                          const Rules<Time>& rules) {
    int64_t guess = -1;
    return positionOf(times, n, q, rules, &guess, valid);
  }

  // Whether the outer rows of a query may be at any distance.
  bool hasOuterRows() const { return stream_.sample_mask != nullptr || problem_.causal != nullptr; }

  bool isAffine() const { return stream_.shift.data != nullptr || stream_.scale.data != nullptr; }

  // Computes all tasks except the last `keep`, so that there is always a row to prefetch.
  void flush(int keep) {
    const FuseProblem& p = problem_;
    const int count = count_ - keep;
    for (int i = 0; i < num_segments_ && count > 0; ++i) {
      const Segment& segment = segments_[i];
      const int64_t channels = segment.channels.end - segment.channels.begin;
      if (channels == 0) continue;  // it only affects the mask
      const RowTile tile = {
          tasks_ + i * capacity_,
          weights_ + i * capacity_,
          hasOuterRows() ? outer_ + i * capacity_ : nullptr,
          count,
          count_,
          rowsAhead(channels * in_size_),
          isNontemporal(plan_, stream_.out_begin + segment.channels.begin, channels),
          segment.rules.method,
          stream_.values_dtype,
          p.out_dtype,
          isAffine() ? DType::F64 : p.angle_dtype,
          channels,
          stream_.values_stride[2],
          p.out_stride[2],
          stream_.fill_bits,
          segment.channels.begin,
          stream_.shift,
          stream_.scale,
          values_in_mask_ ? invalid_ : nullptr,
          &buffers_,
      };
      segment.rows(tile);
      std::copy_n(tile.rows + count, keep, tasks_ + i * capacity_);
      const int keep_weights = takesFour(tile.method) ? keep : 0;
      std::copy_n(tile.weights + count, keep_weights, weights_ + i * capacity_);
      if (tile.outer != nullptr) {
        std::copy_n(tile.outer + count, keep_weights, outer_ + i * capacity_);
      }
    }
    if (values_in_mask_ && count > 0) {
      for (int k = 0; k < count; ++k) {
        if (invalid_[k]) *mask_at_[k] = 0;
        invalid_[k] = false;
      }
      std::copy_n(mask_at_ + count, keep, mask_at_);
    }
    count_ = keep;
  }

  const Plan& plan_;
  const FuseProblem& problem_;
  const FuseStream& stream_;
  const int number_;
  const int64_t in_size_;
  uint8_t* const mask_;
  const bool values_in_mask_;  // the mask of a query depends on its rows
  int num_segments_ = 0;
  FindBrackets<Time> find_brackets_;
  int capacity_;  // queries per tile
  int ahead_;     // tasks that are known in advance
  int count_ = 0;
  Segment segments_[kMaxSegments];
  Brackets<Time> brackets_;
  int64_t steps_[kMaxRows];    // from each left sample to the right one, if some are missing
  bool masks_[kMaxRows] = {};  // for the queries in brackets_
  // For the queries in flight, if values affect the mask.
  bool invalid_[kMaxRows];
  uint8_t* mask_at_[kMaxRows];
  // `capacity_` per segment.
  RowTask tasks_[kTasks];
  Weights<double> weights_[kTasks];
  OuterRows outer_[kTasks];  // if hasOuterRows()
  RowBuffers buffers_;
};

}  // namespace rbc::cpu
