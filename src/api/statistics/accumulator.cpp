#include "statistics/accumulator.h"

#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cstddef>
#include <cstring>
#include <memory>
#include <utility>

#include "fork.h"
#include "scratch_layout.h"
#include "statistics/accumulator_state.h"
#include "status.h"

namespace rbc {
namespace {

// The parts of an accumulator's memory.
struct Parts {
  Parts(void* memory, const AccumulatorData& data) : layout(memory) {
    const AccumulatorKind& kind = data.kind;
    const bool first = kind.pass == 1;
    const auto count = static_cast<int64_t>(data.buckets.size());
    layout.take(&moments, first ? kind.channels : 0);
    layout.take(&seen, first || kind.resolved ? 0 : 2 * kind.channels);
    layout.take(&tables, data.numTables() * kind.tableSize());
    layout.take(&buckets, kind.resolved ? 0 : count);
    layout.take(&first_bucket, first || kind.resolved ? 0 : kind.channels + 1);
  }

  ScratchLayout layout;
  Moments* moments;
  int64_t* seen;
  int64_t* tables;
  Bucket* buckets;
  int64_t* first_bucket;
};

View bytesView(void* data, size_t bytes, rbcDevice device) {
  View view = {};
  view.data = static_cast<std::byte*>(data);
  view.device = device;
  view.dtype = DType::U8;
  view.ndim = 1;
  view.shape[0] = static_cast<int64_t>(bytes);
  view.strides[0] = 1;
  view.count = view.shape[0];
  view.begin = view.data;
  view.end = view.data + bytes;
  return view;
}

constexpr rbcDevice kHost = {RBC_DEVICE_CPU, 0};

// Makes the current stream wait for work of another stream on the memory.
void use(rbcAccumulator& accumulator) {
  rbcContext& context = *accumulator.context;
  context.backend->useWorkspace(*context.state);
  accumulator.stream = context.backend->stream(*context.state);
}

void requireNoCapture(const rbcContext& context) {
  if (!context.backend->capturing(*context.state)) return;
  fail(RBC_STATUS_UNSUPPORTED,
       "accumulator: its context's stream is being captured, and this waits for it");
}

template <class T>
void copyIn(T* to, const std::vector<T>& from) {
  std::copy(from.begin(), from.end(), to);
}

// For the current pass.
int64_t mostSamples(const AccumulatorData& data) {
  int64_t most = 0;
  for (int64_t c = 0; c < data.kind.channels; ++c) {
    if (data.kind.pass == 1) {
      most = std::max(most, data.moments[c].count + data.moments[c].nonfinite);
    } else if (!data.seen.empty()) {
      most = std::max(most, data.seen[c] + data.seen[c + data.kind.channels]);
    }
  }
  return most;
}

[[noreturn]] void failInUse(const char* argument) {
  fail(RBC_STATUS_UNSUPPORTED,
       "%s: is in use by another thread, or by the call that is running the context's allocator "
       "or cancel callback",
       argument);
}

}  // namespace

void takeAccumulator(rbcAccumulator& accumulator) {
  if (accumulator.in_use.busy.exchange(true, std::memory_order_acquire)) failInUse("accumulator");
}

void AccumulatorDestroyer::operator()(rbcAccumulator* accumulator) const noexcept {
  rbcContext& context = *accumulator->context;
  // In a forked child no CUDA function may be called: the parent owns the memory.
  const bool lost =
      context.backend->id == RBC_BACKEND_CUDA && context.fork_generation != forkGeneration();
  if (!lost) release(context, accumulator->memory, accumulator->bytes, accumulator->stream);
  drop(&context);
  delete accumulator;
}

rbcAccumulator& requireAccumulator(const rbcContext& context, rbcAccumulator_t accumulator,
                                   const char* argument) {
  if (accumulator == nullptr) fail(RBC_STATUS_INVALID_ARGUMENT, "%s: is null", argument);
  if (accumulator->context != &context) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "%s: belongs to another context; export it, and import it into this one", argument);
  }
  // A thread that uses the context also has the accumulator, except in functions without a context
  // argument.
  if (!useUntilCallEnds(*accumulator->context, accumulator->in_use)) failInUse(argument);
  if (accumulator->half_added) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "%s: a call that failed or was cancelled added only some of its samples; create a new "
         "accumulator, or import an earlier export",
         argument);
  }
  return *accumulator;
}

