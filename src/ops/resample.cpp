// rbcResample: verifies the arguments, puts them as a ResampleProblem, and calls the backend.

#include "robocache/resample.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "context.h"
#include "float_environment.h"
#include "overlap.h"
#include "params.h"
#include "real.h"
#include "resample_check.h"
#include "resample_problem.h"

namespace rbc {
namespace {

constexpr uint32_t kFirstParamsSize = sizeof(rbcResampleParams);

struct Arguments {
  const rbcTensor* values;
  const rbcTensor* times;
  const rbcTensor* query_times;
  const rbcTensor* out;
  const rbcTensor* mask;
  const rbcResampleParams* params;
};

rbcResampleParams checkedParams(const rbcResampleParams* given) {
  const rbcResampleParams params =
      readParams(given, rbcResampleParamsInit(), kFirstParamsSize, "params");
  if ((params.flags & ~RBC_CHECK_TIMES) != 0) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "flags: 0x%" PRIx32 " has unknown bits, expected RBC_CHECK_TIMES or 0", params.flags);
  }
  if (params.method < RBC_METHOD_LINEAR || params.method > RBC_METHOD_NEXT) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "method: is %d, expected RBC_METHOD_LINEAR, _NEAREST, _PREVIOUS or _NEXT", params.method);
  }
  if (params.bounds < RBC_BOUNDS_HOLD || params.bounds > RBC_BOUNDS_EXTRAPOLATE) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "bounds: is %d, expected RBC_BOUNDS_HOLD, _FILL or _EXTRAPOLATE", params.bounds);
  }
  if (params.bounds == RBC_BOUNDS_EXTRAPOLATE && params.method != RBC_METHOD_LINEAR) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "bounds: extrapolate needs method linear, expected hold or fill");
  }
  if (!(params.max_gap >= 0)) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "max_gap: is %g, expected 0 or more", params.max_gap);
  }
  if (!(params.tolerance >= 0)) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "tolerance: is %g, expected 0 or more", params.tolerance);
  }
  if (params.method == RBC_METHOD_LINEAR && !std::isinf(params.tolerance)) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "tolerance: is for methods nearest, previous and next; linear takes max_gap");
  }
  for (const uint64_t reserved : params.reserved) {
    if (reserved != 0) fail(RBC_STATUS_INVALID_ARGUMENT, "params: reserved is not 0");
  }
  return params;
}

void requireRank(const View& view, const char* argument, int low, int high) {
  if (view.ndim >= low && view.ndim <= high) return;
  if (low == high) {
    fail(RBC_STATUS_SHAPE_MISMATCH, "%s: rank is %d (shape %s), expected %d", argument, view.ndim,
         shapeText(view.ndim, view.shape), low);
  }
  fail(RBC_STATUS_SHAPE_MISMATCH, "%s: rank is %d (shape %s), expected %d or %d", argument,
       view.ndim, shapeText(view.ndim, view.shape), low, high);
}

TimeLimit limitOf(double limit, DType time_dtype) {
  if (std::isinf(limit)) return {0, 0, false};
  if (time_dtype == DType::F32) limit = static_cast<double>(static_cast<float>(limit));
  // 2^64 and more exceeds every difference of two i64.
  const bool most = limit >= 0x1p64;
  return {limit, most ? std::numeric_limits<uint64_t>::max() : static_cast<uint64_t>(limit), true};
}

template <class Storage>
uint64_t bitsOf(Storage element) {
  uint64_t bits = 0;
  std::memcpy(&bits, &element, sizeof element);
  return bits;
}

uint64_t fillBits(double fill, DType dtype) {
  if (isFloat(dtype)) {
    return visitFloat(dtype,
                      [&](auto tag) { return bitsOf(narrow<typename decltype(tag)::type>(fill)); });
  }
  return visitInteger(dtype, [&](auto tag) {
    using Storage = typename decltype(tag)::type;
    const double low = static_cast<double>(std::numeric_limits<Storage>::min());
    const double past =
        dtype == DType::Bool ? 2.0 : std::ldexp(1.0, std::numeric_limits<Storage>::digits);
    if (!(fill >= low && fill < past && fill == std::trunc(fill))) {
      fail(RBC_STATUS_INVALID_ARGUMENT, "fill_value: %g cannot be written as %s", fill,
           nameOf(dtype));
    }
    return bitsOf(static_cast<Storage>(fill));
  });
}

