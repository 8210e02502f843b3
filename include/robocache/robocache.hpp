// RoboCache for C++17: RAII on the C header, and nothing but the C header.
//
//   robocache::Context context;
//   std::vector<float> out(queries.size() * channels);
//   robocache::resample(context, {values.data(), {samples, channels}}, {times.data(), {samples}},
//                       {queries.data(), {query_count}}, {out.data(), {query_count, channels}});
//
//   robocache::Stream pose({poses.data(), {samples, 7}}, {times.data(), {samples}});
//   pose.groups = {robocache::channels(0, 3, robocache::Method::kPchip),
//                  robocache::channels(3, 4, robocache::Method::kSlerp)};
//   robocache::fuse(context, {pose, joints}, {queries.data(), {query_count}}, fused);
//
//   const rbcVoxelGrid grid = {{-50, -50, -3}, {0.5, 0.5, 0.5}, {200, 200, 16}};
//   robocache::voxelize(context, {points.data(), {point_count, 4}}, grid,
//                       {occupied.data(), {200, 200, 16}});
//
// Failures are exceptions of type robocache::Error: the status and the library's message.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "robocache.h"

namespace robocache {

// ---- errors -------------------------------------------------------------------------------------

class Error : public std::runtime_error {
 public:
  Error(rbcStatus_t status, const std::string& message)
      : std::runtime_error(message), status_(status) {}
  rbcStatus_t status() const noexcept { return status_; }

 private:
  rbcStatus_t status_;
};

// Throws if a call of the C interface failed, with that call's message.
inline void check(rbcStatus_t status) {
  if (status != RBC_STATUS_SUCCESS) throw Error(status, rbcGetLastError());
}

// ---- element types ------------------------------------------------------------------------------

// C++17 has no 16-bit floats: give these to a Tensor over their storage.
inline constexpr rbcDType kFloat16{RBC_DTYPE_FLOAT, 16, 1};
inline constexpr rbcDType kBFloat16{RBC_DTYPE_BFLOAT, 16, 1};

// The element type of an arithmetic C++ type.
template <class T>
constexpr rbcDType dtypeOf() noexcept {
  static_assert(std::is_arithmetic_v<T> && sizeof(T) <= 8,
                "no such element type: name an rbcDType");
  constexpr int code = std::is_same_v<T, bool>       ? RBC_DTYPE_BOOL
                       : std::is_floating_point_v<T> ? RBC_DTYPE_FLOAT
                       : std::is_signed_v<T>         ? RBC_DTYPE_INT
                                                     : RBC_DTYPE_UINT;
  return {static_cast<uint8_t>(code), static_cast<uint8_t>(8 * sizeof(T)), 1};
}

// ---- tensors ------------------------------------------------------------------------------------

inline constexpr rbcDevice kCpu{RBC_DEVICE_CPU, 0};
inline constexpr rbcDevice cuda(int32_t id = 0) noexcept { return {RBC_DEVICE_CUDA, id}; }

using Extents = std::initializer_list<int64_t>;

// Memory that somebody else owns, seen as a tensor. Cheap to copy; holds its own shape and strides.
class Tensor {
 public:
  // Strides count elements; none means compact and row-major.
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
  Tensor(T* data, Extents shape, Extents strides = {}, rbcDevice device = kCpu)
      : Tensor(data, dtypeOf<std::remove_const_t<T>>(), shape, strides, device) {}

  Tensor(void* data, rbcDType dtype, Extents shape, Extents strides = {}, rbcDevice device = kCpu)
      : Tensor(data, dtype, shape, strides, device, true) {}
  Tensor(const void* data, rbcDType dtype, Extents shape, Extents strides = {},
         rbcDevice device = kCpu)
      : Tensor(const_cast<void*>(data), dtype, shape, strides, device, false) {}

  // A copy of a C descriptor's numbers, not of the memory.
  explicit Tensor(const rbcTensor& raw, bool writable = true) : raw_(raw), writable_(writable) {
    if (raw.ndim < 0 || raw.ndim > RBC_MAX_NDIM) throw tooManyDimensions();
    for (int32_t i = 0; i < raw.ndim; ++i) {
      shape_[i] = raw.shape[i];
      if (raw.strides != nullptr) strides_[i] = raw.strides[i];
    }
    point(raw.strides != nullptr);
  }

