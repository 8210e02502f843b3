// RoboCache for C++17: RAII on the C header, and nothing but the C header.
//
//   robocache::Context context;
//   std::vector<float> out(queries.size() * channels);
//   robocache::resample(context, {values, {samples, channels}}, times, queries,
//                       {out, {queries.size(), channels}});
//
//   robocache::Stream pose({poses, {samples, 7}}, times);
//   pose.groups = {robocache::channels(0, 3, robocache::Method::kPchip),
//                  robocache::channels(3, 4, robocache::Method::kSlerp)};
//   robocache::fuse(context, {pose, joints}, queries, fused);
//
//   const rbcVoxelGrid grid = {{-50, -50, -3}, {0.5, 0.5, 0.5}, {200, 200, 16}};
//   robocache::voxelize(context, {points, {point_count, 4}}, grid, {occupied, {200, 200, 16}});
//
// A tensor is memory and a shape. The memory is anything with data() and size(), which is then known
// to have room, an array, or a pointer: {points.data(), {point_count, 4}}, on a GPU
// {pointer, {point_count, 4}, {}, robocache::cuda()}. Without a shape it is a row: `times`.
//
// Failures are exceptions of type Error: the status and the library's message. For a Result in place
// of an exception say so in the call; with -fno-exceptions it is the only way:
//
//   const auto done = robocache::resample<robocache::Expect>(context, values, times, queries, out);
//   if (!done) std::puts(done.error().what());
//
// What each operation means, the dtypes that it takes and why it fails stands in the C headers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#if __cplusplus < 201703L
#error "robocache.hpp needs C++17 (-std=c++17)"
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "robocache.h"

namespace robocache {
#if !defined(__cpp_exceptions)
// Apart from what is compiled with exceptions, so that a program may have both.
inline namespace without_exceptions {
#endif

// ---- errors -------------------------------------------------------------------------------------

// Why a call failed.
class Error : public std::runtime_error {
 public:
  Error(rbcStatus_t status, const std::string& message)
      : std::runtime_error(message), status_(status) {}

  // What kind of failure it was; what() is the library's line about it.
  rbcStatus_t status() const noexcept { return status_; }

 private:
  rbcStatus_t status_;
};

namespace detail {

[[noreturn]] inline void raise([[maybe_unused]] const Error& error) {
#if defined(__cpp_exceptions)
  throw error;
#else
  std::abort();
#endif
}

}  // namespace detail

// A T, or the Error why there is none. The members are those of C++23's std::expected, but for
// value(), which throws the Error itself; it is this one class in every C++ standard, so that what
// is compiled for different ones fits together.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}
  Result(Error error) : state_(std::move(error)) {}

  // Whether there is a value.
  bool has_value() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }

  // The value; without one the Error is thrown. With -fno-exceptions the program aborts then.
  T& value() & { return get(*this); }
  const T& value() const& { return get(*this); }
  T&& value() && { return std::move(get(*this)); }

  // The value, which there must be.
  T& operator*() & noexcept { return *std::get_if<0>(&state_); }
  const T& operator*() const& noexcept { return *std::get_if<0>(&state_); }
  T&& operator*() && noexcept { return std::move(*std::get_if<0>(&state_)); }
  T* operator->() noexcept { return std::get_if<0>(&state_); }
  const T* operator->() const noexcept { return std::get_if<0>(&state_); }

  // Why there is no value, which must be so.
  const Error& error() const noexcept { return *std::get_if<1>(&state_); }

 private:
  template <class Self>
  static auto& get(Self& self) {
    if (!self.has_value()) detail::raise(self.error());
    return *self;
  }

  std::variant<T, Error> state_;
};

// Nothing, or the Error why something was not done.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  // Whether it was done.
  bool has_value() const noexcept { return !error_.has_value(); }
  explicit operator bool() const noexcept { return has_value(); }

  // Throws the Error if there is one. With -fno-exceptions the program aborts then.
  void value() const {
    if (error_) detail::raise(*error_);
  }

  // Why it was not done, which must be so.
  const Error& error() const noexcept { return *error_; }

 private:
  std::optional<Error> error_;
};

// How failures are told, as the template argument of all that can fail: as a Result.
struct Expect {
  template <class T>
  using Return = Result<T>;

  template <class T>
  static Result<T> tell(Result<T> result) {
    return result;
  }
};

#if defined(__cpp_exceptions)
// As an exception of type Error: the default, but with -fno-exceptions.
struct Throw {
  template <class T>
  using Return = T;

  template <class T>
  static T tell(Result<T> result) {
    return std::move(result).value();
  }
};
using DefaultErrors = Throw;
#else
using DefaultErrors = Expect;
#endif

// A T from a function that can fail: T with Throw, Result<T> with Expect.
template <class Errors, class T>
using Returned = typename Errors::template Return<T>;

