// rbcLive...: threads push samples, and rbcFuse fuses the samples in the rings.

#include "robocache/live.h"

#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cstddef>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "context.h"
#include "dtype.h"
#include "fuse/sample_builder.h"
#include "fuse/times_check.h"
#include "guard.h"
#include "live/live_stream.h"
#include "overlap.h"
#include "params.h"
#include "runtime/dtype_checks.h"
#include "scratch_layout.h"
#include "status.h"

struct rbcLive {
  rbcContext* context = nullptr;  // holds a reference
  rbcContext* fusing = nullptr;   // a separate context with one thread
  rbc::DType time_dtype = rbc::DType::F64;
  std::vector<std::unique_ptr<rbc::LiveStream>> streams;
  std::vector<rbcFuseStream> for_fuse;
  std::atomic<bool> busy{false};  // a call fuses
  // Memory that the CPU fuses into for CUDA.
  std::vector<std::byte> out;
  std::vector<std::byte> valid;
};

namespace rbc {
namespace {

struct LiveDestroyer {
  void operator()(rbcLive* live) const noexcept {
    if (live->fusing != nullptr) rbcContextDestroy(live->fusing);
    if (live->context != nullptr) drop(live->context);
    delete live;
  }
};
using LivePointer = std::unique_ptr<rbcLive, LiveDestroyer>;

// Fails with the message that the function has left.
void require(rbcStatus_t status) {
  if (status != RBC_STATUS_SUCCESS) throw Error(status);
}

rbcLive& requireLive(rbcLive_t live) {
  if (live == nullptr) fail(RBC_STATUS_INVALID_ARGUMENT, "live: is null");
  return *live;
}

LiveStream& requireStream(rbcLive& live, int32_t stream) {
  const auto count = static_cast<int32_t>(live.streams.size());
  if (stream < 0 || stream >= count) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "stream_index: is %d, expected 0 to %d", stream, count - 1);
  }
  return *live.streams[static_cast<size_t>(stream)];
}

// ---- creating -----------------------------------------------------------------------------------

DType checkedTimeDtype(const rbcLiveParams& params) {
  const DType dtype = dtypeOf(params.time_dtype, "params.time_dtype");
  if (dtype != DType::F32 && dtype != DType::F64 && dtype != DType::I64) {
    fail(RBC_STATUS_DTYPE_MISMATCH,
         "params.time_dtype: dtype is %s, expected float32, float64 or int64", nameOf(dtype));
  }
  return dtype;
}

void addStreams(rbcLive& live, const rbcLiveStream* streams, int32_t count) {
  const uint32_t stride = structSize(streams);
  for (int32_t n = 0; n < count; ++n) {
    const char* separator = ": ";
    try {
      const rbcLiveStream input = readElement(streams, stride, n, rbcLiveStreamInit(), "streams");
      separator = ".";
      live.streams.push_back(std::make_unique<LiveStream>(input, live.time_dtype));
    } catch (const Error&) {
      prefixLastError("streams[%d]%s", n, separator);
      throw;
    }
    live.for_fuse.push_back(live.streams.back()->forFuse());
  }
}

rbcTensor hostTensor(void* data, rbcDType dtype, int32_t ndim, int64_t* shape) {
  rbcTensor tensor = {};
  tensor.data = data;
  tensor.device = {RBC_DEVICE_CPU, 0};
  tensor.ndim = ndim;
  tensor.dtype = dtype;
  tensor.shape = shape;
  return tensor;
}

// Bounds the workspace of rbcFuse for samples with arrivals.
size_t minimaBytes(const rbcLive& live) {
  ScratchLayout layout(nullptr);
  for (const auto& stream : live.streams) {
    layout.take<uint64_t>(arrivalMinimaOf(stream->ring().capacity()));
  }
  return layout.used();
}

// Calls rbcFuse without queries, so that its errors occur now and its memory is allocated.
void tryFuse(rbcLive& live) {
  int64_t none = 0;
  int64_t out_shape[] = {0, 0};
  int64_t valid_shape[] = {0, static_cast<int64_t>(live.streams.size())};
  for (const auto& stream : live.streams) out_shape[1] += stream->channels();
  const rbcTensor queries = hostTensor(nullptr, describe(live.time_dtype), 1, &none);
  const rbcTensor out = hostTensor(nullptr, describe(DType::F32), 2, out_shape);
  const rbcTensor valid = hostTensor(nullptr, describe(DType::U8), 2, valid_shape);
  require(rbcFuse(live.fusing, live.for_fuse.data(), static_cast<int32_t>(live.for_fuse.size()),
                  &queries, &out, &valid, nullptr));
  require(rbcContextReserve(live.fusing, minimaBytes(live)));
}