  Tensor(const Tensor& other) noexcept { *this = other; }
  Tensor& operator=(const Tensor& other) noexcept {
    raw_ = other.raw_;
    writable_ = other.writable_;
    for (int i = 0; i < RBC_MAX_NDIM; ++i) {
      shape_[i] = other.shape_[i];
      strides_[i] = other.strides_[i];
    }
    point(other.raw_.strides != nullptr);
    return *this;
  }

  // For the C interface; valid as long as this object.
  const rbcTensor* get() const noexcept { return &raw_; }
  bool writable() const noexcept { return writable_; }

  void* data() const noexcept { return raw_.data; }
  rbcDType dtype() const noexcept { return raw_.dtype; }
  rbcDevice device() const noexcept { return raw_.device; }
  int ndim() const noexcept { return raw_.ndim; }
  int64_t shape(int i) const noexcept { return shape_[i]; }

 private:
  Tensor(void* data, rbcDType dtype, Extents shape, Extents strides, rbcDevice device,
         bool writable)
      : writable_(writable) {
    if (shape.size() > RBC_MAX_NDIM) throw tooManyDimensions();
    if (strides.size() != 0 && strides.size() != shape.size()) {
      throw Error(RBC_STATUS_SHAPE_MISMATCH, "tensor: strides and shape differ in length");
    }
    raw_.data = data;
    raw_.dtype = dtype;
    raw_.device = device;
    raw_.ndim = static_cast<int32_t>(shape.size());
    int64_t* next = shape_;
    for (const int64_t extent : shape) *next++ = extent;
    next = strides_;
    for (const int64_t stride : strides) *next++ = stride;
    point(strides.size() != 0);
  }

  static Error tooManyDimensions() {
    return Error(RBC_STATUS_SHAPE_MISMATCH, "tensor: rank is not within 0 to 8");
  }
  void point(bool has_strides) noexcept {
    raw_.shape = shape_;
    raw_.strides = has_strides ? strides_ : nullptr;
  }

  rbcTensor raw_{};
  int64_t shape_[RBC_MAX_NDIM] = {};
  int64_t strides_[RBC_MAX_NDIM] = {};
  bool writable_ = true;
};

// ---- contexts -----------------------------------------------------------------------------------

// One device and one stream at a time. One thread a context at a time.
class Context {
 public:
  Context() : Context(rbcContextParamsInit()) {}  // CUDA if a device is usable, else the CPU
  explicit Context(const rbcContextParams& params) {
    rbcContext_t context = nullptr;
    check(rbcContextCreate(&params, &context));
    context_.reset(context);
  }

  static Context cpu(int32_t num_threads = 0) {
    rbcContextParams params = rbcContextParamsInit();
    params.backend = RBC_BACKEND_CPU;
    params.num_threads = num_threads;
    return Context(params);
  }
  static Context cuda(int32_t device_id = 0, void* stream = nullptr) {
    rbcContextParams params = rbcContextParamsInit();
    params.backend = RBC_BACKEND_CUDA;
    params.device_id = device_id;
    params.stream = stream;
    return Context(params);
  }

  rbcContext_t get() const noexcept { return context_.get(); }

  rbcContextInfo info() const {
    rbcContextInfo info = rbcContextInfoInit();
    check(rbcContextGetInfo(get(), &info));
    return info;
  }
  void* stream() const {
    void* stream = nullptr;
    check(rbcContextGetStream(get(), &stream));
    return stream;
  }
  void setStream(void* stream) { check(rbcContextSetStream(get(), stream)); }
  void synchronize() { check(rbcContextSynchronize(get())); }
  void reserve(size_t bytes) { check(rbcContextReserve(get(), bytes)); }
  void warmUp() { check(rbcContextWarmUp(get())); }

 private:
  struct Destroy {
    void operator()(rbcContext_t context) const noexcept { rbcContextDestroy(context); }
  };
  std::unique_ptr<rbcContext, Destroy> context_;
};

// ---- owned tensors ------------------------------------------------------------------------------

// A compact tensor on a context's device, or one taken over from DLPack.
class OwnedTensor {
 public:
  OwnedTensor(const Context& context, rbcDType dtype, Extents shape) {
    rbcOwnedTensor_t tensor = nullptr;
    check(rbcTensorCreate(context.get(), dtype, static_cast<int32_t>(shape.size()), shape.begin(),
                          &tensor));
    tensor_.reset(tensor);
  }