rbcAccumulator* newAccumulator(rbcContext& context) {
  auto made = std::make_unique<rbcAccumulator>();
  retain(context);
  made->context = &context;
  return made.release();
}

AccumulatorState stateOf(rbcAccumulator& accumulator, DType dtype) {
  use(accumulator);
  const AccumulatorData& settled = accumulator.settled;
  AccumulatorKind kind = settled.kind;
  kind.dtype = dtype;
  const Parts parts(accumulator.memory, settled);
  AccumulatorState state = {};
  state.channels = kind.channels;
  state.pass = kind.pass;
  state.table_bits = kind.tableBits();
  state.shift = kind.shift();
  state.wide_keys = keyWidth(kind.dtype) == 64;
  if (kind.pass == 1) {
    state.moments = parts.moments;
  } else {
    state.seen = parts.seen;
    state.buckets = parts.buckets;
    state.first_bucket = parts.first_bucket;
    state.num_buckets = static_cast<int64_t>(settled.buckets.size());
  }
  if (state.table_bits > 0) state.tables = parts.tables;
  return state;
}

AccumulatorData fetch(rbcAccumulator& accumulator) {
  rbcContext& context = *accumulator.context;
  requireNoCapture(context);
  AccumulatorData data = accumulator.settled;
  if (accumulator.bytes == 0) return data;
  use(accumulator);
  const std::unique_ptr<std::byte[]> bytes(new std::byte[accumulator.bytes]);
  context.backend->copy(
      *context.state,
      bytesView(accumulator.memory, accumulator.bytes, context.backend->device(*context.state)),
      bytesView(bytes.get(), accumulator.bytes, kHost));
  const Parts parts(bytes.get(), data);
  const AccumulatorKind& kind = data.kind;
  if (kind.pass == 1) {
    data.moments.assign(parts.moments, parts.moments + kind.channels);
  } else if (!kind.resolved) {
    data.seen.assign(parts.seen, parts.seen + 2 * kind.channels);
  }
  data.tables.assign(parts.tables, parts.tables + data.numTables() * kind.tableSize());
  return data;
}

void place(rbcAccumulator& accumulator, AccumulatorData data) {
  rbcContext& context = *accumulator.context;
  requireNoCapture(context);
  const size_t bytes = Parts(nullptr, data).layout.used();
  const uint64_t digest = data.kind.pass > 1 ? digestOf(data) : 0;
  const int64_t most = mostSamples(data);
  const std::unique_ptr<std::byte[]> host(new std::byte[bytes]());
  const Parts parts(host.get(), data);
  if (data.kind.pass == 1) {
    copyIn(parts.moments, data.moments);
  } else if (!data.kind.resolved) {
    copyIn(parts.seen, data.seen);
    for (int64_t c = 0; c < data.kind.channels; ++c) {
      for (int64_t b = data.first_bucket[c]; b < data.first_bucket[c + 1]; ++b) {
        parts.buckets[b] = {data.buckets[b].prefix, c};
      }
    }
    copyIn(parts.first_bucket, data.first_bucket);
  }
  copyIn(parts.tables, data.tables);
  if (data.kind.pass == 1) data.moments = {};
  data.tables = {};
  data.seen = {};

  void* memory = nullptr;
  if (bytes > 0) {
    memory = allocate(context, bytes);
    try {
      context.backend->copy(*context.state, bytesView(host.get(), bytes, kHost),
                            bytesView(memory, bytes, context.backend->device(*context.state)));
      use(accumulator);
    } catch (...) {
      release(context, memory, bytes, context.backend->stream(*context.state));
      throw;
    }
  }
  release(context, accumulator.memory, accumulator.bytes, accumulator.stream);
  accumulator.memory = memory;
  accumulator.bytes = bytes;
  accumulator.settled = std::move(data);
  accumulator.digest = digest;
  accumulator.most_samples = most;
}

void requireRoom(rbcAccumulator& accumulator, int64_t samples, const char* argument) {
  // Samples that masks and lengths skip do not count; only reading the counts shows how many they
  // are.
  if (accumulator.most_samples <= kMaxSamples - samples) return;
  accumulator.most_samples = mostSamples(fetch(accumulator));
  if (accumulator.most_samples <= kMaxSamples - samples) return;
  fail(RBC_STATUS_UNSUPPORTED,
       "%s: %" PRId64 " samples and the %" PRId64 " before are more than 2^40", argument, samples,
       accumulator.most_samples);
}

}  // namespace rbc