rbcLive* create(rbcContext_t context, const rbcLiveStream* streams, int32_t num_streams,
                const rbcLiveParams* input) {
  const ContextUse use(context);
  const rbcLiveParams params = readParams(input, rbcLiveParamsInit(), "params");
  if (num_streams < 1 || num_streams > RBC_FUSE_MAX_STREAMS) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "num_streams: is %d, expected 1 to %d", num_streams,
         RBC_FUSE_MAX_STREAMS);
  }
  if (streams == nullptr) fail(RBC_STATUS_INVALID_ARGUMENT, "streams: is null");
  LivePointer live(new rbcLive);
  retain(*use);
  live->context = &*use;
  live->time_dtype = checkedTimeDtype(params);
  rbcContextParams cpu = rbcContextParamsInit();
  cpu.backend = RBC_BACKEND_CPU;
  cpu.num_threads = 1;
  require(rbcContextCreate(&cpu, &live->fusing));
  addStreams(*live, streams, num_streams);
  tryFuse(*live);
  return live.release();
}

// Fails if a thread is in a call. Afterwards no thread can begin one.
void requireIdle(rbcLive& live) {
  if (live.busy.exchange(true, std::memory_order_acquire)) {
    fail(RBC_STATUS_UNSUPPORTED, "live: a thread is fusing; wait until its call returns");
  }
  for (size_t n = 0; n < live.streams.size(); ++n) {
    if (live.streams[n]->ring().enter()) continue;
    for (size_t before = 0; before < n; ++before) live.streams[before]->ring().leave();
    live.busy.store(false, std::memory_order_release);
    fail(RBC_STATUS_UNSUPPORTED,
         "live: a thread is pushing to stream %zu; wait until its call returns", n);
  }
}

// ---- pushing ------------------------------------------------------------------------------------

// Copies the row of a sample to contiguous memory.
const std::byte* rowAt(const View& values, int64_t i, std::byte* room) {
  const int64_t size = sizeOf(values.dtype);
  const std::byte* row = values.data + i * values.strides[0] * size;
  if (values.strides[1] == 1 || values.shape[1] == 1) return row;
  for (int64_t d = 0; d < values.shape[1]; ++d) {
    std::memcpy(room + d * size, row + d * values.strides[1] * size, static_cast<size_t>(size));
  }
  return room;
}

template <class Time>
Time timeAt(const View& times, int64_t i) {
  Time time;
  std::memcpy(&time, times.data + i * times.strides[0] * int64_t{sizeof time}, sizeof time);
  return time;
}

// `arrivals` may be null.
template <class Time>
void pushAll(LiveStream& stream, const View& times, const View* arrivals, const View& values) {
  for (int64_t i = 0; i < times.shape[0]; ++i) {
    const Time arrival = arrivals != nullptr ? timeAt<Time>(*arrivals, i) : kAlways<Time>;
    stream.ring().push(timeAt<Time>(times, i), arrival, rowAt(values, i, stream.room()));
  }
}

class Pushing {
 public:
  explicit Pushing(LiveRing& ring) : ring_(ring) {
    if (!ring.enter()) {
      fail(RBC_STATUS_UNSUPPORTED,
           "stream_index: another thread is pushing to this stream, expected one thread at a time");
    }
  }
  ~Pushing() { ring_.leave(); }
  Pushing(const Pushing&) = delete;

 private:
  LiveRing& ring_;
};

void push(rbcLive& live, int32_t index, const rbcTensor* given_values, const rbcTensor* given_times,
          const rbcTensor* given_arrivals) {
  LiveStream& stream = requireStream(live, index);
  const View times = normalize(given_times, "times");
  const View values = normalize(given_values, "values");
  requireHost(times, "times");
  requireHost(values, "values");
  requireDType(times, "times", live.time_dtype);
  requireDType(values, "values", stream.dtype());
  requireRank(times, "times", 1, 1);
  const int64_t shape[] = {times.shape[0], stream.channels()};
  requireShape(values, "values", 2, shape);
  View arrivals;
  if (given_arrivals != nullptr) {
    arrivals = normalize(given_arrivals, "arrivals");
    requireHost(arrivals, "arrivals");
    requireDType(arrivals, "arrivals", live.time_dtype);
    requireShape(arrivals, "arrivals", 1, shape);
  }
  const Pushing pushing(stream.ring());
  visitTime(live.time_dtype, [&](auto tag) {
    pushAll<typename decltype(tag)::type>(stream, times,
                                          given_arrivals != nullptr ? &arrivals : nullptr, values);
  });
}