  // On failure the caller keeps the managed tensor, as rbcTensorImportDLPackVersioned says.
  static OwnedTensor fromDLPack(DLManagedTensorVersioned* managed) {
    rbcOwnedTensor_t tensor = nullptr;
    check(rbcTensorImportDLPackVersioned(managed, &tensor));
    return OwnedTensor(tensor);
  }
  static OwnedTensor fromDLPack(DLManagedTensor* managed) {
    rbcOwnedTensor_t tensor = nullptr;
    check(rbcTensorImportDLPack(managed, &tensor));
    return OwnedTensor(tensor);
  }
  // Shares the memory: it lives until the managed tensor's deleter was called, too.
  DLManagedTensorVersioned* toDLPack() const {
    DLManagedTensorVersioned* managed = nullptr;
    check(rbcTensorExportDLPackVersioned(get(), &managed));
    return managed;
  }

  rbcOwnedTensor_t get() const noexcept { return tensor_.get(); }

  // Valid as long as this tensor is.
  Tensor view() { return describe(true); }
  Tensor view() const { return describe(false); }

 private:
  struct Destroy {
    void operator()(rbcOwnedTensor_t tensor) const noexcept { rbcTensorDestroy(tensor); }
  };

  explicit OwnedTensor(rbcOwnedTensor_t tensor) noexcept : tensor_(tensor) {}
  Tensor describe(bool writable) const {
    rbcTensor raw{};
    check(rbcTensorGetView(get(), writable ? 1 : 0, &raw));
    return Tensor(raw, writable);
  }

  std::unique_ptr<rbcOwnedTensor, Destroy> tensor_;
};

namespace detail {

inline const rbcTensor* output(const Tensor& tensor, const char* argument) {
  if (!tensor.writable()) {
    throw Error(RBC_STATUS_INVALID_ARGUMENT,
                std::string(argument) + ": is read-only, expected writable memory");
  }
  return tensor.get();
}

inline const rbcTensor* optional(const std::optional<Tensor>& tensor) {
  return tensor ? tensor->get() : nullptr;
}

inline const rbcTensor* optionalOutput(const std::optional<Tensor>& tensor, const char* argument) {
  return tensor ? output(*tensor, argument) : nullptr;
}

template <class Element>
int32_t count(const std::vector<Element>& elements) {
  return static_cast<int32_t>(std::min<size_t>(elements.size(), INT32_MAX));
}

}  // namespace detail

// Between tensors of one shape and dtype; returns when host memory has been read or written.
inline void copy(const Context& context, const Tensor& source, const Tensor& destination) {
  check(rbcTensorCopy(context.get(), source.get(), detail::output(destination, "destination")));
}

// ---- resample -----------------------------------------------------------------------------------

enum class Method : int32_t {
  kLinear = RBC_METHOD_LINEAR,
  kNearest = RBC_METHOD_NEAREST,
  kPrevious = RBC_METHOD_PREVIOUS,
  kNext = RBC_METHOD_NEXT,
  kCubic = RBC_METHOD_CUBIC,
  kPchip = RBC_METHOD_PCHIP,
  kSlerp = RBC_METHOD_SLERP,
  kAngle = RBC_METHOD_ANGLE,
};

enum class Bounds : int32_t {
  kHold = RBC_BOUNDS_HOLD,
  kFill = RBC_BOUNDS_FILL,
  kExtrapolate = RBC_BOUNDS_EXTRAPOLATE,
};

// Channels begin .. begin + count - 1 by a method of their own, for StreamOptions::groups.
inline rbcChannelGroup channels(int64_t begin, int64_t count, Method method) noexcept {
  return {begin, count, static_cast<int32_t>(method), 0};
}

// How one stream is resampled: what resample.h says of rbcResampleParams.
struct StreamOptions {
  Method method = Method::kLinear;
  std::vector<rbcChannelGroup> groups;  // none: method
  Bounds bounds = Bounds::kHold;
  double fill_value = 0;
  double max_gap = INFINITY;
  double tolerance = INFINITY;
  std::optional<Tensor> lengths;
  std::optional<Tensor> offsets;
  std::optional<Tensor> mean;
  std::optional<Tensor> inv_std;
};

struct ResampleOptions : StreamOptions {
  bool check_times = false;
  std::optional<Tensor> query_lengths;
  std::optional<Tensor> mask;
};

namespace detail {

// Points into the options.
inline rbcResampleParams params(const StreamOptions& options) {
  rbcResampleParams params = rbcResampleParamsInit();
  params.method = static_cast<int32_t>(options.method);
  params.bounds = static_cast<int32_t>(options.bounds);
  params.fill_value = options.fill_value;
  params.max_gap = options.max_gap;
  params.tolerance = options.tolerance;
  params.lengths = optional(options.lengths);
  params.offsets = optional(options.offsets);
  params.mean = optional(options.mean);
  params.inv_std = optional(options.inv_std);
  params.groups = options.groups.empty() ? nullptr : options.groups.data();
  params.num_groups = count(options.groups);
  return params;
}

}  // namespace detail

// See rbcResample for shapes, dtypes and rules. Asynchronous on CUDA.
inline void resample(const Context& context, const Tensor& values, const Tensor& times,
                     const Tensor& query_times, const Tensor& out,
                     const ResampleOptions& options = {}) {
  rbcResampleParams params = detail::params(options);
  params.flags = options.check_times ? RBC_CHECK_TIMES : 0;
  params.query_lengths = detail::optional(options.query_lengths);
  check(rbcResample(context.get(), values.get(), times.get(), query_times.get(),
                    detail::output(out, "out"), detail::optionalOutput(options.mask, "mask"),
                    &params));
}

// ---- fuse ---------------------------------------------------------------------------------------

// One sensor: its samples, and how they are resampled.
struct Stream : StreamOptions {
  Stream(const Tensor& samples, const Tensor& at) : values(samples), times(at) {}

