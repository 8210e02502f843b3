// Statistics of many samples, by all threads: Floyd and Rivest's algorithm for order statistics. A
// sample of the samples gives brackets that almost certainly contain them; one pass counts the
// values below each bracket and keeps the values within, which are few enough to search. The counts
// reveal a bracket that missed; its order statistic is then searched digit by digit.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>

#include "scratch_layout.h"
#include "statistics/bracket_tile.h"
#include "statistics/sum_samples.h"
#include "statistics_problem.h"

namespace rbc::cpu {

// ---- Several order statistics at once.

// Moves to values[r] the value that would be there after sorting, for each of the ascending ranks
// r. Ranks are relative to `first`, the rank of values[0].
template <class Number>
void selectRanks(Number* values, int64_t count, const int64_t* ranks, int num_ranks,
                 int64_t first = 0) {
  if (num_ranks == 0 || count < 2) return;
  const int middle = num_ranks / 2;
  const int64_t place = ranks[middle] - first;
  std::nth_element(values, values + place, values + count);
  int before = middle;
  while (before > 0 && ranks[before - 1] == ranks[middle]) --before;
  int after = middle + 1;
  while (after < num_ranks && ranks[after] == ranks[middle]) ++after;
  selectRanks(values, place, ranks, before, first);
  selectRanks(values + place + 1, count - place - 1, ranks + after, num_ranks - after,
              first + place + 1);
}

// ---- The outputs of rbcStatistics.

template <class T, int Rank, class... Index>
void put(const Output<Rank>& out, T value, Index... index) {
  if (out.data == nullptr) return;
  const int64_t at[] = {index...};
  int64_t place = 0;
  for (int i = 0; i < Rank; ++i) place += at[i] * out.stride[i];
  static_cast<T*>(out.data)[place] = value;
}

inline void writeMoments(const StatisticsProblem& p, int64_t group, int64_t channel,
                         const Moments& m) {
  put(p.count, m.count, group, channel);
  put(p.nonfinite, m.nonfinite, group, channel);
  put(p.min, smallest(m), group, channel);
  put(p.max, largest(m), group, channel);
  if (p.mean.data != nullptr) put(p.mean, exactMean(m), group, channel);
  if (p.std.data != nullptr) put(p.std, exactStd(m, p.ddof), group, channel);
}

// For n values; sorted(rank) is one of them.
template <class Sorted>
void writeQuantile(const StatisticsProblem& p, int64_t group, int64_t level, int64_t channel,
                   int64_t n, Sorted&& sorted) {
  double value = notANumber();
  if (n > 0) {
    const QuantilePlace place = quantilePlace(p.levels[level], n);
    const auto at = [&](int64_t rank) { return static_cast<double>(sorted(rank)) + 0.0; };
    value = quantileBetween(at(place.lower), at(place.upper), place.t);
  }
  put(p.quantiles, value, group, level, channel);
}

// Number of samples that the brackets are computed from.
inline int64_t sampleSize(int64_t samples) { return std::clamp<int64_t>(samples / 4, 1, 8192); }

// The i-th of them: one from each stretch, at a position unlikely to follow a period of the data.
inline int64_t samplePlace(int64_t i, int64_t size, int64_t samples) {
  const int64_t begin = static_cast<int64_t>(static_cast<uint128>(i) * samples / size);
  const int64_t end = static_cast<int64_t>(static_cast<uint128>(i + 1) * samples / size);
  uint64_t mixed = (static_cast<uint64_t>(i) + 1) * 0x9e3779b97f4a7c15;
  mixed ^= mixed >> 29;
  mixed *= 0xbf58476d1ce4e5b9;
  mixed ^= mixed >> 32;
  return begin +
         static_cast<int64_t>(mixed % static_cast<uint64_t>(std::max<int64_t>(end - begin, 1)));
}

// Number of ranks in the sample on each side of a level: five standard deviations, plus rounding.
inline double bracketReach(double level, int64_t size) {
  return 5 * std::sqrt(static_cast<double>(size) * level * (1 - level)) + 4;
}

// The levels in ascending order, and the number of values that each may keep.
struct LevelOrder {
  LevelOrder(const StatisticsProblem& p, int64_t samples) : count(p.num_levels) {
    for (int i = 0; i < count; ++i) index[i] = i;
    std::sort(index, index + count, [&](int a, int b) { return p.levels[a] < p.levels[b]; });
    const int64_t size = sampleSize(samples);
    begin[0] = 0;
    for (int i = 0; i < count; ++i) {
      level[i] = p.levels[index[i]];
      const double part = (2 * bracketReach(level[i], size) + 2) / static_cast<double>(size);
      const double room = std::min(1.0, 1.5 * part) * static_cast<double>(samples);
      begin[i + 1] = begin[i] + std::min(samples, static_cast<int64_t>(room) + 64);
    }
  }

