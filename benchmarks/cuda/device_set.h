// The arrays of a case in the memory of a device, and a call on them.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "../measure.h"
#include "device.h"
#include "robocache/robocache.hpp"
#include "support/arrays.h"

namespace bench {

// A block repeated over the whole batch. The device has to be the current one.
template <class Call>
class DeviceSet {
 public:
  using Data = typename Call::Data;

  explicit DeviceSet(const Data& data, int device = 0)
      : data_(data),
        device_(device),
        call_(data, [this](const support::Array& array) { return place(array); }) {}

  const Call& call() const { return call_; }

  // As before the first call.
  void reset() {
    for (const auto& output : outputs_) {
      if (data_.accumulates()) {
        output.second->clear();
      } else {
        output.second->poison();
      }
    }
  }
  void check() const {
    for (const auto& [expected, memory] : outputs_) checkOutput(*expected, *memory);
  }

 private:
  robocache::Tensor place(const support::Array& array) {
    std::vector<int64_t> shape = data_.wholeShape(array);
    int64_t bytes = support::sizeOf(array.dtype());
    for (const int64_t extent : shape) bytes *= extent;
    memory_.push_back(std::make_unique<DeviceMemory>(static_cast<size_t>(bytes)));
    DeviceMemory& memory = *memory_.back();
    const std::vector<const support::Array*> outputs = data_.outputs();
    if (std::find(outputs.begin(), outputs.end(), &array) != outputs.end()) {
      outputs_.emplace_back(&array, &memory);
    } else {
      memory.fill(array.memory().data(), array.memory().bytes());
    }
    rbcTensor tensor = array.tensorAt(memory.data(), {RBC_DEVICE_CUDA, device_});
    tensor.shape = shape.data();
    return robocache::Tensor(tensor);
  }

  static void checkOutput(const support::Array& block, const DeviceMemory& memory) {
    std::vector<char> host(block.memory().bytes());
    for (size_t done = 0; done < memory.bytes(); done += host.size()) {
      const size_t bytes = std::min(host.size(), memory.bytes() - done);
      checkCuda(cudaMemcpy(host.data(), memory.data() + done, bytes, cudaMemcpyDeviceToHost),
                "cudaMemcpy");
      if (std::memcmp(host.data(), block.memory().data(), bytes) != 0) {
        throw std::runtime_error("differs from the answer on the CPU");
      }
    }
  }

  const Data& data_;
  int device_;
  std::vector<std::unique_ptr<DeviceMemory>> memory_;
  std::vector<std::pair<const support::Array*, DeviceMemory*>> outputs_;
  Call call_;
};

inline robocache::Context contextOn(const Stream& stream, int device = 0) {
  robocache::Context context = robocache::Context::cuda(device, stream.get());
  context.warmUp();
  return context;
}

}  // namespace bench