// An optional i32 or i64 vector of `count` entries.
IndexArray indexArray(const rbcContext& context, const rbcTensor* tensor, const char* argument,
                      int64_t count, const View& out, const View* mask) {
  if (tensor == nullptr) return {nullptr, 0, false};
  const View view = normalize(tensor, argument);
  requireShape(view, argument, 1, &count);
  if (view.dtype != DType::I32 && view.dtype != DType::I64) {
    fail(RBC_STATUS_DTYPE_MISMATCH, "%s: dtype is %s, expected int32 or int64", argument,
         nameOf(view.dtype));
  }
  requireReachable(context, view, argument);
  requireDisjoint(out, "out", view, argument);
  if (mask != nullptr) requireDisjoint(*mask, "mask", view, argument);
  return {view.data, view.strides[0], view.dtype == DType::I64};
}

void requireDtypes(const View& values, const View& times, const View& query_times, const View& out,
                   const View* mask, int32_t method) {
  if (!isFloat(values.dtype) && method == RBC_METHOD_LINEAR) {
    fail(RBC_STATUS_DTYPE_MISMATCH,
         "values: dtype is %s, expected a float for method linear (integers take nearest, previous "
         "or next)",
         nameOf(values.dtype));
  }
  if (times.dtype != DType::F32 && times.dtype != DType::F64 && times.dtype != DType::I64) {
    fail(RBC_STATUS_DTYPE_MISMATCH, "times: dtype is %s, expected float32, float64 or int64",
         nameOf(times.dtype));
  }
  if (query_times.dtype != times.dtype) {
    fail(RBC_STATUS_DTYPE_MISMATCH, "query_times: dtype is %s, expected %s as times",
         nameOf(query_times.dtype), nameOf(times.dtype));
  }
  if (isFloat(values.dtype) ? !isFloat(out.dtype) : out.dtype != values.dtype) {
    fail(RBC_STATUS_DTYPE_MISMATCH, "out: dtype is %s, expected %s", nameOf(out.dtype),
         isFloat(values.dtype) ? "a float for float values" : nameOf(values.dtype));
  }
  if (mask != nullptr && mask->dtype != DType::Bool && mask->dtype != DType::U8) {
    fail(RBC_STATUS_DTYPE_MISMATCH, "mask: dtype is %s, expected bool or uint8",
         nameOf(mask->dtype));
  }
}

// The stride of the batch dimension, 0 where the tensor has none.
int64_t batchStride(const View& view, int rank_with_batch) {
  return view.ndim == rank_with_batch ? view.strides[0] : 0;
}

ResampleProblem describe(const rbcContext& context, const Arguments& arguments,
                         const rbcResampleParams& params) {
  const View values = normalize(arguments.values, "values");
  const View times = normalize(arguments.times, "times");
  const View query_times = normalize(arguments.query_times, "query_times");
  const View out = normalize(arguments.out, "out");
  View mask_view;
  const View* mask = nullptr;
  if (arguments.mask != nullptr) {
    mask_view = normalize(arguments.mask, "mask");
    mask = &mask_view;
  }

  // Three forms: padded [B,S,D], packed [N,D] with offsets, and without a batch [S,D].
  const bool packed = params.offsets != nullptr;
  requireRank(values, "values", 2, packed ? 2 : 3);
  const bool batched = packed || values.ndim == 3;
  requireRank(times, "times", 1, packed || !batched ? 1 : 2);
  requireRank(query_times, "query_times", 1, batched ? 2 : 1);
  if (packed && params.lengths != nullptr) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "lengths: are for padded values, expected null beside offsets");
  }

  ResampleProblem p = {};
  p.samples = values.shape[values.ndim - 2];
  p.channels = values.shape[values.ndim - 1];
  p.queries = query_times.shape[query_times.ndim - 1];
  p.batch = values.ndim == 3 ? values.shape[0] : 1;
  if (packed) {
    const View offsets = normalize(params.offsets, "offsets");
    requireRank(offsets, "offsets", 1, 1);
    if (offsets.shape[0] < 1) {
      fail(RBC_STATUS_SHAPE_MISMATCH, "offsets: shape is [0], expected [B+1]");
    }
    p.batch = offsets.shape[0] - 1;
  }

  const int64_t times_shape[] = {p.batch, p.samples};
  const int64_t query_shape[] = {p.batch, p.queries};
  const int64_t out_shape[] = {p.batch, p.queries, p.channels};
  requireShape(times, "times", times.ndim, times_shape + 2 - times.ndim);
  requireShape(query_times, "query_times", query_times.ndim, query_shape + 2 - query_times.ndim);
  requireShape(out, "out", batched ? 3 : 2, out_shape + (batched ? 0 : 1));
  if (mask != nullptr)
    requireShape(*mask, "mask", batched ? 2 : 1, query_shape + (batched ? 0 : 1));
  requireDtypes(values, times, query_times, out, mask, params.method);

  requireReachable(context, values, "values");
  requireReachable(context, times, "times");
  requireReachable(context, query_times, "query_times");
  requireReachable(context, out, "out");
  if (mask != nullptr) requireReachable(context, *mask, "mask");

  requireDistinctElements(out, "out");
  requireDisjoint(out, "out", values, "values");
  requireDisjoint(out, "out", times, "times");
  requireDisjoint(out, "out", query_times, "query_times");
  if (mask != nullptr) {
    requireDistinctElements(*mask, "mask");
    requireDisjoint(*mask, "mask", values, "values");
    requireDisjoint(*mask, "mask", times, "times");
    requireDisjoint(*mask, "mask", query_times, "query_times");
    requireDisjoint(*mask, "mask", out, "out");
  }
  p.lengths = indexArray(context, params.lengths, "lengths", p.batch, out, mask);
  p.query_lengths = indexArray(context, params.query_lengths, "query_lengths", p.batch, out, mask);
  p.offsets = indexArray(context, params.offsets, "offsets", p.batch + 1, out, mask);

  p.values = values.data;
  p.times = times.data;
  p.query_times = query_times.data;
  p.out = out.data;
  p.values_stride[0] = batchStride(values, 3);
  p.values_stride[1] = values.strides[values.ndim - 2];
  p.values_stride[2] = values.strides[values.ndim - 1];
  p.times_stride[0] = batchStride(times, 2);
  p.times_stride[1] = times.strides[times.ndim - 1];
  p.query_stride[0] = batchStride(query_times, 2);
  p.query_stride[1] = query_times.strides[query_times.ndim - 1];
  p.out_stride[0] = batchStride(out, 3);
  p.out_stride[1] = out.strides[out.ndim - 2];
  p.out_stride[2] = out.strides[out.ndim - 1];
  if (mask != nullptr) {
    p.mask = reinterpret_cast<uint8_t*>(mask->data);
    p.mask_stride[0] = batchStride(*mask, 2);
    p.mask_stride[1] = mask->strides[mask->ndim - 1];
  }
  p.values_dtype = values.dtype;
  p.out_dtype = out.dtype;
  p.time_dtype = times.dtype;
  p.method = static_cast<Method>(params.method);
  p.bounds = static_cast<Bounds>(params.bounds);
  p.max_gap = limitOf(params.max_gap, times.dtype);
  p.tolerance = limitOf(params.tolerance, times.dtype);
  p.fill_bits = fillBits(params.fill_value, out.dtype);
  return p;
}

