// Statistics on the CPU.

#include <algorithm>

#include "runtime/cpu_state.h"
#include "scratch_layout.h"
#include "statistics/visit_samples.h"

namespace rbc::cpu {
namespace {

template <class T, int Rank, class... Index>
void put(const Output<Rank>& out, T value, Index... index) {
  if (out.data == nullptr) return;
  const int64_t at[] = {index...};
  int64_t place = 0;
  for (int i = 0; i < Rank; ++i) place += at[i] * out.stride[i];
  static_cast<T*>(out.data)[place] = value;
}

// Calls visit(x) for the values of a channel of a group, as f64.
template <class Visitor>
void visitValues(const StatisticsProblem& p, int64_t group, int64_t channel, Visitor&& visit) {
  const Samples& s = p.samples;
  visitDType(s.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t row = p.per_row ? group : 0; row < (p.per_row ? group + 1 : s.batch); ++row) {
      const RowRange range = samplesOf(s, row);
      visitRuns(s, row, range.begin, range.begin + range.count, [&](const SampleRun& run) {
        const T* values = reinterpret_cast<const T*>(run.data) + channel * s.channel_stride;
        for (int64_t i = 0; i < run.count; ++i) {
          if (run.mask != nullptr && run.mask[i * run.mask_stride] == 0) continue;
          visit(static_cast<double>(widen(values[i * run.stride])));
        }
      });
    }
  });
}

size_t bytes(const BackendState&, const StatisticsProblem& p) {
  ScratchLayout layout(nullptr);
  layout.take<double>(p.num_levels > 0 ? p.samples.total() : 0);
  return layout.used();
}

void run(BackendState&, const StatisticsProblem& p, Scratch scratch) {
  ScratchLayout layout(scratch.data);
  double* sorted = layout.take<double>(p.num_levels > 0 ? p.samples.total() : 0);
  for (int64_t group = 0; group < p.groups(); ++group) {
    for (int64_t c = 0; c < p.samples.channels; ++c) {
      Moments m;
      clearMoments(&m);
      visitValues(p, group, c, [&](double x) {
        if (!isFinite(x)) {
          ++m.nonfinite;
          return;
        }
        const uint64_t key = valueKey(x);
        m.min_key = std::min(m.min_key, key);
        m.max_key = std::max(m.max_key, key);
        if (p.num_levels > 0) sorted[m.count] = fromValueKey<double>(key);
        ++m.count;
        splitValue(
            x, [&](int limb, int64_t amount) { m.sum[limb] += amount; },
            [&](int limb, int64_t amount) { m.squares[limb] += amount; });
      });
      normalizeMoments(&m);
      put(p.count, m.count, group, c);
      put(p.nonfinite, m.nonfinite, group, c);
      put(p.min, smallest(m), group, c);
      put(p.max, largest(m), group, c);
      put(p.mean, exactMean(m), group, c);
      put(p.std, exactStd(m, p.ddof), group, c);
      if (p.num_levels == 0) continue;
      std::sort(sorted, sorted + m.count);
      for (int64_t q = 0; q < p.num_levels; ++q) {
        double value = notANumber();
        if (m.count > 0) {
          const QuantilePlace place = quantilePlace(p.levels[q], m.count);
          value = quantileBetween(sorted[place.lower], sorted[place.upper], place.t);
        }
        put(p.quantiles, value, group, q, c);
      }
    }
  }
}

}  // namespace

extern const Operation<StatisticsProblem> kStatistics = {bytes, run};

}  // namespace rbc::cpu