namespace detail {

inline Result<void> done(rbcStatus_t status) {
  if (status != RBC_STATUS_SUCCESS) return Error(status, rbcGetLastError());
  return {};
}

template <class T>
Result<T> done(rbcStatus_t status, T value) {
  if (status != RBC_STATUS_SUCCESS) return Error(status, rbcGetLastError());
  return value;
}

}  // namespace detail

// Tells that a call of the C interface failed, with that call's message.
template <class Errors = DefaultErrors>
Returned<Errors, void> check(rbcStatus_t status) {
  return Errors::tell(detail::done(status));
}

// ---- element types ------------------------------------------------------------------------------

// C++17 has no 16-bit floats: give these to a Tensor over their storage.
inline constexpr rbcDType kFloat16{RBC_DTYPE_FLOAT, 16, 1};
inline constexpr rbcDType kBFloat16{RBC_DTYPE_BFLOAT, 16, 1};

// The element type of bool, float, double or an integer type of C++.
template <class T>
constexpr rbcDType dtypeOf() noexcept {
  static_assert(std::is_integral_v<T> || std::is_same_v<T, float> || std::is_same_v<T, double>,
                "no such element type: name an rbcDType");
  constexpr int code = std::is_same_v<T, bool>       ? RBC_DTYPE_BOOL
                       : std::is_floating_point_v<T> ? RBC_DTYPE_FLOAT
                       : std::is_signed_v<T>         ? RBC_DTYPE_INT
                                                     : RBC_DTYPE_UINT;
  return {static_cast<uint8_t>(code), static_cast<uint8_t>(8 * sizeof(T)), 1};
}

// ---- tensors ------------------------------------------------------------------------------------

// Where memory lies: in the host's, or on a GPU.
inline constexpr rbcDevice kCpu{RBC_DEVICE_CPU, 0};
inline constexpr rbcDevice cuda(int32_t id = 0) noexcept { return {RBC_DEVICE_CUDA, id}; }

namespace detail {

// The elements of a container or an array, or those behind a pointer, and how many these are.
template <class Container>
auto dataOf(Container& container) -> decltype(std::data(container)) {
  return std::data(container);
}
template <class T>
T* dataOf(T* const& pointer) {
  return pointer;
}

template <class Container>
auto roomOf(Container& container) -> decltype(static_cast<int64_t>(std::size(container))) {
  return static_cast<int64_t>(std::size(container));
}
template <class T>
int64_t roomOf(T* const&) {
  return INT64_MAX;
}

template <class Memory>
using ElementOf = std::remove_pointer_t<decltype(dataOf(std::declval<Memory&>()))>;

// A view such as std::span gives the same elements when it is const; a container guards its own.
// One that is about to die would leave a tensor without memory.
template <class Memory>
inline constexpr bool kOutlives = std::is_lvalue_reference_v<Memory> ||
                                  std::is_same_v<ElementOf<std::remove_reference_t<Memory>>,
                                                 ElementOf<const std::remove_reference_t<Memory>>>;

}  // namespace detail

// The extents or the strides of a tensor: {batch, samples, 7}, of any integers, or what a container
// of int64_t holds.
class Shape {
 public:
  template <class... Integers, class = std::enable_if_t<(std::is_integral_v<Integers> && ...)>>
  Shape(Integers... extents) noexcept
      : rank_(sizeof...(Integers)), extents_{static_cast<int64_t>(extents)...} {
    static_assert(sizeof...(Integers) <= RBC_MAX_NDIM, "more dimensions than a tensor may have");
  }
  template <class Container,
            class = std::enable_if_t<
                std::is_same_v<std::remove_const_t<detail::ElementOf<const Container>>, int64_t> &&
                !std::is_pointer_v<Container>>>
  Shape(const Container& extents) noexcept : rank_(std::size(extents)) {
    std::copy_n(std::data(extents), std::min<size_t>(rank_, RBC_MAX_NDIM), extents_);
  }

  size_t rank() const noexcept { return rank_; }
  // 0 if there is no such dimension.
  int64_t operator[](size_t i) const noexcept { return i < RBC_MAX_NDIM ? extents_[i] : 0; }

 private:
  friend class Tensor;

  size_t rank_;
  int64_t extents_[RBC_MAX_NDIM] = {};
};

// Memory that somebody else owns, seen as a tensor. Cheap to copy; holds its own shape and strides.
// Making one never fails: one that cannot be, such as with a shape of more elements than the memory
// has, is refused as SHAPE_MISMATCH by the call that it is given to.
class Tensor {
 public:
  // Over a container, an array, or from a pointer on. Strides count elements and may be 0 or
  // negative; none means compact and row-major.
  template <class Memory, class Element = detail::ElementOf<std::remove_reference_t<Memory>>,
            class = std::enable_if_t<std::is_arithmetic_v<Element>>>
  Tensor(Memory&& memory, const Shape& shape, const Shape& strides = {},
         rbcDevice device = kCpu) noexcept
      : Tensor(const_cast<std::remove_const_t<Element>*>(detail::dataOf(memory)),
               dtypeOf<std::remove_const_t<Element>>(), shape, strides, device,
               !std::is_const_v<Element>, detail::roomOf(memory)) {
    static_assert(detail::kOutlives<Memory>, "the container is gone before the tensor is");
  }

