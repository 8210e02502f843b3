// Statistics on the CPU: a large group by all threads together, many small groups by one thread
// each.

#include <algorithm>
#include <utility>

#include "statistics/large_group.h"
#include "visit_dtype.h"

namespace rbc::cpu {
namespace {

constexpr int64_t kSmall = 16384;  // samples: up to this number, a thread searches a copy

// The most samples that a group may have, for any lengths and offsets.
int64_t largestGroup(const StatisticsProblem& p) {
  return p.per_row ? p.samples.rows : p.samples.total();
}

// The position of a group in the line of all samples.
RowRange rangeOfGroup(const StatisticsProblem& p, int64_t group) {
  const RowLine line = lineOf(p.samples);
  if (!p.per_row) return {0, p.samples.total()};
  return {line.begin(group), line.range(group).count};
}

// The parts of the scratch for small groups: one for each chunk of groups.
struct SmallParts {
  SmallParts(void* data, const StatisticsProblem& p, int threads) : layout(data) {
    chunks = std::min<int64_t>(p.groups(), 4 * int64_t{threads});
    values = std::min(kSmall, largestGroup(p));
    layout.take(&moments, chunks * p.samples.channels);
    layout.take(&sorted, p.num_levels > 0 ? chunks * values : 0);
  }

  ScratchLayout layout;
  int64_t chunks;
  int64_t values;
  Moments* moments;
  double* sorted;  // or float
};

template <class T>
void writeSmallQuantiles(const StatisticsProblem& p, const ThreadPool& pool, int64_t group,
                         int64_t channel, const RowRange& range, Compute<T>* sorted) {
  int64_t n = 0;
  visitChannel<T>(p.samples, pool, channel, range.begin, range.begin + range.count,
                  [&](Compute<T> x, int64_t times) {
                    if (isFinite(x)) std::fill_n(sorted + std::exchange(n, n + times), times, x);
                  });
  int64_t ranks[2 * kMaxLevels] = {};
  int count = 0;
  for (int i = 0; i < p.num_levels && n > 0; ++i) {
    const QuantilePlace place = quantilePlace(p.levels[i], n);
    ranks[count++] = place.lower;
    ranks[count++] = place.upper;
  }
  std::sort(ranks, ranks + count);
  selectRanks(sorted, n, ranks, count);
  for (int i = 0; i < p.num_levels; ++i) {
    writeQuantile(p, group, i, channel, n, [&](int64_t rank) { return sorted[rank]; });
  }
}

template <class T>
void runSmall(const StatisticsProblem& p, const CpuState& state, int64_t group,
              ThreadMemory& thread, Moments* moments, Compute<T>* sorted) {
  const RowRange range = rangeOfGroup(p, group);
  sumSamples<T>(p.samples, state, thread, range.begin, range.begin + range.count, moments);
  for (int64_t c = 0; c < p.samples.channels; ++c) {
    writeMoments(p, group, c, moments[c]);
    if (p.num_levels > 0) writeSmallQuantiles<T>(p, state.pool, group, c, range, sorted);
  }
}

size_t bytes(const BackendState& state, const StatisticsProblem& p) {
  const int threads = static_cast<const CpuState&>(state).pool.threads();
  const size_t small = SmallParts(nullptr, p, threads).layout.used();
  if (largestGroup(p) <= kSmall) return small;
  return visitDType(p.samples.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return std::max(small, LargeGroup<T>(p, largestGroup(p), threads, nullptr).bytes());
  });
}

template <class T>
void runAll(CpuState& state, const StatisticsProblem& p, Scratch scratch) {
  ThreadPool& pool = state.pool;
  const SmallParts parts(scratch.data, p, pool.threads());
  pool.parallelFor(parts.chunks, pool.threads(), [&](int64_t chunk, ThreadMemory& thread) {
    const int64_t end = (chunk + 1) * p.groups() / parts.chunks;
    for (int64_t group = chunk * p.groups() / parts.chunks; group < end; ++group) {
      if (pool.stops()) return;
      if (rangeOfGroup(p, group).count > kSmall) continue;
      runSmall<T>(p, state, group, thread, parts.moments + chunk * p.samples.channels,
                  reinterpret_cast<Compute<T>*>(parts.sorted + chunk * parts.values));
    }
  });
  if (largestGroup(p) <= kSmall) return;
  LargeGroup<T> large(p, largestGroup(p), pool.threads(), scratch.data);
  for (int64_t group = 0; group < p.groups(); ++group) {
    const RowRange range = rangeOfGroup(p, group);
    if (range.count > kSmall) large.run(state, group, range.begin, range.begin + range.count);
  }
}

void run(BackendState& backend_state, const StatisticsProblem& p, Scratch scratch) {
  visitDType(p.samples.dtype, [&](auto tag) {
    runAll<typename decltype(tag)::type>(cpuState(backend_state), p, scratch);
  });
}

}  // namespace

extern const Operation<StatisticsProblem> kStatistics = {bytes, run};

}  // namespace rbc::cpu
