// Contexts, and tensors that own their memory. See robocache.hpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "context.h"
#include "tensor.hpp"

ROBOCACHE_NAMESPACE_BEGIN

// A device and a stream, with the workspace and the threads that operations use. Only one thread at
// a time may use a context. Movable; destroying it lets enqueued work complete.
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
    return Errors::report(detail::done(status, Context(context)));
  }
  // With this many threads; 0: as many as the process has CPUs.
  template <class Errors = DefaultErrors>
  static Returned<Errors, Context> cpu(int32_t num_threads = 0) {
    rbcContextParams params = rbcContextParamsInit();
    params.backend = RBC_BACKEND_CPU;
    params.num_threads = num_threads;
    return create<Errors>(params);
  }
  // On a cudaStream_t of the device, which stays the caller's; null: the legacy default stream.
  template <class Errors = DefaultErrors>
  static Returned<Errors, Context> cuda(int32_t device_id = 0, void* cuda_stream = nullptr) {
    rbcContextParams params = rbcContextParamsInit();
    params.backend = RBC_BACKEND_CUDA;
    params.device_id = device_id;
    params.cuda_stream = cuda_stream;
    return create<Errors>(params);
  }

  // For the C interface; null if it was moved from.
  rbcContext_t get() const noexcept { return context_.get(); }

  // The backend, the device, threads and memory, and why CUDA is not used.
  template <class Errors = DefaultErrors>
  Returned<Errors, rbcContextInfo> info() const {
    rbcContextInfo info = rbcContextInfoInit();
    const rbcStatus_t status = rbcContextGetInfo(get(), &info);
    return Errors::report(detail::done(status, info));
  }
  // The cudaStream_t that calls enqueue on; null on the CPU.
  template <class Errors = DefaultErrors>
  Returned<Errors, void*> cudaStream() const {
    void* cuda_stream = nullptr;
    const rbcStatus_t status = rbcContextGetCudaStream(get(), &cuda_stream);
    return Errors::report(detail::done(status, cuda_stream));
  }
  // Later calls enqueue on this stream, and wait there for the workspace without stopping the host.
  template <class Errors = DefaultErrors>
  Returned<Errors, void> setCudaStream(void* cuda_stream) {
    return check<Errors>(rbcContextSetCudaStream(get(), cuda_stream));
  }
  // Waits for what was enqueued, and reports its errors.
  template <class Errors = DefaultErrors>
  Returned<Errors, void> synchronize() {
    return check<Errors>(rbcContextSynchronize(get()));
  }
  // Long calls on the CPU call `callback(user_data)` about every 50 ms, and fail with CANCELLED once it
  // returns anything but 0. See rbcContextSetCancelCallback.
  template <class Errors = DefaultErrors>
  Returned<Errors, void> setCancelCallback(rbcCancelCallback callback, void* user_data = nullptr) {
    return check<Errors>(rbcContextSetCancelCallback(get(), callback, user_data));
  }
  // Grows the workspace to what an operation's ...WorkspaceSize returns. So does every call that needs
  // more, so the same call before the capture of a CUDA graph does it, too.
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

// A compact tensor on a context's device, or one taken over from DLPack. Can be moved; its memory
// lives until it and every DLPack tensor made of it are gone, and does not need the context.
class OwnedTensor {
 public:
#if defined(__cpp_exceptions)
  OwnedTensor(const Context& context, rbcDType dtype, const Shape& shape)
      : OwnedTensor(create<Throw>(context, dtype, shape)) {}
#endif