void reset(rbcLive& live, int32_t index) {
  LiveRing& ring = requireStream(live, index).ring();
  const Pushing pushing(ring);
  ring.reset();
}

// ---- fusing -------------------------------------------------------------------------------------

class Fusing {
 public:
  explicit Fusing(std::atomic<bool>& busy) : busy_(busy) {
    if (busy.exchange(true, std::memory_order_acquire)) {
      fail(RBC_STATUS_UNSUPPORTED, "live: another thread is fusing, expected one thread at a time");
    }
  }
  ~Fusing() { busy_.store(false, std::memory_order_release); }
  Fusing(const Fusing&) = delete;

 private:
  std::atomic<bool>& busy_;
};

template <class Time>
void takeAll(rbcLive& live, const TimeOffset& lag, const View& query_times) {
  LiveStream::Queries<Time> queries;
  queries.first = queries.last = 0;
  queries.none = true;
  queries.count = 0;
  bool few = query_times.shape[0] <= LiveStream::kMaxFew;
  for (int64_t i = 0; i < query_times.shape[0]; ++i) {
    const auto query = timeAt<Time>(query_times, i);
    if (TimeMath<Time>::isNaN(query)) continue;
    if (queries.none) queries.first = queries.last = query;
    queries.none = false;
    few = few && !(query < queries.last);
    if (few) queries.few[queries.count++] = query;
    queries.first = std::min(queries.first, query);
    queries.last = std::max(queries.last, query);
  }
  if (!few) queries.count = 0;
  for (const auto& stream : live.streams) stream->take(queries, lag, query_times);
}

const View* checkedAges(const rbcLive& live, const rbcOutput* ages, View* view, const View& queries,
                        const rbcTensor* out, const rbcTensor* valid) {
  if (ages == nullptr) return nullptr;
  *view = normalize(ages, "ages");
  requireHost(*view, "ages");
  const auto count = static_cast<int64_t>(live.streams.size());
  requireShape(*view, "ages", 1, &count);
  const DType expected = live.time_dtype == DType::I64 ? DType::I64 : DType::F64;
  requireDType(*view, "ages", expected);
  requireDistinctElements(*view, "ages");
  requireDisjoint(*view, "ages", queries, "query_times");
  requireDisjoint(*view, "ages", normalize(out, "out"), "out");
  if (valid != nullptr) requireDisjoint(*view, "ages", normalize(valid, "valid"), "valid");
  return view;
}

void runFuse(rbcLive& live, const rbcTensor* queries, const rbcTensor* out, const rbcTensor* valid,
             const rbcLiveFuseParams& tick) {
  rbcFuseParams params = rbcFuseParamsInit();
  params.lag = tick.lag;
  params.lag_ticks = tick.lag_ticks;
  require(rbcFuse(live.fusing, live.for_fuse.data(), static_cast<int32_t>(live.for_fuse.size()),
                  queries, out, valid, &params));
}

// Returns a tensor in host memory with the shape and dtype of a tensor on the device.
rbcTensor staged(const View& device, std::vector<std::byte>* memory, const char* name) {
  if (!device.contiguous()) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "%s: has strides, expected a contiguous tensor on CUDA",
         name);
  }
  memory->resize(
      std::max<size_t>(memory->size(), static_cast<size_t>(device.count * sizeOf(device.dtype))));
  rbcTensor tensor = {};
  tensor.data = memory->data();
  tensor.device = {RBC_DEVICE_CPU, 0};
  tensor.ndim = device.ndim;
  tensor.dtype = describe(device.dtype);
  tensor.shape = const_cast<int64_t*>(device.shape);
  return tensor;
}

