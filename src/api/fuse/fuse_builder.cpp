#include "fuse/fuse_builder.h"

#include <cinttypes>
#include <cmath>
#include <cstring>

#include "fuse/channel_groups.h"
#include "fuse/times_check.h"
#include "real.h"
#include "runtime/dtype_checks.h"
#include "status.h"

namespace rbc {
namespace {

// Returns the stride of the batch dimension, 0 if the tensor has no batch.
int64_t batchStride(const View& view, int rank_with_batch) {
  return view.ndim == rank_with_batch ? view.strides[0] : 0;
}

void requireValueDtypes(const View& values, const View& out, const MethodSet& methods) {
  if (isFloat(values.dtype)) {
    if (!isFloat(out.dtype)) {
      fail(RBC_STATUS_DTYPE_MISMATCH, "out: dtype is %s, expected a float for float values",
           nameOf(out.dtype));
    }
    return;
  }
  if (const char* method = methods.interpolating(); method != nullptr) {
    fail(RBC_STATUS_DTYPE_MISMATCH,
         "values: dtype is %s, expected a float for method %s (integers take nearest, previous or "
         "next)",
         nameOf(values.dtype), method);
  }
  if (!isFloat(out.dtype) && out.dtype != values.dtype) {
    fail(RBC_STATUS_DTYPE_MISMATCH, "out: dtype is %s, expected %s or a float", nameOf(out.dtype),
         nameOf(values.dtype));
  }
}

}  // namespace

rbcResampleParams checkedParams(const rbcResampleParams* input, OwnOutside own) {
  const rbcResampleParams params = readParams(input, rbcResampleParamsInit(), "params");
  if (params.outside != RBC_OUTSIDE_HOLD && params.outside != RBC_OUTSIDE_FILL &&
      params.outside != static_cast<int32_t>(own)) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "outside: is %d, expected RBC_OUTSIDE_HOLD, _FILL or %s",
         params.outside, own == OwnOutside::kNeutral ? "_NEUTRAL" : "_EXTRAPOLATE");
  }
  if (!(params.max_gap >= 0)) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "max_gap: is %g, expected 0 or more", params.max_gap);
  }
  if (!(params.tolerance >= 0)) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "tolerance: is %g, expected 0 or more", params.tolerance);
  }
  return params;
}

void failUnshared(const rbcResampleParams& params, const char* owner) {
  if ((params.flags & ~RBC_FLAG_CAUSAL) != 0) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "params.flags: is 0x%x, expected RBC_FLAG_CAUSAL or 0: set other flags in %s",
         params.flags, owner);
  }
  if (params.lag != 0) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "params.lag: is %g, expected 0: set it in %s", params.lag,
         owner);
  }
  fail(RBC_STATUS_INVALID_ARGUMENT, "params.lag_ticks: is %" PRId64 ", expected 0: set it in %s",
       params.lag_ticks, owner);
}

FuseBuilder::FuseBuilder(const rbcContext& context, const SharedArguments& shared, bool check_times,
                         const char* stream_array)
    : CallBase(context),
      check_times_(check_times),
      stream_array_(stream_array),
      shared_(shared),
      out_(operands.out(shared.out, "out", Operands::Reach::kInTheEnd)),
      valid_(operands.optionalOut(shared.valid, "valid", Operands::Reach::kInTheEnd)),
      query_times_(operands.in(shared.query_times, "query_times", Operands::Reach::kInTheEnd)) {}

void FuseBuilder::requireFloatOut() const {
  if (!isFloat(out_.dtype)) {
    fail(RBC_STATUS_DTYPE_MISMATCH, "out: dtype is %s, expected a float", nameOf(out_.dtype));
  }
}

void FuseBuilder::read(const rbcTensor* tensor, const char* argument, int64_t count,
                       IndexArray* array) {
  *array = {};
  if (tensor == nullptr) return;
  const View& view = operands.in(tensor, argument);
  *array = indexArrayOf(view, argument, count);
}

void FuseBuilder::read(const rbcTensor* tensor, const char* argument, int64_t count,
                       RealArray* array) {
  *array = {};
  if (tensor == nullptr) return;
  const View& view = operands.in(tensor, argument);
  requireShape(view, argument, 1, &count);
  requireF32OrF64(view, argument);
  if (!isFloat(out_.dtype)) {
    fail(RBC_STATUS_DTYPE_MISMATCH, "%s: needs an out of a float dtype, but out is %s", argument,
         nameOf(out_.dtype));
  }
  *array = {view.data, view.strides[0], view.dtype == DType::F64};
}