  // Uninitialized memory of the context's device. See rbcOwnedTensorCreate.
  template <class Errors = DefaultErrors>
  static Returned<Errors, OwnedTensor> create(const Context& context, rbcDType dtype,
                                              const Shape& shape) {
    rbcOwnedTensor_t tensor = nullptr;
    int64_t extents[RBC_TENSOR_MAX_NDIM];
    for (size_t i = 0; i < RBC_TENSOR_MAX_NDIM; ++i) extents[i] = shape[i];
    const rbcStatus_t status = rbcOwnedTensorCreate(
        context.get(), dtype, static_cast<int32_t>(shape.rank()), extents, nullptr, &tensor);
    return Errors::report(detail::done(status, OwnedTensor(tensor)));
  }
  // Takes over a managed tensor without a copy. On failure the caller keeps it, as
  // rbcOwnedTensorImportDLPackVersioned says.
  template <class Errors = DefaultErrors>
  static Returned<Errors, OwnedTensor> fromDLPack(DLManagedTensorVersioned* managed) {
    rbcOwnedTensor_t tensor = nullptr;
    const rbcStatus_t status = rbcOwnedTensorImportDLPackVersioned(managed, &tensor);
    return Errors::report(detail::done(status, OwnedTensor(tensor)));
  }
  template <class Errors = DefaultErrors>
  static Returned<Errors, OwnedTensor> fromDLPack(DLManagedTensor* managed) {
    rbcOwnedTensor_t tensor = nullptr;
    const rbcStatus_t status = rbcOwnedTensorImportDLPack(managed, &tensor);
    return Errors::report(detail::done(status, OwnedTensor(tensor)));
  }
  // Shares the memory: it lives until the managed tensor's deleter was called, too. The second form is
  // that of DLPack before 1.0, which cannot say "read-only": a read-only tensor is UNSUPPORTED.
  template <class Errors = DefaultErrors>
  Returned<Errors, DLManagedTensorVersioned*> toDLPack() const {
    DLManagedTensorVersioned* managed = nullptr;
    const rbcStatus_t status = rbcOwnedTensorExportDLPackVersioned(get(), &managed);
    return Errors::report(detail::done(status, managed));
  }
  template <class Errors = DefaultErrors>
  Returned<Errors, DLManagedTensor*> toUnversionedDLPack() const {
    DLManagedTensor* managed = nullptr;
    const rbcStatus_t status = rbcOwnedTensorExportDLPack(get(), &managed);
    return Errors::report(detail::done(status, managed));
  }

  // For the C interface; null if it was moved from.
  rbcOwnedTensor_t get() const noexcept { return tensor_.get(); }

  // Its memory, for calls; valid as long as this tensor. INVALID_ARGUMENT if it was imported
  // read-only and is not const here.
  template <class Errors = DefaultErrors>
  Returned<Errors, Tensor> view() {
    return Errors::report(describe(true));
  }
  template <class Errors = DefaultErrors>
  Returned<Errors, Tensor> view() const {
    return Errors::report(describe(false));
  }

 private:
  struct Destroy {
    void operator()(rbcOwnedTensor_t tensor) const noexcept { rbcOwnedTensorDestroy(tensor); }
  };

  explicit OwnedTensor(rbcOwnedTensor_t tensor) noexcept : tensor_(tensor) {}
  Result<Tensor> describe(bool writable) const {
    rbcTensor raw{};
    const rbcStatus_t status = rbcOwnedTensorGetView(get(), writable ? 1 : 0, &raw);
    return detail::done(status, Tensor(raw, writable));
  }

  std::unique_ptr<rbcOwnedTensor, Destroy> tensor_;
};

namespace detail {

// One call of the C interface. If a tensor is wrong, it reports that and makes no call.
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
    return Errors::report(error_ ? Result<void>(*error_) : done(function(arguments...)));
  }
  // The same for a function that writes a size through its last argument.
  template <class Errors, class Function, class... Arguments>
  Returned<Errors, size_t> size(Function function, Arguments... arguments) {
    if (error_) return Errors::report(Result<size_t>(*error_));
    size_t bytes = 0;
    const rbcStatus_t status = function(arguments..., &bytes);
    return Errors::report(done(status, bytes));
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

// An operation, and the size of its workspace, are called with the same arguments.
template <class Errors, class Function>
auto run(Function function) {
  return [function](Call& call, auto... arguments) {
    return call.make<Errors>(function, arguments...);
  };
}
template <class Errors, class Function>
auto measure(Function function) {
  return [function](Call& call, auto... arguments) {
    return call.size<Errors>(function, arguments...);
  };
}

template <class Element>
int32_t count(const std::vector<Element>& elements) {
  return static_cast<int32_t>(std::min<size_t>(elements.size(), INT32_MAX));
}

}  // namespace detail

// What the library makes of a tensor: its address, extents and strides, with nothing implicit. See
// rbcTensorGetInfo.
template <class Errors = DefaultErrors>
Returned<Errors, rbcTensorInfo> tensorInfo(const Tensor& tensor) {
  detail::Call call;
  rbcTensorInfo info = rbcTensorInfoInit();
  const Result<void> done = call.make<Expect>(rbcTensorGetInfo, call.in(tensor, "tensor"), &info);
  return Errors::report(done ? Result<rbcTensorInfo>(info) : Result<rbcTensorInfo>(done.error()));
}

// Between tensors of one shape and dtype; returns when host memory has been read or written.
template <class Errors = DefaultErrors>
Returned<Errors, void> copy(const Context& context, const Tensor& source,
                            const Tensor& destination) {
  detail::Call call;
  return call.make<Errors>(rbcTensorCopy, context.get(), call.in(source, "source"),
                           call.out(destination, "destination"));
}

ROBOCACHE_NAMESPACE_END
