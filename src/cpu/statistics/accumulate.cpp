// Accumulators on the CPU: sums by all threads, each over some samples; tables by channel, so that
// no two threads count in the same table.

#include "scratch_layout.h"
#include "statistics/sum_samples.h"
#include "visit_dtype.h"

namespace rbc::cpu {
namespace {

// The sums of each task.
struct Parts {
  Parts(void* data, const AccumulateProblem& p, int threads) : layout(data) {
    if (p.state.pass > 1) return;
    tasks = sumTasks(p.samples.total(), threads);
    layout.take(&moments, tasks * p.samples.channels);
  }

  ScratchLayout layout;
  int64_t tasks = 0;
  Moments* moments = nullptr;
};

size_t bytes(const BackendState& state, const AccumulateProblem& p) {
  return Parts(nullptr, p, static_cast<const CpuState&>(state).pool.threads()).layout.used();
}

size_t noBytes(const BackendState&, const MergeProblem&) { return 0; }

template <class T>
void addSums(CpuState& state, const AccumulateProblem& p, const Parts& parts) {
  const Samples& s = p.samples;
  ThreadPool& pool = state.pool;
  pool.parallelFor(parts.tasks, pool.threads(), [&](int64_t task, ThreadMemory& thread) {
    sumSamples<T>(s, state, thread, taskBegin(task, parts.tasks, s.total()),
                  taskBegin(task + 1, parts.tasks, s.total()), parts.moments + task * s.channels);
  });
  for (int64_t task = 0; task < parts.tasks; ++task) {
    for (int64_t c = 0; c < s.channels; ++c) {
      mergeMoments(p.state.moments + c, parts.moments[task * s.channels + c]);
    }
  }
}

// The table of the bucket that contains a channel's value; null: in no bucket.
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

template <class T>
void countChannel(const AccumulateProblem& p, const ThreadPool& pool, int64_t channel) {
  const AccumulatorState& state = p.state;
  const uint64_t mask = (uint64_t{1} << state.table_bits) - 1;
  int64_t finite = 0;
  int64_t others = 0;
  visitChannel<T>(p.samples, pool, channel, 0, p.samples.total(), [&](Compute<T> x, int64_t times) {
    if (!isFinite(x)) {
      others += times;
      return;
    }
    finite += times;
    const auto key = valueKey(x);
    int64_t* table = tableOf(state, channel, key);
    if (table != nullptr) table[key >> state.shift & mask] += times;
  });
  if (state.pass > 1) {
    state.seen[channel] += finite;
    state.seen[state.channels + channel] += others;
  }
}

void accumulate(BackendState& backend_state, const AccumulateProblem& p, Scratch scratch) {
  CpuState& state = cpuState(backend_state);
  const Parts parts(scratch.data, p, state.pool.threads());
  visitDType(p.samples.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (p.state.pass == 1) addSums<T>(state, p, parts);
    if (p.state.table_bits == 0) return;
    state.pool.parallelFor(p.samples.channels, state.pool.threads(),
                           [&](int64_t channel) { countChannel<T>(p, state.pool, channel); });
  });
}

void merge(BackendState&, const MergeProblem& p, Scratch) {
  const AccumulatorState& to = p.to;
  for (int64_t c = 0; c < to.channels && to.pass == 1; ++c) {
    mergeMoments(to.moments + c, p.from.moments[c]);
  }
  for (int64_t i = 0; i < 2 * to.channels && to.pass > 1; ++i)
    to.seen[i] = wrappingSum(to.seen[i], p.from.seen[i]);
  const int64_t tables = to.pass == 1 ? to.channels : to.num_buckets;
  const int64_t size = to.table_bits > 0 ? tables << to.table_bits : 0;
  for (int64_t i = 0; i < size; ++i) to.tables[i] = wrappingSum(to.tables[i], p.from.tables[i]);
}

}  // namespace

extern const Operation<AccumulateProblem> kAccumulate = {bytes, accumulate};
extern const Operation<MergeProblem> kMerge = {noBytes, merge};

}  // namespace rbc::cpu