  // A row: all elements of a container or an array, of shape [size].
  template <class Memory, class Size = decltype(std::size(std::declval<Memory&>())),
            class = std::enable_if_t<
                std::is_arithmetic_v<detail::ElementOf<std::remove_reference_t<Memory>>>>>
  Tensor(Memory&& memory) noexcept
      : Tensor(std::forward<Memory>(memory), Shape(static_cast<Size>(std::size(memory)))) {}

  // From a pointer on, of a dtype that C++ has no type for.
  Tensor(void* data, rbcDType dtype, const Shape& shape, const Shape& strides = {},
         rbcDevice device = kCpu) noexcept
      : Tensor(data, dtype, shape, strides, device, true, INT64_MAX) {}
  Tensor(const void* data, rbcDType dtype, const Shape& shape, const Shape& strides = {},
         rbcDevice device = kCpu) noexcept
      : Tensor(const_cast<void*>(data), dtype, shape, strides, device, false, INT64_MAX) {}

  // A copy of a C descriptor's numbers, not of the memory.
  explicit Tensor(const rbcTensor& raw, bool writable = true) noexcept
      : raw_(raw), writable_(writable) {
    const bool has_strides = raw.strides != nullptr;
    if (raw.ndim < 0 || raw.ndim > RBC_MAX_NDIM) {
      refuse("has a rank that is not 0 to 8");
    } else if (raw.ndim > 0 && raw.shape == nullptr) {
      refuse("has no shape");
    } else {
      std::copy_n(raw.shape, raw.ndim, shape_.extents_);
      if (has_strides) std::copy_n(raw.strides, raw.ndim, strides_.extents_);
    }
    point(has_strides);
  }

  Tensor(const Tensor& other) noexcept { *this = other; }
  Tensor& operator=(const Tensor& other) noexcept {
    raw_ = other.raw_;
    shape_ = other.shape_;
    strides_ = other.strides_;
    writable_ = other.writable_;
    defect_ = other.defect_;
    point(other.raw_.strides != nullptr);
    return *this;
  }

  // For the C interface; valid as long as this object.
  const rbcTensor* get() const noexcept { return &raw_; }
  // Whether it may be an output: memory that is const is not written.
  bool writable() const noexcept { return writable_; }
  // Why every call refuses this tensor, or null.
  const char* defect() const noexcept { return defect_; }

  void* data() const noexcept { return raw_.data; }
  rbcDType dtype() const noexcept { return raw_.dtype; }
  rbcDevice device() const noexcept { return raw_.device; }
  // -1 if there is a defect.
  int ndim() const noexcept { return raw_.ndim; }
  int64_t shape(int i) const noexcept { return shape_[static_cast<size_t>(i)]; }

 private:
  Tensor(void* data, rbcDType dtype, const Shape& shape, const Shape& strides, rbcDevice device,
         bool writable, int64_t room) noexcept
      : shape_(shape), strides_(strides), writable_(writable) {
    raw_.data = data;
    raw_.dtype = dtype;
    raw_.device = device;
    raw_.ndim = static_cast<int32_t>(std::min<size_t>(shape.rank(), RBC_MAX_NDIM));
    point(strides.rank() != 0);
    if (shape.rank() > RBC_MAX_NDIM) {
      refuse("has a rank that is not 0 to 8");
    } else if (strides.rank() != 0 && strides.rank() != shape.rank()) {
      refuse("has strides and a shape of different rank");
    } else if (!fits(room)) {
      refuse("has a shape of more elements than its memory");
    }
  }

  // Whether all elements lie in the first `room` of the memory. Numbers that a double does not hold
  // are far from it.
  bool fits(int64_t room) const noexcept {
    if (room == INT64_MAX) return true;
    double first = 0;
    double last = 0;
    double compact = 1;
    for (int32_t i = raw_.ndim - 1; i >= 0; --i) {
      if (raw_.shape[i] <= 0) return true;  // no elements, or an extent for the library to refuse
      const auto extent = static_cast<double>(raw_.shape[i]);
      const double stride =
          raw_.strides == nullptr ? compact : static_cast<double>(raw_.strides[i]);
      (stride < 0 ? first : last) += (extent - 1) * stride;
      compact *= extent;
    }
    return first >= 0 && last < static_cast<double>(room);
  }

  void refuse(const char* defect) noexcept {
    defect_ = defect;
    raw_.ndim = -1;
  }
  void point(bool has_strides) noexcept {
    raw_.shape = shape_.extents_;
    raw_.strides = has_strides ? strides_.extents_ : nullptr;
  }

