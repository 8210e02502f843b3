// DLPack's managed tensors, in and out.
#include "support/expect.h"

#if !defined(RBC_DLPACK_HEADER)

TEST_CASE("dlpack: import and export") { SKIP_BECAUSE("no dlpack.h"); }

#else

#include RBC_DLPACK_HEADER

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "support/run.h"

namespace {

using support::Context;
using support::OwnedTensor;

// A tensor of another library: it counts how often, and where, its deleter is called.
template <class Managed>
struct Producer {
  std::vector<float> data = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  int64_t shape[2] = {3, 4};
  int64_t strides[2] = {4, 1};
  std::atomic<int> deleted{0};
  std::thread::id deleter_thread;
  Managed managed{};

  Producer() {
    managed.dl_tensor = {data.data(), {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, strides, 0};
    managed.manager_ctx = this;
    managed.deleter = [](Managed* self) {
      auto* producer = static_cast<Producer*>(self->manager_ctx);
      ++producer->deleted;
      producer->deleter_thread = std::this_thread::get_id();
    };
    if constexpr (std::is_same_v<Managed, DLManagedTensorVersioned>) {
      managed.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
    }
  }
};

rbcStatus_t import(DLManagedTensor* managed, rbcOwnedTensor_t* tensor) {
  return rbcOwnedTensorImportDLPack(managed, tensor);
}
rbcStatus_t import(DLManagedTensorVersioned* managed, rbcOwnedTensor_t* tensor) {
  return rbcOwnedTensorImportDLPackVersioned(managed, tensor);
}
rbcStatus_t exportTo(rbcOwnedTensor_t tensor, DLManagedTensor** managed) {
  return rbcOwnedTensorExportDLPack(tensor, managed);
}
rbcStatus_t exportTo(rbcOwnedTensor_t tensor, DLManagedTensorVersioned** managed) {
  return rbcOwnedTensorExportDLPackVersioned(tensor, managed);
}

template <class Managed>
OwnedTensor imported(Producer<Managed>& producer) {
  rbcOwnedTensor_t tensor = nullptr;
  REQUIRE(import(&producer.managed, &tensor) == RBC_STATUS_SUCCESS);
  return OwnedTensor(tensor);
}

OwnedTensor created(const Context& context) {
  const int64_t shape[] = {3, 4};
  rbcOwnedTensor_t tensor = nullptr;
  REQUIRE(rbcOwnedTensorCreate(context.get(), support::kF32, 2, shape, nullptr, &tensor) ==
          RBC_STATUS_SUCCESS);
  return OwnedTensor(tensor);
}

rbcTensor viewOf(const OwnedTensor& tensor) {
  rbcTensor view = {};
  REQUIRE(rbcOwnedTensorGetView(tensor.get(), 0, &view) == RBC_STATUS_SUCCESS);
  return view;
}

}  // namespace

TEST_CASE_TEMPLATE("dlpack: an import shares the memory and deletes it once", Managed,
                   DLManagedTensor, DLManagedTensorVersioned) {
  Producer<Managed> producer;
  OwnedTensor tensor = imported(producer);
  const rbcTensor view = viewOf(tensor);
  CHECK(view.data == producer.data.data());
  CHECK(view.ndim == 2);
  CHECK(view.shape[1] == 4);
  CHECK(view.strides[0] == 4);
  CHECK(view.dtype.code == kDLFloat);
  CHECK(view.device.type == kDLCPU);
  CHECK(producer.deleted == 0);
  tensor.reset();
  CHECK(producer.deleted == 1);
  const bool on_this_thread = producer.deleter_thread == std::this_thread::get_id();
  CHECK(on_this_thread);
}

TEST_CASE_TEMPLATE("dlpack: byte_offset, null strides and views are understood", Managed,
                   DLManagedTensor, DLManagedTensorVersioned) {
  Producer<Managed> producer;
  producer.managed.dl_tensor.byte_offset = 8;
  producer.managed.dl_tensor.shape[0] = 2;
  producer.managed.dl_tensor.strides = nullptr;
  OwnedTensor tensor = imported(producer);
  const rbcTensor view = viewOf(tensor);
  rbcTensorInfo info = rbcTensorInfoInit();
  CHECK_SUCCEEDS(rbcTensorGetInfo(&view, &info));
  CHECK(info.data == producer.data.data() + 2);
  CHECK(info.strides[0] == 4);
  tensor.reset();

  Producer<Managed> strided;
  strided.strides[0] = -4;
  strided.strides[1] = 2;
  strided.shape[1] = 2;
  strided.managed.dl_tensor.byte_offset = 32;
  tensor = imported(strided);
  Managed* out = nullptr;
  CHECK_SUCCEEDS(exportTo(tensor.get(), &out));
  REQUIRE(out != nullptr);
  CHECK(out->dl_tensor.strides[0] == -4);
  CHECK(out->dl_tensor.strides[1] == 2);
  CHECK(static_cast<std::byte*>(out->dl_tensor.data) + out->dl_tensor.byte_offset ==
        reinterpret_cast<std::byte*>(strided.data.data() + 8));
  out->deleter(out);
  tensor.reset();
  CHECK(strided.deleted == 1);
}

TEST_CASE_TEMPLATE("dlpack: an import without a deleter succeeds", Managed, DLManagedTensor,
                   DLManagedTensorVersioned) {
  Producer<Managed> producer;
  producer.managed.deleter = nullptr;
  OwnedTensor tensor = imported(producer);
  tensor.reset();
  CHECK(producer.deleted == 0);
}

TEST_CASE_TEMPLATE("dlpack: a failed import leaves the tensor to the caller", Managed,
                   DLManagedTensor, DLManagedTensorVersioned) {
  rbcOwnedTensor_t tensor = reinterpret_cast<rbcOwnedTensor_t>(1);
  CHECK_FAILS(import(static_cast<Managed*>(nullptr), &tensor), RBC_STATUS_INVALID_ARGUMENT,
              "managed:");
  CHECK(tensor == nullptr);
  const auto refused = [&](rbcStatus_t status, auto&& spoil) {
    Producer<Managed> producer;
    spoil(producer.managed.dl_tensor);
    tensor = reinterpret_cast<rbcOwnedTensor_t>(1);
    CHECK_FAILS(import(&producer.managed, &tensor), status, "managed:");
    CHECK(tensor == nullptr);
    CHECK(producer.deleted == 0);
  };
  refused(RBC_STATUS_DTYPE_MISMATCH, [](DLTensor& t) { t.dtype.lanes = 4; });
  refused(RBC_STATUS_DTYPE_MISMATCH, [](DLTensor& t) { t.dtype = {kDLComplex, 64, 1}; });
  refused(RBC_STATUS_SHAPE_MISMATCH, [](DLTensor& t) { t.ndim = 9; });
  refused(RBC_STATUS_SHAPE_MISMATCH, [](DLTensor& t) { t.shape[0] = -1; });
  refused(RBC_STATUS_INVALID_ARGUMENT, [](DLTensor& t) { t.data = nullptr; });
  refused(RBC_STATUS_INVALID_ARGUMENT, [](DLTensor& t) { t.byte_offset = 2; });
  Producer<Managed> producer;
  CHECK_FAILS(import(&producer.managed, nullptr), RBC_STATUS_INVALID_ARGUMENT, "tensor:");
  CHECK(producer.deleted == 0);
}

TEST_CASE("dlpack: of another major version only the deleter is called") {
  for (const uint32_t major : {0u, uint32_t{DLPACK_MAJOR_VERSION} + 1, 0xffffffffu}) {
    Producer<DLManagedTensorVersioned> producer;
    producer.managed.version.major = major;
    // The bytes after the deleter may be anything.
    std::memset(static_cast<void*>(&producer.managed.flags), 0xEE,
                sizeof producer.managed - offsetof(DLManagedTensorVersioned, flags));
    rbcOwnedTensor_t tensor = reinterpret_cast<rbcOwnedTensor_t>(1);
    const std::string told = std::to_string(major);
    CHECK_FAILS(rbcOwnedTensorImportDLPackVersioned(&producer.managed, &tensor),
                RBC_STATUS_UNSUPPORTED, "managed:", told.c_str());
    CHECK(tensor == nullptr);
    CHECK(producer.deleted == 1);
    producer.managed.deleter = nullptr;
    CHECK_FAILS(rbcOwnedTensorImportDLPackVersioned(&producer.managed, &tensor),
                RBC_STATUS_UNSUPPORTED, "managed:");
  }
  Producer<DLManagedTensorVersioned> newer;
  newer.managed.version.minor = 99;
  imported(newer).reset();
  CHECK(newer.deleted == 1);
}

TEST_CASE("dlpack: the read-only flag is respected and exported") {
  Producer<DLManagedTensorVersioned> producer;
  producer.managed.flags = DLPACK_FLAG_BITMASK_READ_ONLY | DLPACK_FLAG_BITMASK_IS_COPIED;
  OwnedTensor tensor = imported(producer);
  rbcTensor view = {};
  CHECK_SUCCEEDS(rbcOwnedTensorGetView(tensor.get(), 0, &view));
  view.data = nullptr;
  CHECK_FAILS(rbcOwnedTensorGetView(tensor.get(), 1, &view), RBC_STATUS_INVALID_ARGUMENT,
              "tensor:", "read-only");
  CHECK(view.data == nullptr);

  DLManagedTensor* legacy = reinterpret_cast<DLManagedTensor*>(1);
  CHECK_FAILS(rbcOwnedTensorExportDLPack(tensor.get(), &legacy), RBC_STATUS_UNSUPPORTED,
              "tensor:", "read-only");
  CHECK(legacy == nullptr);
  DLManagedTensorVersioned* versioned = nullptr;
  CHECK_SUCCEEDS(rbcOwnedTensorExportDLPackVersioned(tensor.get(), &versioned));
  CHECK((versioned->flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0);
  versioned->deleter(versioned);

  Producer<DLManagedTensorVersioned> writable;
  OwnedTensor other = imported(writable);
  CHECK_SUCCEEDS(rbcOwnedTensorGetView(other.get(), 1, &view));
  CHECK_SUCCEEDS(rbcOwnedTensorExportDLPackVersioned(other.get(), &versioned));
  CHECK(versioned->flags == 0);
  CHECK(versioned->version.major == 1);
  versioned->deleter(versioned);
}

TEST_CASE_TEMPLATE("dlpack: each export holds a reference", Managed, DLManagedTensor,
                   DLManagedTensorVersioned) {
  Producer<Managed> producer;
  OwnedTensor tensor = imported(producer);
  Managed* first = nullptr;
  Managed* second = nullptr;
  CHECK_SUCCEEDS(exportTo(tensor.get(), &first));
  CHECK_SUCCEEDS(exportTo(tensor.get(), &second));
  CHECK(first != second);
  tensor.reset();
  CHECK(producer.deleted == 0);
  // Shape and strides of an export outlive the owned tensor.
  CHECK(first->dl_tensor.shape[0] == 3);
  CHECK(first->dl_tensor.strides[0] == 4);
  CHECK(first->dl_tensor.data == producer.data.data());
  first->deleter(first);
  CHECK(producer.deleted == 0);
  second->deleter(second);
  CHECK(producer.deleted == 1);
}

TEST_CASE_TEMPLATE("dlpack: the last deleter may run on any thread, also after the context is gone",
                   Managed, DLManagedTensor, DLManagedTensorVersioned) {
  Producer<Managed> producer;
  OwnedTensor tensor = imported(producer);
  Managed* out = nullptr;
  CHECK_SUCCEEDS(exportTo(tensor.get(), &out));
  std::thread([&] { tensor.reset(); }).join();
  CHECK(producer.deleted == 0);
  std::thread thread([&] { out->deleter(out); });
  const std::thread::id id = thread.get_id();
  thread.join();
  CHECK(producer.deleted == 1);
  const bool on_that_thread = producer.deleter_thread == id;
  CHECK(on_that_thread);

  Context context = support::cpuContext(1);
  tensor = created(context);
  CHECK_SUCCEEDS(exportTo(tensor.get(), &out));
  context.reset();
  static_cast<float*>(out->dl_tensor.data)[11] = 5;
  tensor.reset();
  static_cast<float*>(out->dl_tensor.data)[0] = 5;
  std::thread([&] { out->deleter(out); }).join();
}

TEST_CASE("dlpack: references are counted correctly when many threads drop them") {
  for (int round = 0; round < 50; ++round) {
    Producer<DLManagedTensorVersioned> producer;
    OwnedTensor tensor = imported(producer);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      DLManagedTensorVersioned* out = nullptr;
      CHECK_SUCCEEDS(rbcOwnedTensorExportDLPackVersioned(tensor.get(), &out));
      threads.emplace_back([out] { out->deleter(out); });
    }
    tensor.reset();
    for (std::thread& thread : threads) thread.join();
    CHECK(producer.deleted == 1);
  }
}

TEST_CASE_TEMPLATE("dlpack: an exported tensor can be imported again", Managed, DLManagedTensor,
                   DLManagedTensorVersioned) {
  const Context context = support::cpuContext(1);
  OwnedTensor tensor = created(context);
  const rbcTensor view = viewOf(tensor);
  Managed* out = nullptr;
  CHECK_SUCCEEDS(exportTo(tensor.get(), &out));
  tensor.reset();
  rbcOwnedTensor_t again = nullptr;
  CHECK_SUCCEEDS(import(out, &again));
  tensor.reset(again);
  CHECK(viewOf(tensor).data == view.data);
}

TEST_CASE("dlpack: null arguments of export") {
  const Context context = support::cpuContext(1);
  const OwnedTensor tensor = created(context);
  DLManagedTensor* legacy = reinterpret_cast<DLManagedTensor*>(1);
  DLManagedTensorVersioned* versioned = reinterpret_cast<DLManagedTensorVersioned*>(1);
  CHECK_FAILS(rbcOwnedTensorExportDLPack(nullptr, &legacy), RBC_STATUS_INVALID_ARGUMENT, "tensor:");
  CHECK(legacy == nullptr);
  CHECK_FAILS(rbcOwnedTensorExportDLPackVersioned(nullptr, &versioned), RBC_STATUS_INVALID_ARGUMENT,
              "tensor:");
  CHECK(versioned == nullptr);
  CHECK_FAILS(rbcOwnedTensorExportDLPack(tensor.get(), nullptr), RBC_STATUS_INVALID_ARGUMENT,
              "managed:");
  CHECK_FAILS(rbcOwnedTensorExportDLPackVersioned(tensor.get(), nullptr),
              RBC_STATUS_INVALID_ARGUMENT, "managed:");
}

#endif
