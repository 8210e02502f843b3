// A context whose workspace can be poisoned, on either backend: its contents are undefined for an
// operation, and the bytes past the requested ones must not be touched.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "run.h"

namespace support {

class PoisonedScratch {
 public:
  // `params` chooses the backend; the allocator is set here.
  explicit PoisonedScratch(rbcContextParams params) : owner_(makeContext(params)) {
    params.allocator = {allocate, release, this};
    context_ = makeContext(params);
  }
  PoisonedScratch(const PoisonedScratch&) = delete;

  // The context with this workspace; tensors must be allocated by the other one.
  const Context& context() const { return context_; }
  const Context& other() const { return owner_; }

  // Whether no workspace was ever requested.
  bool isEmpty() const { return blocks_.empty(); }

  // Fills the workspace.
  void poison(uint8_t byte) const {
    for (const auto& [data, block] : blocks_) {
      std::vector<uint8_t> image(static_cast<size_t>(extentOf(block)), byte);
      transfer(block, image, true);
    }
  }
  // Whether `byte` fills everything after the first `used` bytes.
  bool isPoisonPast(size_t used, uint8_t byte) const {
    return std::all_of(blocks_.begin(), blocks_.end(), [&](const auto& entry) {
      std::vector<uint8_t> image(static_cast<size_t>(extentOf(entry.second)));
      transfer(entry.second, image, false);
      return std::all_of(image.begin() + static_cast<std::ptrdiff_t>(used), image.end(),
                         [&](uint8_t b) { return b == byte; });
    });
  }

 private:
  // After the requested bytes.
  static constexpr size_t kGuard = 4096;

  static void* allocate(void* self, size_t bytes, size_t, void*) {
    auto& scratch = *static_cast<PoisonedScratch*>(self);
    const auto total = static_cast<int64_t>(bytes + kGuard);
    rbcOwnedTensor_t owned = nullptr;
    if (rbcOwnedTensorCreate(scratch.owner_.get(), kU8, 1, &total, nullptr, &owned) !=
        RBC_STATUS_SUCCESS)
      return nullptr;
    void* data = viewOf(owned).data;
    scratch.blocks_.emplace(data, OwnedTensor(owned));
    return data;
  }
  static void release(void* self, void* pointer, size_t, void*) {
    static_cast<PoisonedScratch*>(self)->blocks_.erase(pointer);
  }

  static rbcTensor viewOf(rbcOwnedTensor_t owned) {
    rbcTensor view = {};
    require(rbcOwnedTensorGetView(owned, 1, &view));
    return view;
  }
  static int64_t extentOf(const OwnedTensor& block) { return viewOf(block.get()).shape[0]; }

  void transfer(const OwnedTensor& block, std::vector<uint8_t>& image, bool to_device) const {
    const rbcTensor device = viewOf(block.get());
    int64_t extent = static_cast<int64_t>(image.size());
    const rbcTensor host = {image.data(), {RBC_DEVICE_CPU, 0}, 1, kU8, &extent, nullptr, 0};
    require(rbcTensorCopy(owner_.get(), to_device ? &host : &device, to_device ? &device : &host));
  }

  Context owner_;  // owns the memory
  std::map<void*, OwnedTensor> blocks_;
  Context context_;  // destroyed before the context that it releases memory to
};

}  // namespace support