  rbcTensor raw_{};
  Shape shape_;
  Shape strides_;
  bool writable_ = true;
  const char* defect_ = nullptr;
};

// ---- contexts -----------------------------------------------------------------------------------

// One device and one stream at a time, with the workspace and the threads that operations use. One
// thread a context at a time. Can be moved, and is destroyed once: enqueued work still completes.
class Context {
 public:
#if defined(__cpp_exceptions)
  // CUDA if a device is usable, else the CPU.
  Context() : Context(rbcContextParamsInit()) {}
  explicit Context(const rbcContextParams& params) : Context(create<Throw>(params)) {}
#endif

  // See rbcContextCreate. The default is CUDA if a device is usable, else the CPU.
  template <class Errors = DefaultErrors>
  static Returned<Errors, Context> create(const rbcContextParams& params = rbcContextParamsInit()) {
    rbcContext_t context = nullptr;
    const rbcStatus_t status = rbcContextCreate(&params, &context);
    return Errors::tell(detail::done(status, Context(context)));
  }
  // On so many threads; 0: the process's CPUs.
  template <class Errors = DefaultErrors>
  static Returned<Errors, Context> cpu(int32_t num_threads = 0) {
    rbcContextParams params = rbcContextParamsInit();
    params.backend = RBC_BACKEND_CPU;
    params.num_threads = num_threads;
    return create<Errors>(params);
  }
  // On a cudaStream_t of the device, which stays the caller's; null: the legacy default stream.
  template <class Errors = DefaultErrors>
  static Returned<Errors, Context> cuda(int32_t device_id = 0, void* stream = nullptr) {
    rbcContextParams params = rbcContextParamsInit();
    params.backend = RBC_BACKEND_CUDA;
    params.device_id = device_id;
    params.stream = stream;
    return create<Errors>(params);
  }

  // For the C interface; null if it was moved from.
  rbcContext_t get() const noexcept { return context_.get(); }

  // The backend, the device, threads and memory, and why CUDA is not used.
  template <class Errors = DefaultErrors>
  Returned<Errors, rbcContextInfo> info() const {
    rbcContextInfo info = rbcContextInfoInit();
    const rbcStatus_t status = rbcContextGetInfo(get(), &info);
    return Errors::tell(detail::done(status, info));
  }
  // The cudaStream_t that calls enqueue on; null on the CPU.
  template <class Errors = DefaultErrors>
  Returned<Errors, void*> stream() const {
    void* stream = nullptr;
    const rbcStatus_t status = rbcContextGetStream(get(), &stream);
    return Errors::tell(detail::done(status, stream));
  }
  // Later calls enqueue on this stream, and wait there for the workspace without stopping the host.
  template <class Errors = DefaultErrors>
  Returned<Errors, void> setStream(void* stream) {
    return check<Errors>(rbcContextSetStream(get(), stream));
  }
  // Waits for what was enqueued, and tells what went wrong there.
  template <class Errors = DefaultErrors>
  Returned<Errors, void> synchronize() {
    return check<Errors>(rbcContextSynchronize(get()));
  }
  // Grows the workspace. So does every call that needs more: one like those of a CUDA graph, made
  // before the capture, does as well.
  template <class Errors = DefaultErrors>
  Returned<Errors, void> reserve(size_t bytes) {
    return check<Errors>(rbcContextReserve(get(), bytes));
  }
  // Starts the CPU threads: call it before timing.
  template <class Errors = DefaultErrors>
  Returned<Errors, void> warmUp() {
    return check<Errors>(rbcContextWarmUp(get()));
  }

 private:
  struct Destroy {
    void operator()(rbcContext_t context) const noexcept { rbcContextDestroy(context); }
  };

  explicit Context(rbcContext_t context) noexcept : context_(context) {}

  std::unique_ptr<rbcContext, Destroy> context_;
};

// ---- owned tensors ------------------------------------------------------------------------------

// A compact tensor on a context's device, or one taken over from DLPack. Can be moved; its memory
// lives until it and every DLPack tensor made of it are gone, and does not need the context.
class OwnedTensor {
 public:
#if defined(__cpp_exceptions)
  OwnedTensor(const Context& context, rbcDType dtype, const Shape& shape)
      : OwnedTensor(create<Throw>(context, dtype, shape)) {}
#endif