  int count;
  int index[kMaxLevels];
  double level[kMaxLevels];
  int64_t begin[kMaxLevels + 1];  // of a level's room among a channel's values
};

template <class T>
class LargeGroup {
 public:
  using Number = Compute<T>;

  // `samples` is the maximum number in the part of the line.
  LargeGroup(const StatisticsProblem& p, int64_t samples, int threads, void* scratch)
      : p_(p), levels_(p, samples), layout_(scratch) {
    const int64_t channels = p.samples.channels;
    tasks_ = sumTasks(samples, threads);
    sample_size_ = sampleSize(samples);
    layout_.take(&moments_, tasks_ * channels);
    if (levels_.count == 0) return;
    layout_.take(&sample_, channels * sample_size_);
    layout_.take(&brackets_, channels * levels_.count);
    layout_.take(&num_brackets_, channels);
    layout_.take(&held_, channels * levels_.count);
    layout_.take(&counts_, tasks_ * channels * levels_.count);
    layout_.take(&infinities_, tasks_ * channels);
    layout_.take(&kept_, channels * levels_.begin[levels_.count]);
    layout_.take(&unresolved_, channels);
    layout_.take(&table_, kTableSize);
  }

  size_t bytes() const { return layout_.used(); }

  // Samples begin .. end - 1 of the line.
  void run(CpuState& state, int64_t group, int64_t begin, int64_t end) {
    begin_ = begin;
    end_ = end;
    ThreadPool& pool = state.pool;
    if (levels_.count > 0) findBrackets(pool);
    pool.parallelFor(tasks_, pool.threads(),
                     [&](int64_t task, ThreadMemory& thread) { sumTask(state, task, thread); });
    const int64_t channels = p_.samples.channels;
    pool.parallelFor(channels, pool.threads(), [&](int64_t c) {
      for (int64_t task = 1; task < tasks_; ++task) {
        mergeMoments(moments_ + c, moments_[task * channels + c]);
      }
      writeMoments(p_, group, c, moments_[c]);
      if (levels_.count > 0) unresolved_[c] = !writeQuantiles(state.simd, group, c);
    });
    if (levels_.count == 0) return;
    pool.parallelFor(channels, 1, [&](int64_t c) {  // all channels share the table
      if (unresolved_[c]) searchQuantiles(pool, group, c);
    });
  }

 private:
  static constexpr int kDigit = 16;
  static constexpr int64_t kTableSize = 1 << kDigit;

  void findBrackets(ThreadPool& pool) {
    const Samples& s = p_.samples;
    constexpr int64_t kStep = 512;
    pool.parallelFor((sample_size_ + kStep - 1) / kStep, pool.threads(), [&](int64_t chunk) {
      for (int64_t i = chunk * kStep; i < std::min(sample_size_, (chunk + 1) * kStep); ++i) {
        takeSample(i);
      }
    });
    pool.parallelFor(s.channels, pool.threads(), [&](int64_t c) { chooseBrackets(c); });
  }