void FuseBuilder::readSampleMask(const rbcTensor* tensor, int64_t batch, bool of_rows,
                                 FuseStream* stream) {
  stream->sample_mask = nullptr;
  stream->sample_mask_stride[0] = stream->sample_mask_stride[1] = 0;
  if (tensor == nullptr) return;
  constexpr const char* kName = "sample_mask";
  const View& mask = operands.in(tensor, kName);
  requireRank(mask, kName, 1, of_rows ? 2 : 1);
  const int64_t shape[] = {batch, stream->samples};
  requireShape(mask, kName, mask.ndim, shape + 2 - mask.ndim);
  requireMask(mask, kName);
  stream->sample_mask = reinterpret_cast<const uint8_t*>(mask.data);
  stream->sample_mask_stride[0] = batchStride(mask, 2);
  stream->sample_mask_stride[1] = mask.strides[mask.ndim - 1];
}

void FuseBuilder::readArrivals(const rbcTensor* tensor, int64_t batch, const View& times,
                               bool of_rows, Arrivals* arrivals) {
  constexpr const char* kName = "arrivals";
  const View& view = operands.in(tensor, kName);
  const int64_t samples = times.shape[times.ndim - 1];
  requireRank(view, kName, 1, of_rows ? 2 : 1);
  const int64_t shape[] = {batch, samples};
  requireShape(view, kName, view.ndim, shape + 2 - view.ndim);
  requireDType(view, kName, times.dtype);
  // The address of an array without elements is never read, but differs from null.
  arrivals->data = view.data != nullptr ? static_cast<const void*>(view.data) : &problem_;
  arrivals->stride[0] = batchStride(view, 2);
  arrivals->stride[1] = view.strides[view.ndim - 1];
  problem_.causal = &causal_;
}

void FuseBuilder::add(const StreamArguments& stream) {
  FuseProblem& p = problem_;
  const rbcResampleParams& params = stream.params;
  const View& values = operands.in(stream.values, "values");
  const View& times = operands.in(stream.times, "times");

  // Three forms: padded [B,S,D], packed [N,D] with batch_offsets, and without a batch [S,D].
  const bool packed = params.batch_offsets != nullptr;
  requireRank(values, "values", 2, packed ? 2 : 3);
  const bool batched = packed || values.ndim == 3;
  requireRank(times, "times", 1, packed || !batched ? 1 : 2);
  if (packed && params.lengths != nullptr) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "lengths: expected null with batch_offsets; lengths are for padded values");
  }
  int64_t batch = values.ndim == 3 ? values.shape[0] : 1;
  if (packed) {
    const View offsets =
        normalize(params.batch_offsets, "batch_offsets");  // added once the batch is known
    requireRank(offsets, "batch_offsets", 1, 1);
    if (offsets.shape[0] < 1) {
      fail(RBC_STATUS_SHAPE_MISMATCH, "batch_offsets: shape is [0], expected [B+1]");
    }
    batch = offsets.shape[0] - 1;
  }
  if (p.num_streams == 0) {
    batched_ = batched;
    p.batch = batch;
  } else if (batched != batched_) {
    fail(RBC_STATUS_SHAPE_MISMATCH, "values: has %s batch, expected %s as in streams[0]",
         batched ? "a" : "no", batched_ ? "one" : "none");
  } else if (batch != p.batch) {
    fail(RBC_STATUS_SHAPE_MISMATCH, "%s: batch is %" PRId64 ", expected %" PRId64 " as streams[0]",
         packed ? "batch_offsets" : "values", batch, p.batch);
  }

  FuseStream& s = streams_[p.num_streams];
  s.samples = values.shape[values.ndim - 2];
  s.channels = values.shape[values.ndim - 1];
  const int64_t times_shape[] = {batch, s.samples};
  requireShape(times, "times", times.ndim, times_shape + 2 - times.ndim);
  requireTimes(times, "times");
  MethodSet methods;
  s.first_segment = p.num_segments;
  s.num_segments = segmentsOf(
      params, s.channels, times.dtype,
      {segments_ + p.num_segments, ages_ + p.num_segments, kMaxSegments - p.num_segments},
      &methods);
  requireMethodsFit(params, methods);
  requireValueDtypes(values, out_, methods);
  if (p.num_streams > 0 && times.dtype != p.time_dtype) {
    fail(RBC_STATUS_DTYPE_MISMATCH, "times: dtype is %s, expected %s as streams[0]",
         nameOf(times.dtype), nameOf(p.time_dtype));
  }
  p.time_dtype = times.dtype;

  s.values = values.data;
  s.times = times.data;
  s.values_stride[0] = batchStride(values, 3);
  s.values_stride[1] = values.strides[values.ndim - 2];
  s.values_stride[2] = values.strides[values.ndim - 1];
  s.times_stride[0] = batchStride(times, 2);
  s.times_stride[1] = times.strides[times.ndim - 1];
  readSampleMask(params.sample_mask, batch, batched && !packed, &s);
  Arrivals& arrivals = arrivals_[p.num_streams];
  arrivals = {};
  if (params.arrivals != nullptr) {
    readArrivals(params.arrivals, batch, times, batched && !packed, &arrivals);
  }
  if (methods.hasCausal()) p.causal = &causal_;
  read(params.lengths, "lengths", batch, &s.lengths);
  read(params.batch_offsets, "batch_offsets", packed ? batch + 1 : 0,
       &s.offsets);  // else the batch has no limit
  read(params.shift, "shift", s.channels, &s.shift);
  read(params.scale, "scale", s.channels, &s.scale);
  s.max_gap = timeLimitOf(params.max_gap, times.dtype, "max_gap");
  s.tolerance = timeLimitOf(params.tolerance, times.dtype, "tolerance");
  s.clock_offset =
      timeOffsetOf(stream.clock_offset, stream.clock_offset_ticks, times.dtype, "clock_offset");
  s.out_begin = p.channels;
  s.fill_bits = elementBits(params.fill_value, out_.dtype, "fill_value");
  s.values_dtype = values.dtype;
  s.outside = static_cast<Outside>(params.outside);

  if (__builtin_add_overflow(p.channels, s.channels, &p.channels)) {
    fail(RBC_STATUS_SHAPE_MISMATCH, "values: the channels of all streams together exceed 64 bits");
  }
  p.num_segments += s.num_segments;
  ++p.num_streams;
}