  // Uninitialized memory of the context's device. See rbcTensorCreate.
  template <class Errors = DefaultErrors>
  static Returned<Errors, OwnedTensor> create(const Context& context, rbcDType dtype,
                                              const Shape& shape) {
    rbcOwnedTensor_t tensor = nullptr;
    int64_t extents[RBC_MAX_NDIM];
    for (size_t i = 0; i < RBC_MAX_NDIM; ++i) extents[i] = shape[i];
    const rbcStatus_t status =
        rbcTensorCreate(context.get(), dtype, static_cast<int32_t>(shape.rank()), extents, &tensor);
    return Errors::tell(detail::done(status, OwnedTensor(tensor)));
  }
  // Takes over a managed tensor without a copy. On failure the caller keeps it, as
  // rbcTensorImportDLPackVersioned says.
  template <class Errors = DefaultErrors>
  static Returned<Errors, OwnedTensor> fromDLPack(DLManagedTensorVersioned* managed) {
    rbcOwnedTensor_t tensor = nullptr;
    const rbcStatus_t status = rbcTensorImportDLPackVersioned(managed, &tensor);
    return Errors::tell(detail::done(status, OwnedTensor(tensor)));
  }
  template <class Errors = DefaultErrors>
  static Returned<Errors, OwnedTensor> fromDLPack(DLManagedTensor* managed) {
    rbcOwnedTensor_t tensor = nullptr;
    const rbcStatus_t status = rbcTensorImportDLPack(managed, &tensor);
    return Errors::tell(detail::done(status, OwnedTensor(tensor)));
  }
  // Shares the memory: it lives until the managed tensor's deleter was called, too.
  template <class Errors = DefaultErrors>
  Returned<Errors, DLManagedTensorVersioned*> toDLPack() const {
    DLManagedTensorVersioned* managed = nullptr;
    const rbcStatus_t status = rbcTensorExportDLPackVersioned(get(), &managed);
    return Errors::tell(detail::done(status, managed));
  }

  // For the C interface; null if it was moved from.
  rbcOwnedTensor_t get() const noexcept { return tensor_.get(); }

  // Its memory, for calls; valid as long as this tensor. INVALID_ARGUMENT if it was imported
  // read-only and is not const here.
  template <class Errors = DefaultErrors>
  Returned<Errors, Tensor> view() {
    return Errors::tell(describe(true));
  }
  template <class Errors = DefaultErrors>
  Returned<Errors, Tensor> view() const {
    return Errors::tell(describe(false));
  }

 private:
  struct Destroy {
    void operator()(rbcOwnedTensor_t tensor) const noexcept { rbcTensorDestroy(tensor); }
  };

  explicit OwnedTensor(rbcOwnedTensor_t tensor) noexcept : tensor_(tensor) {}
  Result<Tensor> describe(bool writable) const {
    rbcTensor raw{};
    const rbcStatus_t status = rbcTensorGetView(get(), writable ? 1 : 0, &raw);
    return detail::done(status, Tensor(raw, writable));
  }

  std::unique_ptr<rbcOwnedTensor, Destroy> tensor_;
};

namespace detail {

// One call of the C interface: what is wrong with a tensor is told in place of making it.
class Call {
 public:
  const rbcTensor* in(const Tensor& tensor, const char* argument) {
    if (tensor.defect() != nullptr) refuse(RBC_STATUS_SHAPE_MISMATCH, argument, tensor.defect());
    return tensor.get();
  }
  const rbcTensor* out(const Tensor& tensor, const char* argument) {
    if (!tensor.writable()) {
      refuse(RBC_STATUS_INVALID_ARGUMENT, argument, "is read-only, expected writable memory");
    }
    return in(tensor, argument);
  }
  const rbcTensor* in(const std::optional<Tensor>& tensor, const char* argument) {
    return tensor ? in(*tensor, argument) : nullptr;
  }
  const rbcTensor* out(const std::optional<Tensor>& tensor, const char* argument) {
    return tensor ? out(*tensor, argument) : nullptr;
  }

  // Whose arguments come next.
  void enterStream(int stream) { stream_ = stream; }
  void leaveStreams() { stream_ = -1; }

  template <class Errors, class Function, class... Arguments>
  Returned<Errors, void> make(Function function, Arguments... arguments) {
    return Errors::tell(error_ ? Result<void>(*error_) : done(function(arguments...)));
  }

 private:
  void refuse(rbcStatus_t status, const char* argument, const char* why) {
    if (error_) return;
    const std::string of = stream_ < 0 ? "" : "streams[" + std::to_string(stream_) + "].";
    error_ = Error(status, of + argument + ": " + why);
  }

  int stream_ = -1;
  std::optional<Error> error_;
};

template <class Element>
int32_t count(const std::vector<Element>& elements) {
  return static_cast<int32_t>(std::min<size_t>(elements.size(), INT32_MAX));
}

}  // namespace detail

// Between tensors of one shape and dtype; returns when host memory has been read or written.
template <class Errors = DefaultErrors>
Returned<Errors, void> copy(const Context& context, const Tensor& source,
                            const Tensor& destination) {
  detail::Call call;
  return call.make<Errors>(rbcTensorCopy, context.get(), call.in(source, "source"),
                           call.out(destination, "destination"));
}

// ---- resample -----------------------------------------------------------------------------------