  void takeSample(int64_t i) {
    const Samples& s = p_.samples;
    const int64_t at = begin_ + samplePlace(i, sample_size_, end_ - begin_);
    for (int64_t c = 0; c < s.channels; ++c) {
      sample_[c * sample_size_ + i] = std::numeric_limits<Number>::quiet_NaN();
    }
    visitSamples(s, at, at + 1, [&](int64_t row, int64_t from, int64_t) {
      const SamplePlace place = placeOf(s, row, from);
      if (s.mask != nullptr && s.mask[place.mask] == 0) return;
      const T* values = static_cast<const T*>(s.data) + place.value;
      for (int64_t c = 0; c < s.channels; ++c) {
        sample_[c * sample_size_ + i] = widen(values[c * s.channel_stride]);
      }
    });
  }

  void chooseBrackets(int64_t c) {
    constexpr Number kInfinity = std::numeric_limits<Number>::infinity();
    Number* sample = sample_ + c * sample_size_;
    const int64_t size =
        std::remove_if(sample, sample + sample_size_, [](Number x) { return !isFinite(x); }) -
        sample;
    int64_t low[kMaxLevels];
    int64_t high[kMaxLevels];
    int64_t ranks[2 * kMaxLevels] = {};
    int num_ranks = 0;
    for (int i = 0; i < levels_.count; ++i) {
      const double reach = bracketReach(levels_.level[i], size);
      const double middle = levels_.level[i] * static_cast<double>(size);
      low[i] = static_cast<int64_t>(std::floor(middle - reach));
      high[i] = static_cast<int64_t>(std::ceil(middle + reach));
      for (const int64_t rank : {low[i], high[i]}) {
        if (rank >= 0 && rank < size) ranks[num_ranks++] = rank;
      }
    }
    std::sort(ranks, ranks + num_ranks);
    selectRanks(sample, size, ranks, num_ranks);
    Bracket<Number>* brackets = brackets_ + c * levels_.count;
    int count = 0;
    for (int i = 0; i < levels_.count; ++i) {
      const Number from = low[i] < 0 ? -kInfinity : sample[low[i]];
      const Number to = high[i] >= size ? kInfinity : sample[high[i]];
      if (count > 0 && from <= brackets[count - 1].high) {  // one bracket for both
        brackets[count - 1].high = std::max(to, brackets[count - 1].high);
        brackets[count - 1].end_level = i + 1;
      } else {
        brackets[count++] = {from, to, false, i, i + 1};
      }
    }
    for (int b = 0; b < count; ++b) {
      brackets[b].with_ends = std::count(sample, sample + size, brackets[b].low) > 1 ||
                              std::count(sample, sample + size, brackets[b].high) > 1;
    }
    num_brackets_[c] = count;
    for (int i = 0; i < levels_.count; ++i) {
      new (held_ + c * levels_.count + i) std::atomic<int64_t>(0);
    }
  }

  int64_t roomOf(const Bracket<Number>& b) const {
    return levels_.begin[b.end_level] - levels_.begin[b.first_level];
  }
  Number* keptOf(int64_t c, const Bracket<Number>& b) const {
    return kept_ + c * levels_.begin[levels_.count] + levels_.begin[b.first_level];
  }

  void sumTask(const CpuState& state, int64_t task, ThreadMemory& thread) {
    const int64_t channels = p_.samples.channels;
    const int64_t count = end_ - begin_;
    const int64_t from = begin_ + taskBegin(task, tasks_, count);
    const int64_t to = begin_ + taskBegin(task + 1, tasks_, count);
    Moments* moments = moments_ + task * channels;
    if (levels_.count == 0) {
      return sumSamples<T>(p_.samples, state, thread, from, to, moments);
    }
    BracketCounts* counts = counts_ + task * channels * levels_.count;
    std::fill_n(counts, channels * levels_.count, BracketCounts{});
    auto* memory = thread.as<TileMemory<Number>>();
    sumSamples<T>(
        p_.samples, state, thread, from, to, moments,
        [&](int64_t channel, int width, const Number* values, int64_t rows) {
          for (int c = 0; c < width; ++c) {
            const Number* column = values;
            if (width > 1) {
              for (int64_t i = 0; i < rows; ++i) memory->column[i] = values[i * width + c];
              column = memory->column;
            }
            countColumn(state.simd, channel + c, column, rows, counts, memory->kept);
          }
        },
        [&](int64_t c, int64_t infinities) { infinities_[task * channels + c] = infinities; });
  }

