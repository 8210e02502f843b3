// The arrays of a case in one kind of memory, the host's or a device's, and a call on them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "cases.h"

namespace bench {

// Memory in separate pages, with guards around them.
class HostMemory {
 public:
  explicit HostMemory(size_t bytes) : memory_(bytes, support::Flush::kBegin) {}

  std::byte* data() const { return memory_.data(); }
  rbcDevice device() const { return {RBC_DEVICE_CPU, 0}; }
  void fill(const void* source, size_t part) {
    for (size_t done = 0; done < memory_.bytes(); done += part)
      std::memcpy(data() + done, source, std::min(part, memory_.bytes() - done));
  }
  void poison() { memory_.poison(); }
  void clear() { std::memset(data(), 0, memory_.bytes()); }
  bool holds(const support::GuardedMemory& block) const {
    for (size_t done = 0; done < memory_.bytes(); done += block.bytes()) {
      const size_t bytes = std::min(block.bytes(), memory_.bytes() - done);
      if (std::memcmp(data() + done, block.data(), bytes) != 0) return false;
    }
    return true;
  }

 private:
  support::GuardedMemory memory_;
};

// Memory has a constructor with a size in bytes, data(), fill(source, bytes), poison(), clear(),
// holds(bytes) and device(). A part of a batch is repeated to fill the whole batch.
template <class Memory>
class CallSet {
 public:
  explicit CallSet(const Data& data) : data_(data) {
    for (const auto& input : data.inputs) {
      add(input.second, inputs_, tensors_.inputs);
      inputs_.back().fill(input.second.memory().data(), input.second.memory().bytes());
    }
    for (const support::Array& output : data.outputs) add(output, outputs_, tensors_.outputs);
    call_ = data.callOn(tensors_);
    reset();
  }
  CallSet(const CallSet&) = delete;

  const Call& call() const { return *call_; }
  const Tensors& tensors() const { return tensors_; }

  // Restores the state before the first call.
  void reset() {
    for (Memory& output : outputs_) data_.accumulates ? output.clear() : output.poison();
  }
  // Checks the results of a call, bit for bit.
  void check() const {
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (!outputs_[i].holds(data_.outputs[i].memory()))
        throw std::runtime_error("differs from the portable CPU code");
    }
  }

 private:
  void add(const support::Array& array, std::deque<Memory>& memories,
           std::deque<robocache::Tensor>& tensors) {
    std::vector<int64_t> shape = data_.wholeShape(array);
    int64_t bytes = support::sizeOf(array.dtype());
    for (const int64_t extent : shape) bytes *= extent;
    Memory& memory = memories.emplace_back(static_cast<size_t>(bytes));
    rbcTensor tensor = array.tensorAt(memory.data(), memory.device());
    tensor.shape = shape.data();
    tensors.emplace_back(tensor);
  }

  const Data& data_;
  std::deque<Memory> inputs_, outputs_;
  Tensors tensors_;
  std::unique_ptr<Call> call_;
};

}  // namespace bench