// See RBC_METHOD_... in resample.h.
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

// What queries before the first and after the last time get.
enum class Bounds : int32_t {
  kHold = RBC_BOUNDS_HOLD,
  kFill = RBC_BOUNDS_FILL,
  kExtrapolate = RBC_BOUNDS_EXTRAPOLATE,
};

// Channels begin .. begin + count - 1 by a method of their own, for StreamOptions::groups.
inline rbcChannelGroup channels(int64_t begin, int64_t count, Method method) noexcept {
  return {begin, count, static_cast<int32_t>(method), 0};
}

// How one stream is resampled: what resample.h says of rbcResampleParams. Tensors that are not set
// are not there.
struct StreamOptions {
  Method method = Method::kLinear;
  std::vector<rbcChannelGroup> groups;  // together all channels; none: method
  Bounds bounds = Bounds::kHold;
  double fill_value = 0;          // where there is no value
  double max_gap = INFINITY;      // between the two samples around a query, in the unit of times
  double tolerance = INFINITY;    // for nearest, previous and next, in the unit of times
  std::optional<Tensor> lengths;  // [B] i32 or i64: valid samples of padded rows
  std::optional<Tensor> offsets;  // [B+1] i32 or i64: the rows of packed values
  std::optional<Tensor> mean;     // [D] f32 or f64: out = (v - mean) * inv_std
  std::optional<Tensor> inv_std;  // [D] f32 or f64
};

// The options of resample.
struct ResampleOptions : StreamOptions {
  bool check_times = false;             // verify times first; on CUDA this waits for the stream
  std::optional<Tensor> query_lengths;  // [B] i32 or i64: valid queries of each row
  std::optional<Tensor> mask;           // [B,T] bool or u8, written: 1 where there is a value
};

namespace detail {

// Points into the options.
inline rbcResampleParams paramsOf(const StreamOptions& options, Call& call) {
  rbcResampleParams params = rbcResampleParamsInit();
  params.method = static_cast<int32_t>(options.method);
  params.bounds = static_cast<int32_t>(options.bounds);
  params.fill_value = options.fill_value;
  params.max_gap = options.max_gap;
  params.tolerance = options.tolerance;
  params.lengths = call.in(options.lengths, "lengths");
  params.offsets = call.in(options.offsets, "offsets");
  params.mean = call.in(options.mean, "mean");
  params.inv_std = call.in(options.inv_std, "inv_std");
  params.groups = options.groups.empty() ? nullptr : options.groups.data();
  params.num_groups = count(options.groups);
  return params;
}

}  // namespace detail

// Trajectories at their own times, at other times.
//
//   values       [B,S,D]; [S,D] without batch; [N,D] packed, with offsets
//   times        [B,S], or [S] shared by the batch; [N] packed; f32, f64 or i64
//   query_times  [B,T], or [T] shared by the batch; the dtype of times
//   out          [B,T,D]; [T,D] without batch; written whole
//
// See rbcResample for dtypes, rules and errors. Asynchronous on CUDA: the memory must live until
// the stream is done with it.
template <class Errors = DefaultErrors>
Returned<Errors, void> resample(const Context& context, const Tensor& values, const Tensor& times,
                                const Tensor& query_times, const Tensor& out,
                                const ResampleOptions& options = {}) {
  detail::Call call;
  rbcResampleParams params = detail::paramsOf(options, call);
  params.flags = options.check_times ? RBC_CHECK_TIMES : 0;
  params.query_lengths = call.in(options.query_lengths, "query_lengths");
  return call.make<Errors>(rbcResample, context.get(), call.in(values, "values"),
                           call.in(times, "times"), call.in(query_times, "query_times"),
                           call.out(out, "out"), call.out(options.mask, "mask"), &params);
}

// ---- fuse ---------------------------------------------------------------------------------------

// One sensor: its samples, as for resample, and how they are resampled. It does not own the memory.
struct Stream : StreamOptions {
  Stream(const Tensor& samples, const Tensor& at) : values(samples), times(at) {}

  Tensor values;
  Tensor times;                    // of the same dtype in every stream
  double clock_offset = 0;         // f32 and f64 times: a sample at t lies at t + clock_offset
  int64_t clock_offset_ticks = 0;  // i64 times: likewise
};

// The options of fuse.
struct FuseOptions {
  bool check_times = false;             // verify times first; on CUDA this waits for the stream
  std::optional<Tensor> query_lengths;  // [B] i32 or i64: valid queries of each row
  std::optional<Tensor> mask;           // [B,T,N] bool or u8, written: 1 where there is a value
};