void check(rbcContext& context, const ResampleProblem& p, bool times) {
  ResampleDefect defect = {};
  if (times) {
    if (context.backend->capturing(*context.state)) {
      fail(RBC_STATUS_UNSUPPORTED,
           "flags: RBC_CHECK_TIMES waits for the stream, which is being captured");
    }
    const Scratch scratch = workspace(context, context.backend->resampleCheckBytes(p));
    context.backend->resampleCheck(*context.state, p, scratch, &defect);
  } else if (context.backend->id == RBC_BACKEND_CPU) {
    findIndexDefect(p, &defect);  // cheap where the host can read them
  }
  reportDefect(p, defect);
}

void resample(rbcContext_t handle, const Arguments& arguments) {
  const DefaultFloats floats;
  rbcContext& context = requireContext(handle);
  const rbcResampleParams params = checkedParams(arguments.params);
  const ResampleProblem p = describe(context, arguments, params);
  check(context, p, (params.flags & RBC_CHECK_TIMES) != 0);
  const bool nothing_to_write =
      p.batch == 0 || p.queries == 0 || (p.channels == 0 && p.mask == nullptr);
  if (!nothing_to_write) context.backend->resample(*context.state, p);
}

}  // namespace
}  // namespace rbc

rbcStatus_t rbcResample(rbcContext_t context, const rbcTensor* values, const rbcTensor* times,
                        const rbcTensor* query_times, const rbcTensor* out, const rbcTensor* mask,
                        const rbcResampleParams* params) {
  return rbc::guard([&] {
    rbc::resample(context, {values, times, query_times, out, mask, params});
  });
}

rbcStatus_t rbcResampleWorkspaceSize(rbcContext_t context, const rbcTensor* values,
                                     const rbcTensor* times, const rbcTensor* query_times,
                                     const rbcTensor* out, const rbcTensor* mask,
                                     const rbcResampleParams* params, size_t* bytes) {
  return rbc::guard([&] {
    if (bytes == nullptr) rbc::fail(RBC_STATUS_INVALID_ARGUMENT, "bytes: is null");
    const rbcContext& c = rbc::requireContext(context);
    const rbcResampleParams checked = rbc::checkedParams(params);
    const rbc::ResampleProblem p =
        rbc::describe(c, {values, times, query_times, out, mask, params}, checked);
    *bytes = (checked.flags & RBC_CHECK_TIMES) != 0 ? c.backend->resampleCheckBytes(p) : 0;
  });
}
