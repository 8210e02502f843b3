// Owned tensors, and the exchange of tensors with other programs by DLPack.
#include <memory>
#include <type_traits>

#include "fuzz/dlpack_forms.h"
#include "fuzz/fill.h"
#include "fuzz/programs.h"

namespace fuzz {
namespace {

const std::vector<std::string> kArguments = {"context", "tensor", "shape",   "ndim",
                                             "dtype",   "view",   "managed", "writable"};

// Another program's tensor: counts the calls of its deleter.
template <class Managed>
struct Foreign {
  Managed managed = {};
  Call call{"a foreign tensor"};
  int deleted = 0;

  static void remove(Managed* self) { ++static_cast<Foreign*>(self->manager_ctx)->deleted; }
};

class Program {
 public:
  Program(Machine& machine, Choices& choices, Transcript& transcript)
      : machine_(machine), choices_(choices), transcript_(transcript) {}

  void create() {
    int64_t shape[9] = {};
    for (int64_t& extent : shape) extent = choices_.between(0, 3);
    if (choices_.chance(10)) shape[0] = choices_.pick<int64_t>({-1, INT64_MAX, int64_t{1} << 40});
    rbcDType dtype = choices_.pick(support::kIntegerDTypes);
    if (choices_.chance(10)) dtype.bits = static_cast<uint8_t>(choices_.below(256));
    const auto ndim = static_cast<int32_t>(
        choices_.chance(90) ? choices_.below(5) : choices_.pick({-1, 8, 9, INT32_MIN}));
    const size_t before = machine_.liveBlocks();
    rbcOwnedTensor_t tensor = reinterpret_cast<rbcOwnedTensor_t>(1);
    if (ended(rbcOwnedTensorCreate(machine_.context(), dtype, ndim,
                                   choices_.chance(3) ? nullptr : shape, nullptr,
                                   choices_.chance(3) ? nullptr : &tensor),
              "rbcOwnedTensorCreate") != RBC_STATUS_SUCCESS) {
      if (machine_.liveBlocks() != before) throw Defect("rbcOwnedTensorCreate left memory");
      return;
    }
    exchange(tensor, true);
    if (machine_.liveBlocks() != before) throw Defect("a tensor left memory");
  }

  // A valid tensor, or one with arbitrary fields: it is imported or left unchanged.
  template <class Managed>
  void import(rbcStatus_t (*take)(Managed*, rbcOwnedTensor_t*)) {
    auto foreign = std::make_unique<Foreign<Managed>>();
    Tensor* t = foreign->call.add(choices_, "tensor", choices_.pick(support::kFloatDTypes),
                                  {choices_.between(0, 4), choices_.between(1, 3)}, Role::kBoth);
    Managed& managed = foreign->managed;
    managed.manager_ctx = foreign.get();
    managed.deleter = choices_.chance(10) ? nullptr : Foreign<Managed>::remove;
    const auto addresses = machine_.memory().place(foreign->call.blocks());
    t->raw.data = addresses[0] + t->shift;
    t->raw.device = machine_.memory().device();
    spoil(t->raw);
    managed.dl_tensor = t->raw;
    bool read_only = false;
    bool unknown_version = false;
    if constexpr (std::is_same_v<Managed, DLManagedTensorVersioned>) {
      managed.version = {1, static_cast<uint32_t>(choices_.below(4))};
      if (choices_.chance(8)) managed.version.major = choices_.pick<uint32_t>({0, 2, UINT32_MAX});
      managed.flags = choices_.chance(20) ? choices_.bits() : choices_.below(2);
      read_only = (managed.flags & 1) != 0;
      unknown_version = managed.version.major != 1;
    }
    rbcOwnedTensor_t tensor = nullptr;
    const rbcStatus_t status = ended(take(&managed, &tensor), "rbcOwnedTensorImportDLPack");
    const bool has_deleter = managed.deleter != nullptr;
    if (status != RBC_STATUS_SUCCESS) {
      if (foreign->deleted != (unknown_version && has_deleter ? 1 : 0)) {
        throw Defect("a failed import: the deleter was called " + std::to_string(foreign->deleted));
      }
      return;
    }
    exchange(tensor, !read_only);
    if (foreign->deleted != (has_deleter ? 1 : 0)) {
      throw Defect("an import: the deleter was called " + std::to_string(foreign->deleted));
    }
  }

 private:
  rbcStatus_t ended(rbcStatus_t status, const char* function) {
    return transcript_.ended(status, function, kArguments);
  }

  void spoil(rbcTensor& raw) {
    if (!choices_.chance(40)) return;
    switch (choices_.below(6)) {
      case 0: raw.ndim = choices_.pick({-1, 9, INT32_MAX, 0}); break;
      case 1: raw.shape = nullptr; break;
      case 2: raw.data = nullptr; break;
      case 3: raw.dtype.lanes = static_cast<uint16_t>(choices_.below(4)); break;
      case 4: raw.dtype.bits = static_cast<uint8_t>(choices_.below(130)); break;
      default: raw.device = {static_cast<int32_t>(choices_.below(16)), choices_.pick({0, 1, -1})};
    }
  }

  // Views and exports of a tensor, which is released at the end, in some order.
  void exchange(rbcOwnedTensor_t tensor, bool writable) {
    rbcTensor view = {};
    const int32_t asked = choices_.pick({0, 1, 1, 2});
    const rbcStatus_t status =
        ended(rbcOwnedTensorGetView(tensor, asked, &view), "rbcOwnedTensorGetView");
    if (asked == 1 && !writable && status == RBC_STATUS_SUCCESS) {
      throw Defect("a view to write through of a read-only tensor");
    }
    DLManagedTensor* managed = nullptr;
    DLManagedTensorVersioned* versioned = nullptr;
    if (choices_.chance(50))
      ended(rbcOwnedTensorExportDLPack(tensor, &managed), "rbcOwnedTensorExportDLPack");
    if (choices_.chance(50)) {
      ended(rbcOwnedTensorExportDLPackVersioned(tensor, &versioned),
            "rbcOwnedTensorExportDLPackVersioned");
    }
    if (managed != nullptr && choices_.chance(30)) {  // imported again: two owners of one tensor
      rbcOwnedTensor_t again = nullptr;
      if (ended(rbcOwnedTensorImportDLPack(managed, &again), "rbcOwnedTensorImportDLPack") ==
          RBC_STATUS_SUCCESS) {
        managed = nullptr;
        ended(rbcOwnedTensorDestroy(again), "rbcOwnedTensorDestroy");
      }
    }
    const bool first = choices_.chance(50);
    if (first) ended(rbcOwnedTensorDestroy(tensor), "rbcOwnedTensorDestroy");
    if (managed != nullptr) managed->deleter(managed);
    if (versioned != nullptr) versioned->deleter(versioned);
    if (!first) ended(rbcOwnedTensorDestroy(tensor), "rbcOwnedTensorDestroy");
  }

  Machine& machine_;
  Choices& choices_;
  Transcript& transcript_;
};

}  // namespace

void tensorProgram(Machine& machine, Choices choices, Transcript& transcript) {
  Program program(machine, choices, transcript);
  for (int64_t n = choices.between(1, 4); n > 0; --n) {
    switch (choices.below(3)) {
      case 0: program.create(); break;
      case 1: program.import <DLManagedTensor>(rbcOwnedTensorImportDLPack); break;
      default:
        program.import <DLManagedTensorVersioned>(rbcOwnedTensorImportDLPackVersioned);
        break;
    }
  }
}

}  // namespace fuzz