  void countColumn(SimdLevel level, int64_t c, const Number* column, int64_t rows,
                   BracketCounts* counts, Number* kept) {
    for (int b = 0; b < num_brackets_[c]; ++b) {
      const int64_t at = c * levels_.count + b;
      const Bracket<Number>& bracket = brackets_[at];
      const int64_t within = bracketTileFor<Number>(level, bracket.with_ends)(
          column, rows, bracket.low, bracket.high, counts + at, kept);
      if (within == 0) continue;
      const int64_t place = held_[at].fetch_add(within, std::memory_order_relaxed);
      if (place + within <= roomOf(bracket)) {
        std::copy_n(kept, within, keptOf(c, bracket) + place);
      }
    }
  }

  // The values that a bracket has kept, with some ranks at their places: values[i] has rank first +
  // i if that is one of them.
  struct Narrowed {
    Number* values;
    int64_t count;
    int64_t first;
  };

  // Narrows the bracket in the same way, so that few values are left.
  Narrowed narrowed(SimdLevel level, Number* values, int64_t count, int64_t* ranks, int num_ranks) {
    constexpr int64_t kFew = 8192;
    constexpr int64_t kSample = 512;
    Narrowed kept = {values, count, 0};
    if (num_ranks > 0 && count > kFew && ranks[num_ranks - 1] - ranks[0] < count / 16) {
      Number sample[kSample];
      for (int64_t i = 0; i < kSample; ++i) sample[i] = values[i * count / kSample];
      std::sort(sample, sample + kSample);
      const auto placeOfRank = [&](int64_t rank) {
        return static_cast<double>(rank) / static_cast<double>(count);
      };
      const double first = placeOfRank(ranks[0]);
      const double last = placeOfRank(ranks[num_ranks - 1]);
      const auto low =
          static_cast<int64_t>(std::floor(first * kSample - bracketReach(first, kSample)));
      const auto high =
          static_cast<int64_t>(std::ceil(last * kSample + bracketReach(last, kSample)));
      constexpr Number kInfinity = std::numeric_limits<Number>::infinity();
      BracketCounts counts = {};
      kept.count = bracketTileFor<Number>(level, false)(
          values, count, low < 0 ? -kInfinity : sample[low],
          high >= kSample ? kInfinity : sample[high], &counts, values);
      kept.first = counts.up_to_low;
    }
    while (num_ranks > 0 && ranks[0] < kept.first) {
      ++ranks;
      --num_ranks;
    }
    while (num_ranks > 0 && ranks[num_ranks - 1] >= kept.first + kept.count) --num_ranks;
    selectRanks(kept.values, kept.count, ranks, num_ranks, kept.first);
    return kept;
  }