void fuse(rbcLive& live, const rbcTensor* query_times, const rbcTensor* out, const rbcTensor* valid,
          const rbcOutput* given_ages, const rbcLiveFuseParams* input) {
  const rbcLiveFuseParams params = readParams(input, rbcLiveFuseParamsInit(), "params");
  const TimeOffset lag = timeOffsetOf(params.lag, params.lag_ticks, live.time_dtype, "params.lag");
  const View queries = normalize(query_times, "query_times");
  requireHost(queries, "query_times");
  requireRank(queries, "query_times", 1, 1);
  requireDType(queries, "query_times", live.time_dtype);
  View room;
  const View* ages = checkedAges(live, given_ages, &room, queries, out, valid);
  const Fusing fusing(live.busy);
  visitTime(live.time_dtype,
            [&](auto tag) { takeAll<typename decltype(tag)::type>(live, lag, queries); });
  if (live.context->backend->id == RBC_BACKEND_CPU) {
    runFuse(live, query_times, out, valid, params);
  } else {
    const View device_out = normalize(out, "out");
    requireReachable(*live.context, device_out, "out");
    const rbcTensor host_out = staged(device_out, &live.out, "out");
    rbcTensor host_valid = {};
    View device_valid;
    if (valid != nullptr) {
      device_valid = normalize(valid, "valid");
      requireReachable(*live.context, device_valid, "valid");
      host_valid = staged(device_valid, &live.valid, "valid");
    }
    runFuse(live, query_times, &host_out, valid != nullptr ? &host_valid : nullptr, params);
    require(rbcTensorCopy(live.context, &host_out, out));
    if (valid != nullptr) require(rbcTensorCopy(live.context, &host_valid, valid));
  }
  for (size_t n = 0; ages != nullptr && n < live.streams.size(); ++n) {
    const uint64_t age = live.streams[n]->age();
    std::memcpy(ages->data + static_cast<int64_t>(n) * ages->strides[0] * 8, &age, sizeof age);
  }
}

// ---- counters -----------------------------------------------------------------------------------

void writeCounters(const LiveStream& stream, rbcLiveCounters* counters) {
  const LiveRing::Counters now = stream.ring().counters();
  rbcLiveCounters all = rbcLiveCountersInit();
  all.kept = now.pushed;
  all.overwritten = now.overwritten;
  all.late = now.late;
  all.dropped = now.dropped;
  all.snapshot_retries = now.snapshot_retries;
  all.queries_before_first = stream.queriesBeforeFirst();
  all.ahead = now.ahead;
  all.invalid = now.invalid;
  all.forgotten = now.forgotten;
  writeInfo(counters, all, "counters", "rbcLiveCountersInit");
}

}  // namespace
}  // namespace rbc

rbcStatus_t rbcLiveCreate(rbcContext_t context, const rbcLiveStream* streams, int32_t num_streams,
                          const rbcLiveParams* params, rbcLive_t* live) {
  return rbc::guard([&] {
    if (live == nullptr) rbc::fail(RBC_STATUS_INVALID_ARGUMENT, "live: is null");
    *live = nullptr;
    *live = rbc::create(context, streams, num_streams, params);
  });
}

rbcStatus_t rbcLiveDestroy(rbcLive_t live) {
  return rbc::guard([&] {
    if (live == nullptr) return;
    rbc::requireIdle(*live);
    rbc::LiveDestroyer{}(live);
  });
}

rbcStatus_t rbcLivePush(rbcLive_t live, int32_t stream_index, const rbcTensor* values,
                        const rbcTensor* times, const rbcTensor* arrivals) {
  return rbc::guard(
      [&] { rbc::push(rbc::requireLive(live), stream_index, values, times, arrivals); });
}

rbcStatus_t rbcLiveReset(rbcLive_t live, int32_t stream_index) {
  return rbc::guard([&] { rbc::reset(rbc::requireLive(live), stream_index); });
}

rbcStatus_t rbcLiveFuse(rbcLive_t live, const rbcTensor* query_times, const rbcOutput* out,
                        const rbcOutput* valid, const rbcOutput* ages,
                        const rbcLiveFuseParams* params) {
  return rbc::guard(
      [&] { rbc::fuse(rbc::requireLive(live), query_times, out, valid, ages, params); });
}

rbcStatus_t rbcLiveGetCounters(rbcLive_t live, int32_t stream_index, rbcLiveCounters* counters) {
  return rbc::guard([&] {
    rbc::writeCounters(rbc::requireStream(rbc::requireLive(live), stream_index), counters);
  });
}
