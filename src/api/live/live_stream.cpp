#include "live/live_stream.h"

#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cstddef>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <type_traits>
#include <vector>

#include "fuse/channel_groups.h"
#include "fuse/fuse_builder.h"
#include "fuse/sample_builder.h"
#include "fuse/times_check.h"
#include "params.h"
#include "status.h"
#include "view.h"

namespace rbc {
namespace {

constexpr int64_t kMaxCapacity = int64_t{1} << 24;
constexpr rbcDevice kHost = {RBC_DEVICE_CPU, 0};

int64_t checkedChannels(const rbcLiveStream& input) {
  constexpr int64_t kMaxChannels = int64_t{1} << 24;
  if (input.num_channels < 1 || input.num_channels > kMaxChannels) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "num_channels: is %" PRId64 ", expected 1 to 2^24",
         input.num_channels);
  }
  return input.num_channels;
}

// Refuses the parameters of batches: a ring holds a single recording.
void requireLiveParams(const rbcResampleParams& params) {
  const auto refuse = [](const void* field, const char* name) {
    if (field == nullptr) return;
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "params.%s: is set, expected null: a ring holds one recording", name);
  };
  refuse(params.lengths, "lengths");
  refuse(params.batch_offsets, "batch_offsets");
  refuse(params.sample_mask, "sample_mask");
  if (params.arrivals != nullptr) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "params.arrivals: is set, expected null: rbcLivePush has the arrivals");
  }
}

// Returns how many samples a method combines.
int64_t samplesOf(int32_t method) {
  switch (method) {
    case RBC_METHOD_PREVIOUS:
    case RBC_METHOD_NEXT:
    case RBC_METHOD_NEAREST: return 1;
    case RBC_METHOD_CUBIC:
    case RBC_METHOD_PCHIP: return 4;
    default: return 2;
  }
}

int64_t samplesOf(const rbcResampleParams& params) {
  if (params.num_groups == 0) return samplesOf(params.method);
  int64_t count = 1;
  for (int32_t i = 0; i < params.num_groups; ++i) {
    count = std::max(count, samplesOf(params.groups[i].method));
  }
  return count;
}

void requireCapacity(const rbcLiveStream& input, const rbcResampleParams& params) {
  if (input.late_bound < 0) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "late_bound: is %" PRId64 ", expected 0 or more",
         input.late_bound);
  }
  if (input.capacity > kMaxCapacity) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "capacity: is %" PRId64 ", expected at most 2^24",
         input.capacity);
  }
  const int64_t least = samplesOf(params);
  if (input.capacity < least) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "capacity: is %" PRId64 ", expected at least %" PRId64 " for the stream's methods",
         input.capacity, least);
  }
  if (input.late_bound >= input.capacity) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "late_bound: is %" PRId64 ", expected less than the capacity, %" PRId64, input.late_bound,
         input.capacity);
  }
}

TimeLimit maxAheadOf(double max_ahead, DType time_dtype) {
  if (!(max_ahead > 0)) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "max_ahead: is %g, expected more than 0 (INFINITY: no limit)",
         max_ahead);
  }
  const TimeLimit limit = timeLimitOf(max_ahead, time_dtype, "max_ahead");
  if (limit.set && limit.real == 0) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "max_ahead: is %g, which is 0 for times of %s", max_ahead,
         nameOf(time_dtype));
  }
  return limit;
}

template <class T>
std::vector<T> roomFor(int64_t count, int64_t of_each) {
  int64_t all = 0;
  if (__builtin_mul_overflow(count, of_each, &all) || all > int64_t{1} << 40) {
    throw std::bad_alloc();
  }
  return std::vector<T>(static_cast<size_t>(all));
}

template <class Number>
uint64_t bitsOf(Number number) {
  uint64_t bits = 0;
  static_assert(sizeof bits == sizeof number);
  std::memcpy(&bits, &number, sizeof bits);
  return bits;
}

// The age of a stream without samples.
template <class Time>
uint64_t noAge() {
  return std::is_same_v<Time, int64_t> ? bitsOf(std::numeric_limits<int64_t>::max())
                                       : uint64_t{0x7fffffffffffffff};
}

}  // namespace

LiveStream::LiveStream(const rbcLiveStream& input, DType time_dtype)
    : dtype_(dtypeOf(input.dtype, "dtype")), channels_(checkedChannels(input)) {
  params_ = checkedParams(input.params);
  requireLiveParams(params_);
  keepGroups();
  requireCapacity(input, params_);
  // Methods of two samples use only the neighbours of the query. The others use two neighbours on
  // each side, or the last ones past an end, and depend on the order of samples with equal times.
  times_around_ = samplesOf(params_) == 4 || params_.outside == RBC_OUTSIDE_EXTRAPOLATE ? 4 : 1;
  clock_offset_ =
      timeOffsetOf(input.clock_offset, input.clock_offset_ticks, time_dtype, "clock_offset");

  const int64_t row_bytes = channels_ * sizeOf(dtype_);
  ring_ = std::make_unique<LiveRing>(input.capacity, input.late_bound,
                                     maxAheadOf(input.max_ahead, time_dtype), row_bytes);
  times_ = roomFor<std::byte>(input.capacity, sizeOf(time_dtype));
  arrivals_ = roomFor<std::byte>(input.capacity, sizeOf(time_dtype));
  rows_ = roomFor<uint64_t>(input.capacity, ring_->takenBytes() / 8);
  numbers_ = roomFor<uint64_t>(input.capacity, 1);
  room_ = roomFor<std::byte>(row_bytes, 1);
  shape_[0] = input.capacity;
  shape_[1] = channels_;
  describe(&values_tensor_, rows_.data(), dtype_, 2, shape_);
  strides_[0] = ring_->takenBytes() / sizeOf(dtype_);
  strides_[1] = 1;
  values_tensor_.strides = strides_;
  describe(&times_tensor_, times_.data(), time_dtype, 1, shape_);
  describe(&arrivals_tensor_, arrivals_.data(), time_dtype, 1, shape_);

  keep(params_.shift, "params.shift", &shift_, &shift_tensor_, &params_.shift);
  keep(params_.scale, "params.scale", &scale_, &scale_tensor_, &params_.scale);
  fuse_ = rbcFuseStreamInit();
  fuse_.values = &values_tensor_;
  fuse_.times = &times_tensor_;
  fuse_.params = &params_;
  fuse_.clock_offset = input.clock_offset;
  fuse_.clock_offset_ticks = input.clock_offset_ticks;
}