  Tensor values;
  Tensor times;
  double clock_offset = 0;         // f32 and f64 times: a sample at t lies at t + clock_offset
  int64_t clock_offset_ticks = 0;  // i64 times: likewise
};

struct FuseOptions {
  bool check_times = false;
  std::optional<Tensor> query_lengths;
  std::optional<Tensor> mask;
};

// The streams side by side on one clock, in one launch. See rbcFuse for shapes, dtypes and rules.
// Asynchronous on CUDA.
inline void fuse(const Context& context, const std::vector<Stream>& streams,
                 const Tensor& query_times, const Tensor& out, const FuseOptions& options = {}) {
  rbcResampleParams params[RBC_FUSE_MAX_STREAMS];
  rbcFuseStream raw[RBC_FUSE_MAX_STREAMS];
  // The library refuses more by their number, before it looks at one.
  const size_t used = std::min<size_t>(streams.size(), RBC_FUSE_MAX_STREAMS);
  for (size_t n = 0; n < used; ++n) {
    const Stream& stream = streams[n];
    params[n] = detail::params(stream);
    raw[n] = rbcFuseStreamInit();
    raw[n].values = stream.values.get();
    raw[n].times = stream.times.get();
    raw[n].params = &params[n];
    raw[n].clock_offset = stream.clock_offset;
    raw[n].clock_offset_ticks = stream.clock_offset_ticks;
  }
  rbcFuseParams fuse_params = rbcFuseParamsInit();
  fuse_params.flags = options.check_times ? RBC_CHECK_TIMES : 0;
  fuse_params.query_lengths = detail::optional(options.query_lengths);
  check(rbcFuse(context.get(), raw, detail::count(streams), query_times.get(),
                detail::output(out, "out"), detail::optionalOutput(options.mask, "mask"),
                &fuse_params));
}

// ---- voxelize -----------------------------------------------------------------------------------

enum class VoxelMode : int32_t {
  kOccupancy = RBC_VOXEL_OCCUPANCY,
  kCount = RBC_VOXEL_COUNT,
  kSum = RBC_VOXEL_SUM,
  kMean = RBC_VOXEL_MEAN,
  kMax = RBC_VOXEL_MAX,
  kMin = RBC_VOXEL_MIN,
};

enum class VoxelOrder : int32_t {
  kLexicographic = RBC_VOXEL_ORDER_LEXICOGRAPHIC,
  kFirstPoint = RBC_VOXEL_ORDER_FIRST_POINT,
};

struct VoxelizeOptions {
  VoxelMode mode = VoxelMode::kOccupancy;
  double empty_value = 0;
  std::optional<Tensor> features;  // none: the columns of points
  std::optional<Tensor> lengths;
  std::optional<Tensor> offsets;
  std::optional<Tensor> dropped;
};

// Point clouds to a dense grid. See rbcVoxelize for shapes, dtypes and rules. Asynchronous on CUDA.
inline void voxelize(const Context& context, const Tensor& points, const rbcVoxelGrid& grid,
                     const Tensor& out, const VoxelizeOptions& options = {}) {
  rbcVoxelizeParams params = rbcVoxelizeParamsInit();
  params.mode = static_cast<int32_t>(options.mode);
  params.empty_value = options.empty_value;
  params.grid = grid;
  params.lengths = detail::optional(options.lengths);
  params.offsets = detail::optional(options.offsets);
  check(rbcVoxelize(context.get(), points.get(), detail::optional(options.features),
                    detail::output(out, "out"), detail::optionalOutput(options.dropped, "dropped"),
                    &params));
}

// Where the voxels go: what voxelize.h says of rbcSparseVoxels. What is not set is not wanted.
struct SparseVoxels {
  SparseVoxels(const Tensor& places, const Tensor& count) : coords(places), num_voxels(count) {}