// The streams side by side on one clock, in one launch.
//
//   streams      N of them, 1 to RBC_FUSE_MAX_STREAMS
//   query_times  [B,T], or [T] shared by the batch; the dtype of the streams' times
//   out          [B,T,D_0 + ... + D_N-1]; [T,...] without batch; written whole
//
// See rbcFuse for dtypes, rules and errors. Asynchronous on CUDA, as resample.
template <class Errors = DefaultErrors>
Returned<Errors, void> fuse(const Context& context, const std::vector<Stream>& streams,
                            const Tensor& query_times, const Tensor& out,
                            const FuseOptions& options = {}) {
  detail::Call call;
  rbcResampleParams params[RBC_FUSE_MAX_STREAMS];
  rbcFuseStream raw[RBC_FUSE_MAX_STREAMS];
  // The library refuses more by their number, before it looks at one.
  const size_t used = std::min<size_t>(streams.size(), RBC_FUSE_MAX_STREAMS);
  for (size_t n = 0; n < used; ++n) {
    const Stream& stream = streams[n];
    call.enterStream(static_cast<int>(n));
    params[n] = detail::paramsOf(stream, call);
    raw[n] = rbcFuseStreamInit();
    raw[n].values = call.in(stream.values, "values");
    raw[n].times = call.in(stream.times, "times");
    raw[n].params = &params[n];
    raw[n].clock_offset = stream.clock_offset;
    raw[n].clock_offset_ticks = stream.clock_offset_ticks;
  }
  call.leaveStreams();
  rbcFuseParams fuse_params = rbcFuseParamsInit();
  fuse_params.flags = options.check_times ? RBC_CHECK_TIMES : 0;
  fuse_params.query_lengths = call.in(options.query_lengths, "query_lengths");
  return call.make<Errors>(rbcFuse, context.get(), raw, detail::count(streams),
                           call.in(query_times, "query_times"), call.out(out, "out"),
                           call.out(options.mask, "mask"), &fuse_params);
}

// ---- voxelize -----------------------------------------------------------------------------------

// What becomes of the points of a voxel.
enum class VoxelMode : int32_t {
  kOccupancy = RBC_VOXEL_OCCUPANCY,
  kCount = RBC_VOXEL_COUNT,
  kSum = RBC_VOXEL_SUM,
  kMean = RBC_VOXEL_MEAN,
  kMax = RBC_VOXEL_MAX,
  kMin = RBC_VOXEL_MIN,
};

// In which order voxelizeSparse lists the voxels, and keeps those that fit.
enum class VoxelOrder : int32_t {
  kLexicographic = RBC_VOXEL_ORDER_LEXICOGRAPHIC,
  kFirstPoint = RBC_VOXEL_ORDER_FIRST_POINT,
};

// The options of voxelize. Tensors that are not set are not there.
struct VoxelizeOptions {
  VoxelMode mode = VoxelMode::kOccupancy;
  double empty_value = 0;          // of voxels without a point
  std::optional<Tensor> features;  // [B,N,F], [N,F] as points; none: the columns of points
  std::optional<Tensor> lengths;   // [B] i32 or i64: valid points of padded clouds
  std::optional<Tensor> offsets;   // [B+1] i32 or i64: the clouds of packed points
  std::optional<Tensor> dropped;   // [B], without batch []; i64, written: points in no voxel
};

// Point clouds to a dense grid.
//
//   points  [B,N,C]; [N,C] without batch; [N,C] packed, with offsets; C >= 3: x, y, z, ...
//   out     [B,X,Y,Z] for occupancy and count, else [B,X,Y,Z,F]; without batch no B; written whole
//
// See rbcVoxelize for dtypes, rules and errors. Asynchronous on CUDA, as resample.
template <class Errors = DefaultErrors>
Returned<Errors, void> voxelize(const Context& context, const Tensor& points,
                                const rbcVoxelGrid& grid, const Tensor& out,
                                const VoxelizeOptions& options = {}) {
  detail::Call call;
  rbcVoxelizeParams params = rbcVoxelizeParamsInit();
  params.mode = static_cast<int32_t>(options.mode);
  params.empty_value = options.empty_value;
  params.grid = grid;
  params.lengths = call.in(options.lengths, "lengths");
  params.offsets = call.in(options.offsets, "offsets");
  return call.make<Errors>(rbcVoxelize, context.get(), call.in(points, "points"),
                           call.in(options.features, "features"), call.out(out, "out"),
                           call.out(options.dropped, "dropped"), &params);
}

// Where the voxels go, all of it written whole: what voxelize.h says of rbcSparseVoxels. The
// capacity is the extent of coords. Tensors that are not set are not wanted.
struct SparseVoxels {
  SparseVoxels(const Tensor& places, const Tensor& count) : coords(places), num_voxels(count) {}

  Tensor coords;                         // [capacity,4] i32: cloud, x, y, z; then -1
  Tensor num_voxels;                     // [] i64: the rows that are voxels
  std::optional<Tensor> counts;          // [capacity] i32: points in the voxel
  std::optional<Tensor> features;        // [capacity,F] any float: reduced
  std::optional<Tensor> grouped;         // [capacity,P,F] any float: of the first P points
  std::optional<Tensor> point_to_voxel;  // [B,N] or [N] i32 or i64: a row of coords, or -1
  std::optional<Tensor> dropped;         // [B], without batch []; i64: points in no voxel
  std::optional<Tensor> overflow;        // [3] i64: voxels and points beyond the capacity, and
                                         // points of voxels beyond P
};