  // Returns false if a bracket has missed.
  bool writeQuantiles(SimdLevel level, int64_t group, int64_t c) {
    const int64_t channels = p_.samples.channels;
    const int64_t n = moments_[c].count;
    int64_t infinities = 0;
    for (int64_t task = 0; task < tasks_; ++task) infinities += infinities_[task * channels + c];
    Number found[2 * kMaxLevels] = {};
    bool known[2 * kMaxLevels] = {};
    int64_t ranks[2 * kMaxLevels] = {};
    for (int i = 0; i < levels_.count && n > 0; ++i) {
      const QuantilePlace place = quantilePlace(levels_.level[i], n);
      ranks[2 * i] = place.lower;
      ranks[2 * i + 1] = place.upper;
    }
    for (int b = 0; b < num_brackets_[c] && n > 0; ++b) {
      const int64_t at = c * levels_.count + b;
      const Bracket<Number>& bracket = brackets_[at];
      BracketCounts sum = {};
      for (int64_t task = 0; task < tasks_; ++task) {
        const BracketCounts& part = counts_[task * channels * levels_.count + at];
        sum.below_low += part.below_low;
        sum.up_to_low += part.up_to_low;
        sum.up_to_high += part.up_to_high;
      }
      const bool bounded = isFinite(bracket.low);
      const int64_t below_low = bounded ? sum.below_low - infinities : 0;
      const int64_t up_to_low = bounded ? sum.up_to_low - infinities : 0;
      const int64_t up_to_high = std::min(sum.up_to_high - infinities, n);
      const int64_t held = held_[at].load(std::memory_order_relaxed);
      const bool whole = held <= roomOf(bracket);
      int64_t wanted[2 * kMaxLevels] = {};
      int num_wanted = 0;
      for (int i = 2 * bracket.first_level; i < 2 * bracket.end_level; ++i) {
        const int64_t within = ranks[i] - up_to_low;
        if (whole && within >= 0 && within < held) wanted[num_wanted++] = within;
      }
      std::sort(wanted, wanted + num_wanted);
      const Narrowed kept =
          narrowed(level, keptOf(c, bracket), whole ? held : 0, wanted, num_wanted);
      for (int i = 2 * bracket.first_level; i < 2 * bracket.end_level; ++i) {
        const int64_t rank = ranks[i];
        const int64_t within = rank - up_to_low;
        known[i] = true;
        if (within >= kept.first && within < kept.first + kept.count) {
          found[i] = kept.values[within - kept.first];
        } else if (bracket.with_ends && rank >= below_low && rank < up_to_low) {
          found[i] = bracket.low;
        } else if (bracket.with_ends && rank >= up_to_low + held && rank < up_to_high) {
          found[i] = bracket.high;
        } else {
          known[i] = false;
        }
      }
    }
    for (int i = 0; i < levels_.count && n > 0; ++i) {
      if (!known[2 * i] || !known[2 * i + 1]) return false;
    }
    for (int i = 0; i < levels_.count; ++i) {
      writeQuantile(p_, group, levels_.index[i], c, n,
                    [&](int64_t rank) { return found[2 * i + (rank != ranks[2 * i] ? 1 : 0)]; });
    }
    return true;
  }

  void searchQuantiles(const ThreadPool& pool, int64_t group, int64_t c) {
    for (int i = 0; i < levels_.count; ++i) {
      writeQuantile(p_, group, levels_.index[i], c, moments_[c].count,
                    [&](int64_t rank) { return searchRank(pool, c, rank); });
    }
  }

  // Digit by digit of the key, with one pass over all values each.
  Number searchRank(const ThreadPool& pool, int64_t c, int64_t rank) {
    using Key = ValueKey<Number>;
    Key prefix = 0;
    for (int shift = 8 * static_cast<int>(sizeof(Key)) - kDigit; shift >= 0; shift -= kDigit) {
      std::fill_n(table_, kTableSize, 0);
      const auto count = [&](Number x, int64_t times) {
        if (!isFinite(x)) return;
        const Key key = valueKey(x) >> shift;
        if (static_cast<Key>(key >> kDigit) == prefix) table_[key & (kTableSize - 1)] += times;
      };
      if (!visitChannel<T>(p_.samples, pool, c, begin_, end_, count)) return 0;
      int64_t digit = 0;
      // Values that change during the call may leave too few of them.
      while (digit < kTableSize - 1 && rank >= table_[digit]) rank -= table_[digit++];
      prefix = static_cast<Key>(prefix << kDigit | static_cast<Key>(digit));
    }
    return fromValueKey<Number>(prefix);
  }

  const StatisticsProblem& p_;
  const LevelOrder levels_;
  ScratchLayout layout_;
  int64_t tasks_;
  int64_t sample_size_;
  int64_t begin_ = 0;
  int64_t end_ = 0;
  Moments* moments_ = nullptr;           // [task, channel]
  Number* sample_ = nullptr;             // [channel, sample_size_]
  Bracket<Number>* brackets_ = nullptr;  // [channel, level]
  int32_t* num_brackets_ = nullptr;
  std::atomic<int64_t>* held_ = nullptr;  // [channel, level]: values within each bracket
  BracketCounts* counts_ = nullptr;       // [task, channel, level]
  int64_t* infinities_ = nullptr;         // [task, channel]: number of negative infinities
  Number* kept_ = nullptr;
  bool* unresolved_ = nullptr;
  int64_t* table_ = nullptr;
};

}  // namespace rbc::cpu
