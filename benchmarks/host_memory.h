// A case's arrays in the host's memory, each from a page on and with guards around it.
#pragma once

#include <cstring>

#include "call_set.h"

namespace bench {

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

}  // namespace bench