// The options of voxelizeSparse. Tensors that are not set are not there.
struct VoxelizeSparseOptions {
  VoxelMode reduce = VoxelMode::kMean;  // kSum, kMean, kMax or kMin
  VoxelOrder order = VoxelOrder::kLexicographic;
  std::optional<Tensor> features;  // [B,N,F], [N,F] as points; none: the columns of points
  std::optional<Tensor> lengths;   // as for voxelize
  std::optional<Tensor> offsets;
};

// Point clouds, as for voxelize, to a list of the voxels that hold a point. See rbcVoxelizeSparse
// for dtypes, rules and errors. Asynchronous on CUDA, as resample; the number of voxels too.
template <class Errors = DefaultErrors>
Returned<Errors, void> voxelizeSparse(const Context& context, const Tensor& points,
                                      const rbcVoxelGrid& grid, const SparseVoxels& voxels,
                                      const VoxelizeSparseOptions& options = {}) {
  detail::Call call;
  rbcSparseVoxels raw = rbcSparseVoxelsInit();
  raw.coords = call.out(voxels.coords, "coords");
  raw.num_voxels = call.out(voxels.num_voxels, "num_voxels");
  raw.counts = call.out(voxels.counts, "counts");
  raw.features = call.out(voxels.features, "voxels.features");
  raw.grouped = call.out(voxels.grouped, "grouped");
  raw.point_to_voxel = call.out(voxels.point_to_voxel, "point_to_voxel");
  raw.dropped = call.out(voxels.dropped, "dropped");
  raw.overflow = call.out(voxels.overflow, "overflow");
  rbcVoxelizeSparseParams params = rbcVoxelizeSparseParamsInit();
  params.reduce = static_cast<int32_t>(options.reduce);
  params.order = static_cast<int32_t>(options.order);
  params.grid = grid;
  params.lengths = call.in(options.lengths, "lengths");
  params.offsets = call.in(options.offsets, "offsets");
  return call.make<Errors>(rbcVoxelizeSparse, context.get(), call.in(points, "points"),
                           call.in(options.features, "features"), &raw, &params);
}

// ---- TSDF ---------------------------------------------------------------------------------------

// The weight of a point at distance r from its sensor: 1, or 1 / r^2.
enum class TsdfWeighting : int32_t {
  kConstant = RBC_TSDF_WEIGHT_CONSTANT,
  kInverseSquare = RBC_TSDF_WEIGHT_INVERSE_SQUARE,
};

// The options of voxelizeTsdf. Tensors that are not set are not there.
struct TsdfOptions {
  TsdfWeighting weighting = TsdfWeighting::kConstant;
  bool carve = false;             // a ray updates the free space from its sensor on, too
  double max_weight = INFINITY;   // a voxel's weight stops here
  std::optional<Tensor> lengths;  // as for voxelize
  std::optional<Tensor> offsets;
  std::optional<Tensor> dropped;  // [B], without batch []; i64, written: points without a voxel
};

// Integrates point clouds into a truncated signed distance field.
//
//   points        as for voxelize
//   sensors       [B,3], or [3] for all clouds; f32 or f64: where each cloud was seen from
//   tsdf, weight  [X,Y,Z] f32, read and written: a new volume has zero weights
//
// See rbcVoxelizeTsdf for dtypes, rules and errors. Asynchronous on CUDA, as resample.
template <class Errors = DefaultErrors>
Returned<Errors, void> voxelizeTsdf(const Context& context, const Tensor& points,
                                    const Tensor& sensors, const rbcVoxelGrid& grid,
                                    double truncation, const Tensor& tsdf, const Tensor& weight,
                                    const TsdfOptions& options = {}) {
  detail::Call call;
  rbcTsdfParams params = rbcTsdfParamsInit();
  params.flags = options.carve ? RBC_TSDF_CARVE : 0;
  params.weighting = static_cast<int32_t>(options.weighting);
  params.truncation = truncation;
  params.max_weight = options.max_weight;
  params.grid = grid;
  params.lengths = call.in(options.lengths, "lengths");
  params.offsets = call.in(options.offsets, "offsets");
  return call.make<Errors>(rbcVoxelizeTsdf, context.get(), call.in(points, "points"),
                           call.in(sensors, "sensors"), call.out(tsdf, "tsdf"),
                           call.out(weight, "weight"), call.out(options.dropped, "dropped"),
                           &params);
}

#if !defined(__cpp_exceptions)
}  // namespace without_exceptions
#endif
}  // namespace robocache
