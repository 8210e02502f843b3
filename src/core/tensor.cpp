// Owned tensors: creation, reference counting, copies, DLPack in and out.

#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cstddef>
#include <memory>

#include "context.h"
#include "dlpack.h"
#include "guard.h"
#include "overlap.h"
#include "params.h"
#include "status.h"

struct rbcOwnedTensor {
  std::atomic<int64_t> references{1};
  rbcTensor tensor = {};  // points to the arrays below
  int64_t shape[RBC_TENSOR_MAX_NDIM] = {};
  int64_t strides[RBC_TENSOR_MAX_NDIM] = {};
  bool read_only = false;
  // The owner of the memory: a context's allocator, or the DLPack tensor that was imported.
  rbcContext* context = nullptr;
  void* stream = nullptr;
  size_t bytes = 0;
  DLManagedTensor* managed = nullptr;
  DLManagedTensorVersioned* managed_versioned = nullptr;
};

namespace rbc {
namespace {

rbcOwnedTensor& requireTensor(rbcOwnedTensor_t tensor) {
  if (tensor == nullptr) fail(RBC_STATUS_INVALID_ARGUMENT, "tensor: is null");
  return *tensor;
}

template <class T>
T* requireResult(T* pointer, const char* argument) {
  if (pointer == nullptr) fail(RBC_STATUS_INVALID_ARGUMENT, "%s: is null", argument);
  return pointer;
}

void setView(rbcOwnedTensor& owned, const View& view, rbcDType dtype) {
  std::copy_n(view.shape, view.ndim, owned.shape);
  std::copy_n(view.strides, view.ndim, owned.strides);
  owned.tensor = {view.data, view.device, view.ndim, dtype, owned.shape, owned.strides, 0};
}

void dropTensor(rbcOwnedTensor* owned) noexcept {
  if (owned->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (owned->context != nullptr) {
    release(*owned->context, owned->tensor.data, owned->bytes, owned->stream);
    drop(owned->context);
  }
  if (owned->managed != nullptr && owned->managed->deleter != nullptr) {
    owned->managed->deleter(owned->managed);
  }
  if (owned->managed_versioned != nullptr && owned->managed_versioned->deleter != nullptr) {
    owned->managed_versioned->deleter(owned->managed_versioned);
  }
  delete owned;
}

template <class Managed>
void dropExport(Managed* managed) noexcept {
  dropTensor(static_cast<rbcOwnedTensor*>(managed->manager_ctx));
  delete managed;
}

// The part that both exports share.
template <class Managed>
std::unique_ptr<Managed> share(rbcOwnedTensor& owned) {
  std::unique_ptr<Managed> managed(new Managed{});
  managed->dl_tensor = owned.tensor;
  managed->manager_ctx = &owned;
  managed->deleter = [](Managed* self) { dropExport(self); };
  owned.references.fetch_add(1, std::memory_order_relaxed);
  return managed;
}

bool onHost(rbcDevice device) { return device.type == RBC_DEVICE_CPU; }

}  // namespace
}  // namespace rbc

using rbc::fail;
using rbc::guard;

rbcStatus_t rbcOwnedTensorCreate(rbcContext_t context, rbcDType dtype, int32_t ndim,
                                 const int64_t* shape, const rbcOwnedTensorParams* params,
                                 rbcOwnedTensor_t* tensor) {
  return guard([&] {
    *rbc::requireResult(tensor, "tensor") = nullptr;
    rbc::readParams(params, rbcOwnedTensorParamsInit(), "params");
    const rbc::ContextUse use(context);
    rbcContext& c = *use;
    auto owned = std::make_unique<rbcOwnedTensor>();
    // Normalizing a description at a dummy aligned address checks rank, extents and dtype, as for
    // any tensor.
    const rbcTensor wanted = {reinterpret_cast<void*>(uintptr_t{256}),
                              c.backend->device(*c.state),
                              ndim,
                              dtype,
                              const_cast<int64_t*>(shape),
                              nullptr,
                              0};
    rbc::View view = rbc::describe(&wanted, "tensor");
    owned->bytes = static_cast<size_t>(view.count) * static_cast<size_t>(rbc::sizeOf(view.dtype));
    owned->stream = c.backend->stream(*c.state);
    view.data = nullptr;
    if (owned->bytes > 0) view.data = static_cast<std::byte*>(rbc::allocate(c, owned->bytes));
    rbc::setView(*owned, view, dtype);
    rbc::retain(c);
    owned->context = &c;
    *tensor = owned.release();
  });
}

rbcStatus_t rbcOwnedTensorDestroy(rbcOwnedTensor_t tensor) {
  return guard([&] {
    if (tensor != nullptr) rbc::dropTensor(tensor);
  });
}

rbcStatus_t rbcOwnedTensorGetView(rbcOwnedTensor_t tensor, int32_t writable, rbcTensor* view) {
  return guard([&] {
    const rbcOwnedTensor& owned = rbc::requireTensor(tensor);
    rbc::requireResult(view, "view");
    if (writable != 0 && owned.read_only) {
      fail(RBC_STATUS_INVALID_ARGUMENT, "tensor: is read-only, expected one that may be written");
    }
    *view = owned.tensor;
  });
}

rbcStatus_t rbcTensorCopy(rbcContext_t context, const rbcTensor* source,
                          const rbcTensor* destination) {
  return guard([&] {
    const rbc::ContextUse use(context);
    rbcContext& c = *use;
    const rbc::View from = rbc::normalize(source, "source");
    const rbc::View to = rbc::normalize(destination, "destination");
    rbc::requireShape(to, "destination", from.ndim, from.shape);
    if (from.dtype != to.dtype) {
      fail(RBC_STATUS_DTYPE_MISMATCH, "destination: dtype is %s, expected %s as source",
           rbc::nameOf(to.dtype), rbc::nameOf(from.dtype));
    }
    // A context also copies to and from plain host memory, which its kernels cannot reach.
    if (!rbc::onHost(from.device)) rbc::requireReachable(c, from, "source");
    if (!rbc::onHost(to.device)) rbc::requireReachable(c, to, "destination");
    rbc::requireDistinctElements(to, "destination");
    rbc::requireDisjoint(to, "destination", from, "source");
    if (from.count == 0) return;
    if (c.backend->id == RBC_BACKEND_CUDA && (rbc::onHost(from.device) || rbc::onHost(to.device))) {
      if (!from.contiguous())
        fail(RBC_STATUS_INVALID_ARGUMENT,
             "source: is strided, expected contiguous to cross devices");
      if (!to.contiguous()) {
        fail(RBC_STATUS_INVALID_ARGUMENT,
             "destination: is strided, expected contiguous to cross devices");
      }
    }
    c.backend->copy(*c.state, from, to);
  });
}

rbcStatus_t rbcOwnedTensorImportDLPack(DLManagedTensor* managed, rbcOwnedTensor_t* tensor) {
  return guard([&] {
    *rbc::requireResult(tensor, "tensor") = nullptr;
    rbc::requireResult(managed, "managed");
    auto owned = std::make_unique<rbcOwnedTensor>();
    const rbcTensor described = managed->dl_tensor;
    rbc::setView(*owned, rbc::describe(&described, "managed"), described.dtype);
    owned->managed = managed;
    *tensor = owned.release();
  });
}

rbcStatus_t rbcOwnedTensorImportDLPackVersioned(DLManagedTensorVersioned* managed,
                                                rbcOwnedTensor_t* tensor) {
  return guard([&] {
    *rbc::requireResult(tensor, "tensor") = nullptr;
    rbc::requireResult(managed, "managed");
    if (managed->version.major != kDLPackMajor) {
      // In another major version only version, context and deleter have a known layout.
      const uint32_t major = managed->version.major;
      if (managed->deleter != nullptr) managed->deleter(managed);
      fail(RBC_STATUS_UNSUPPORTED,
           "managed: DLPack major version is %" PRIu32 ", expected %" PRIu32, major, kDLPackMajor);
    }
    auto owned = std::make_unique<rbcOwnedTensor>();
    const rbcTensor described = managed->dl_tensor;
    rbc::setView(*owned, rbc::describe(&described, "managed"), described.dtype);
    owned->read_only = (managed->flags & kDLPackReadOnly) != 0;
    owned->managed_versioned = managed;
    *tensor = owned.release();
  });
}

rbcStatus_t rbcOwnedTensorExportDLPack(rbcOwnedTensor_t tensor, DLManagedTensor** managed) {
  return guard([&] {
    *rbc::requireResult(managed, "managed") = nullptr;
    rbcOwnedTensor& owned = rbc::requireTensor(tensor);
    if (owned.read_only) {
      fail(RBC_STATUS_UNSUPPORTED,
           "tensor: is read-only, which DLPack's legacy form cannot say; use "
           "rbcOwnedTensorExportDLPackVersioned");
    }
    *managed = rbc::share<DLManagedTensor>(owned).release();
  });
}

rbcStatus_t rbcOwnedTensorExportDLPackVersioned(rbcOwnedTensor_t tensor,
                                                DLManagedTensorVersioned** managed) {
  return guard([&] {
    *rbc::requireResult(managed, "managed") = nullptr;
    rbcOwnedTensor& owned = rbc::requireTensor(tensor);
    auto exported = rbc::share<DLManagedTensorVersioned>(owned);
    exported->version.major = kDLPackMajor;
    exported->version.minor = kDLPackMinor;
    exported->flags = owned.read_only ? kDLPackReadOnly : 0;
    *managed = exported.release();
  });
}
