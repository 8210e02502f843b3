// Accumulators on the CPU.

#include <algorithm>

#include "runtime/cpu_state.h"
#include "statistics/visit_samples.h"

namespace rbc::cpu {
namespace {

size_t none(const BackendState&, const AccumulateProblem&) { return 0; }
size_t noneToMerge(const BackendState&, const MergeProblem&) { return 0; }

// The table of the bucket that a channel's value lies in; null: of none.
template <class Key>
int64_t* tableOf(const AccumulatorState& state, int64_t channel, Key key) {
  if (state.pass == 1) return state.tables + (channel << state.table_bits);
  const uint64_t prefix = static_cast<uint64_t>(key) >> (state.shift + state.table_bits);
  const Bucket* begin = state.buckets + state.first_bucket[channel];
  const Bucket* end = state.buckets + state.first_bucket[channel + 1];
  const Bucket* found = std::lower_bound(
      begin, end, prefix, [](const Bucket& bucket, uint64_t p) { return bucket.prefix < p; });
  if (found == end || found->prefix != prefix) return nullptr;
  return state.tables + ((found - state.buckets) << state.table_bits);
}

template <class Number>
void addValue(const AccumulatorState& state, int64_t channel, Number x) {
  if (!isFinite(x)) {
    ++(state.pass == 1 ? state.moments[channel].nonfinite : state.seen[state.channels + channel]);
    return;
  }
  if (state.pass == 1) {
    Moments& m = state.moments[channel];
    const auto value = static_cast<double>(x);
    ++m.count;
    m.min_key = std::min(m.min_key, valueKey(value));
    m.max_key = std::max(m.max_key, valueKey(value));
    splitValue(
        value, [&](int limb, int64_t amount) { m.sum[limb] += amount; },
        [&](int limb, int64_t amount) { m.squares[limb] += amount; });
  } else {
    ++state.seen[channel];
  }
  if (state.table_bits == 0) return;
  const auto key = valueKey(x);
  int64_t* table = tableOf(state, channel, key);
  if (table != nullptr) ++table[(key >> state.shift) & ((1u << state.table_bits) - 1)];
}

void accumulate(BackendState&, const AccumulateProblem& p, Scratch) {
  const Samples& s = p.samples;
  visitDType(s.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t row = 0; row < s.batch; ++row) {
      const RowRange range = samplesOf(s, row);
      visitRuns(s, row, range.begin, range.begin + range.count, [&](const SampleRun& run) {
        const T* values = reinterpret_cast<const T*>(run.data);
        for (int64_t i = 0; i < run.count; ++i) {
          if (run.mask != nullptr && run.mask[i * run.mask_stride] == 0) continue;
          for (int64_t c = 0; c < s.channels; ++c) {
            addValue(p.state, c, widen(values[i * run.stride + c * s.channel_stride]));
          }
        }
      });
    }
  });
  for (int64_t c = 0; c < s.channels && p.state.pass == 1; ++c) {
    normalizeMoments(p.state.moments + c);
  }
}

void merge(BackendState&, const MergeProblem& p, Scratch) {
  const AccumulatorState& to = p.to;
  for (int64_t c = 0; c < to.channels && to.pass == 1; ++c) {
    mergeMoments(to.moments + c, p.from.moments[c]);
  }
  for (int64_t i = 0; i < 2 * to.channels && to.pass > 1; ++i) to.seen[i] += p.from.seen[i];
  const int64_t tables = to.pass == 1 ? to.channels : to.num_buckets;
  const int64_t size = to.table_bits > 0 ? tables << to.table_bits : 0;
  for (int64_t i = 0; i < size; ++i) to.tables[i] += p.from.tables[i];
}

}  // namespace

extern const Operation<AccumulateProblem> kAccumulate = {none, accumulate};
extern const Operation<MergeProblem> kMerge = {noneToMerge, merge};

}  // namespace rbc::cpu
