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
// a time may use a context. Movable. Destroying it does not wait: enqueued work still completes.
class Context {
 public:
#if defined(__cpp_exceptions)
  // Uses CUDA if a device is usable, else the CPU.
  Context() : Context(rbcContextParamsInit()) {}
  explicit Context(const rbcContextParams& params) : Context(create<Throw>(params)) {}
#endif

  // Creates a context: see rbcContextCreate. The default is CUDA if a device is usable, else the
  // CPU.
  template <class Errors = DefaultErrors>
  static Returned<Errors, Context> create(const rbcContextParams& params = rbcContextParamsInit()) {
    rbcContext_t context = nullptr;
    const rbcStatus_t status = rbcContextCreate(&params, &context);
    return Errors::report(detail::done(status, Context(context)));
  }
  // Creates a CPU context with this number of threads; 0: as many as the process has CPUs.
  template <class Errors = DefaultErrors>
  static Returned<Errors, Context> cpu(int32_t num_threads = 0) {
    rbcContextParams params = rbcContextParamsInit();
    params.backend = RBC_BACKEND_CPU;
    params.num_threads = num_threads;
    return create<Errors>(params);
  }
  // Creates a CUDA context on a cudaStream_t of the device; null: the legacy default stream. The
  // caller keeps the ownership of the stream.
  template <class Errors = DefaultErrors>
  static Returned<Errors, Context> cuda(int32_t device_id = 0, void* cuda_stream = nullptr) {
    rbcContextParams params = rbcContextParamsInit();
    params.backend = RBC_BACKEND_CUDA;
    params.device_id = device_id;
    params.cuda_stream = cuda_stream;
    return create<Errors>(params);
  }

  // The handle for the C interface; null if this object was moved from.
  rbcContext_t get() const noexcept { return context_.get(); }

  // Returns the backend, the device, threads and memory, and why CUDA is not used.
  template <class Errors = DefaultErrors>
  Returned<Errors, rbcContextInfo> info() const {
    rbcContextInfo info = rbcContextInfoInit();
    const rbcStatus_t status = rbcContextGetInfo(get(), &info);
    return Errors::report(detail::done(status, info));
  }
  // Returns the cudaStream_t that calls enqueue on; null on the CPU.
  template <class Errors = DefaultErrors>
  Returned<Errors, void*> cudaStream() const {
    void* cuda_stream = nullptr;
    const rbcStatus_t status = rbcContextGetCudaStream(get(), &cuda_stream);
    return Errors::report(detail::done(status, cuda_stream));
  }
  // Makes later calls enqueue on this stream. They wait there for the workspace; the host does not
  // wait.
  template <class Errors = DefaultErrors>
  Returned<Errors, void> setCudaStream(void* cuda_stream) {
    return check<Errors>(rbcContextSetCudaStream(get(), cuda_stream));
  }
  // Waits for the enqueued work, and reports its errors. Not during stream capture.
  template <class Errors = DefaultErrors>
  Returned<Errors, void> synchronize() {
    return check<Errors>(rbcContextSynchronize(get()));
  }
  // Makes long calls on the CPU call `callback(user_data)` about every 50 ms. They fail with
  // CANCELLED once it does not return 0. See rbcContextSetCancelCallback.
  template <class Errors = DefaultErrors>
  Returned<Errors, void> setCancelCallback(rbcCancelCallback callback, void* user_data = nullptr) {
    return check<Errors>(rbcContextSetCancelCallback(get(), callback, user_data));
  }
  // Grows the workspace to the size that an operation's ...WorkspaceSize returns. Every call that
  // needs more also grows it, so the same call before the capture of a CUDA graph has this effect
  // too.
  template <class Errors = DefaultErrors>
  Returned<Errors, void> reserve(size_t bytes) {
    return check<Errors>(rbcContextReserve(get(), bytes));
  }
  // Starts the CPU threads now; call it before timing.
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

// A compact tensor on a context's device, or a tensor taken over from DLPack. Movable. Its memory
// lives until the tensor and every DLPack tensor exported from it are destroyed. It may outlive the
// context.
class OwnedTensor {
 public:
#if defined(__cpp_exceptions)
  OwnedTensor(const Context& context, rbcDType dtype, const Shape& shape)
      : OwnedTensor(create<Throw>(context, dtype, shape)) {}
#endif

  // Allocates uninitialized memory on the context's device: see rbcOwnedTensorCreate.
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
  // Takes over a managed tensor without a copy. On failure the caller keeps it; see
  // rbcOwnedTensorImportDLPackVersioned for an exception.
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
  // Exports the tensor without a copy. The memory lives at least until the managed tensor's deleter
  // is called. The second form is for DLPack before 1.0, which has no read-only flag: a read-only
  // tensor is UNSUPPORTED.
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

  // The handle for the C interface; null if this object was moved from.
  rbcOwnedTensor_t get() const noexcept { return tensor_.get(); }

  // Describes its memory, for calls; valid as long as this tensor. Without const, a tensor that was
  // imported read-only fails with INVALID_ARGUMENT.
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

// One call of the C interface. If a tensor is invalid, it reports that and does not make the call.
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

  // Sets the stream that error messages name for the following arguments.
  void enterStream(int stream) { stream_ = stream; }
  void leaveStreams() { stream_ = -1; }

  template <class Errors, class Function, class... Arguments>
  Returned<Errors, void> make(Function function, Arguments... arguments) {
    return Errors::report(error_ ? Result<void>(*error_) : done(function(arguments...)));
  }
  // Makes the call of a function that writes a size through its last argument.
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

// run() and measure() return functions with the same arguments, for an operation and for the size
// of its workspace.
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

// Returns a tensor's address, extents and strides, with defaults resolved: see rbcTensorGetInfo.
template <class Errors = DefaultErrors>
Returned<Errors, rbcTensorInfo> tensorInfo(const Tensor& tensor) {
  detail::Call call;
  rbcTensorInfo info = rbcTensorInfoInit();
  const Result<void> done = call.make<Expect>(rbcTensorGetInfo, call.in(tensor, "tensor"), &info);
  return Errors::report(done ? Result<rbcTensorInfo>(info) : Result<rbcTensorInfo>(done.error()));
}

// Copies between tensors of the same shape and dtype. A copy to or from host memory returns when it
// is done; a copy within a GPU is enqueued.
template <class Errors = DefaultErrors>
Returned<Errors, void> copy(const Context& context, const Tensor& source,
                            const Tensor& destination) {
  detail::Call call;
  return call.make<Errors>(rbcTensorCopy, context.get(), call.in(source, "source"),
                           call.out(destination, "destination"));
}

ROBOCACHE_NAMESPACE_END