// Copies the groups; rbcFuse checks their contents.
void LiveStream::keepGroups() {
  rbcChannelGroup groups[kMaxSegments];
  try {
    readGroups(params_, groups);
  } catch (const Error&) {
    prefixLastError("params.");
    throw;
  }
  groups_.assign(groups, groups + params_.num_groups);
  if (params_.num_groups > 0) params_.groups = groups_.data();
  params_.group_size = sizeof(rbcChannelGroup);
}

void LiveStream::describe(rbcTensor* tensor, void* data, DType dtype, int ndim, int64_t* shape) {
  *tensor = {};
  tensor->data = data;
  tensor->device = kHost;
  tensor->ndim = ndim;
  tensor->dtype = rbc::describe(dtype);
  tensor->shape = shape;
}

void LiveStream::keep(const rbcTensor* tensor, const char* name, std::vector<double>* values,
                      rbcTensor* kept, const rbcTensor** used) {
  if (tensor == nullptr) return;
  const View view = normalize(tensor, name);
  requireHost(view, name);
  requireShape(view, name, 1, &channels_);
  const bool is_64 = view.dtype == DType::F64;
  if (!is_64 && view.dtype != DType::F32) {
    fail(RBC_STATUS_DTYPE_MISMATCH, "%s: dtype is %s, expected float32 or float64", name,
         nameOf(view.dtype));
  }
  // Stored as f64. rbcFuse rounds them to its compute dtype, which restores the values of f32.
  const RealArray array = {view.data, view.strides[0], is_64};
  for (int64_t d = 0; d < channels_; ++d) values->push_back(array.at<double>(d));
  describe(kept, values->data(), DType::F64, 1, shape_ + 1);
  *used = kept;
}

// Times of samples are finite, so no difference is NaN.
template <class Time>
uint64_t LiveStream::ageAt(Time now, Time until, const LiveRing::Taken<Time>& taken) const {
  const Time* const after = std::upper_bound(taken.times, taken.times + taken.count, now);
  const int64_t later = after - taken.times;
  const auto exists = [&](int64_t i) { return !taken.arrive || taken.arrivals[i] <= until; };
  int64_t used = later - 1;
  while (used >= 0 && !exists(used)) --used;
  if (used < 0) {
    used = later;
    while (used < taken.count && !exists(used)) ++used;
    if (used == taken.count) return noAge<Time>();
  }
  const Time age = TimeMath<Time>::shifted(now, taken.times[used]);
  if constexpr (std::is_same_v<Time, int64_t>) {
    return bitsOf(std::min(age, std::numeric_limits<int64_t>::max() - 1));
  } else {
    return bitsOf(static_cast<double>(age));
  }
}

template <class Time>
void LiveStream::take(const Queries<Time>& queries, const TimeOffset& lag,
                      const View& query_times) {
  const Time offset = offsetAs<Time>(clock_offset_);
  Time few[kMaxFew];
  for (int64_t i = 0; i < queries.count; ++i) {
    few[i] = TimeMath<Time>::shifted(queries.few[i], offset);
  }
  Time from = std::numeric_limits<Time>::max();
  if (!queries.none) from = TimeMath<Time>::shifted(queries.first, offset);
  LiveRing::Taken<Time> taken;
  taken.times = reinterpret_cast<Time*>(times_.data());
  taken.arrivals = reinterpret_cast<Time*>(arrivals_.data());
  taken.rows = rows_.data();
  taken.numbers = numbers_.data();
  const LiveRing::Queries<Time> needed = {from,          queries.none,       few,
                                          queries.count, times_around_,      queries.first,
                                          queries.few,   offsetAs<Time>(lag)};
  ring_->take(needed, &taken);
  shape_[0] = taken.count;
  params_.arrivals = taken.arrive ? &arrivals_tensor_ : nullptr;
  if (!taken.any || queries.none) {
    age_ = noAge<Time>();
    return;
  }
  // The samples begin before the first query, unless no earlier sample exists.
  if (taken.times[0] > from) {
    int64_t early = 0;
    for (int64_t i = 0; i < query_times.shape[0]; ++i) {
      Time query;
      std::memcpy(&query, query_times.data + i * query_times.strides[0] * int64_t{sizeof query},
                  sizeof query);
      early += TimeMath<Time>::shifted(query, offset) < taken.times[0] ? 1 : 0;
    }
    queries_before_first_.store(queries_before_first_.load(std::memory_order_relaxed) + early,
                                std::memory_order_relaxed);
  }
  age_ = ageAt(TimeMath<Time>::shifted(queries.last, offset), needed.untilOf(queries.last), taken);
}

template void LiveStream::take(const Queries<float>&, const TimeOffset&, const View&);
template void LiveStream::take(const Queries<double>&, const TimeOffset&, const View&);
template void LiveStream::take(const Queries<int64_t>&, const TimeOffset&, const View&);

}  // namespace rbc