  Tensor coords;
  Tensor num_voxels;
  std::optional<Tensor> counts;
  std::optional<Tensor> features;
  std::optional<Tensor> grouped;
  std::optional<Tensor> point_to_voxel;
  std::optional<Tensor> dropped;
  std::optional<Tensor> overflow;
};

struct VoxelizeSparseOptions {
  VoxelMode reduce = VoxelMode::kMean;  // kSum, kMean, kMax or kMin
  VoxelOrder order = VoxelOrder::kLexicographic;
  std::optional<Tensor> features;  // none: the columns of points
  std::optional<Tensor> lengths;
  std::optional<Tensor> offsets;
};

// Point clouds to a list of the voxels that hold a point. See rbcVoxelizeSparse for shapes, dtypes
// and rules. Asynchronous on CUDA, the number of voxels too.
inline void voxelizeSparse(const Context& context, const Tensor& points, const rbcVoxelGrid& grid,
                           const SparseVoxels& voxels, const VoxelizeSparseOptions& options = {}) {
  rbcSparseVoxels raw = rbcSparseVoxelsInit();
  raw.coords = detail::output(voxels.coords, "coords");
  raw.num_voxels = detail::output(voxels.num_voxels, "num_voxels");
  raw.counts = detail::optionalOutput(voxels.counts, "counts");
  raw.features = detail::optionalOutput(voxels.features, "voxels.features");
  raw.grouped = detail::optionalOutput(voxels.grouped, "grouped");
  raw.point_to_voxel = detail::optionalOutput(voxels.point_to_voxel, "point_to_voxel");
  raw.dropped = detail::optionalOutput(voxels.dropped, "dropped");
  raw.overflow = detail::optionalOutput(voxels.overflow, "overflow");
  rbcVoxelizeSparseParams params = rbcVoxelizeSparseParamsInit();
  params.reduce = static_cast<int32_t>(options.reduce);
  params.order = static_cast<int32_t>(options.order);
  params.grid = grid;
  params.lengths = detail::optional(options.lengths);
  params.offsets = detail::optional(options.offsets);
  check(rbcVoxelizeSparse(context.get(), points.get(), detail::optional(options.features), &raw,
                          &params));
}

// ---- TSDF ---------------------------------------------------------------------------------------

enum class TsdfWeighting : int32_t {
  kConstant = RBC_TSDF_WEIGHT_CONSTANT,
  kInverseSquare = RBC_TSDF_WEIGHT_INVERSE_SQUARE,
};

struct TsdfOptions {
  TsdfWeighting weighting = TsdfWeighting::kConstant;
  bool carve = false;
  double max_weight = INFINITY;
  std::optional<Tensor> lengths;
  std::optional<Tensor> offsets;
  std::optional<Tensor> dropped;
};

// Integrates point clouds into a truncated signed distance field: tsdf and weight are read and
// written. See rbcVoxelizeTsdf for shapes, dtypes and rules. Asynchronous on CUDA.
inline void voxelizeTsdf(const Context& context, const Tensor& points, const Tensor& sensors,
                         const rbcVoxelGrid& grid, double truncation, const Tensor& tsdf,
                         const Tensor& weight, const TsdfOptions& options = {}) {
  rbcTsdfParams params = rbcTsdfParamsInit();
  params.flags = options.carve ? RBC_TSDF_CARVE : 0;
  params.weighting = static_cast<int32_t>(options.weighting);
  params.truncation = truncation;
  params.max_weight = options.max_weight;
  params.grid = grid;
  params.lengths = detail::optional(options.lengths);
  params.offsets = detail::optional(options.offsets);
  check(rbcVoxelizeTsdf(context.get(), points.get(), sensors.get(), detail::output(tsdf, "tsdf"),
                        detail::output(weight, "weight"),
                        detail::optionalOutput(options.dropped, "dropped"), &params));
}

}  // namespace robocache