void FuseBuilder::finish(int valid_rank) {
  FuseProblem& p = problem_;
  requireRank(query_times_, "query_times", 1, batched_ ? 2 : 1);
  p.queries = query_times_.shape[query_times_.ndim - 1];
  const int64_t query_shape[] = {p.batch, p.queries};
  const int64_t out_shape[] = {p.batch, p.queries, p.channels};
  const int64_t valid_shape[] = {p.batch, p.queries, p.num_streams};
  const int skip = batched_ ? 0 : 1;
  requireShape(query_times_, "query_times", query_times_.ndim, query_shape + 2 - query_times_.ndim);
  requireShape(out_, "out", 3 - skip, out_shape + skip);
  if (query_times_.dtype != p.time_dtype) {
    fail(RBC_STATUS_DTYPE_MISMATCH, "query_times: dtype is %s, expected %s as times",
         nameOf(query_times_.dtype), nameOf(p.time_dtype));
  }
  p.query_times = query_times_.data;
  p.query_stride[0] = batchStride(query_times_, 2);
  p.query_stride[1] = query_times_.strides[query_times_.ndim - 1];
  read(shared_.query_lengths, "query_lengths", p.batch, &p.query_lengths);
  p.out = out_.data;
  p.out_stride[0] = batchStride(out_, 3);
  p.out_stride[1] = out_.strides[out_.ndim - 2];
  p.out_stride[2] = out_.strides[out_.ndim - 1];
  p.out_dtype = out_.dtype;
  p.angle_dtype = out_.dtype;
  if (valid_ != nullptr) {
    const View& valid = *valid_;
    requireShape(valid, "valid", valid_rank - skip, valid_shape + skip);
    requireMask(valid, "valid");
    p.valid = reinterpret_cast<uint8_t*>(valid.data);
    p.valid_stride[0] = batchStride(valid, valid_rank);
    p.valid_stride[1] = valid.strides[1 - skip];
    p.valid_stride[2] = valid_rank == 3 ? valid.strides[2 - skip] : 0;
  }
  p.streams = streams_;
  p.segments = segments_;
  causal_.lag = timeOffsetOf(shared_.lag, shared_.lag_ticks, p.time_dtype, "lag");
  causal_.arrivals = arrivals_;
  causal_.ages = ages_;
}

}  // namespace rbc
